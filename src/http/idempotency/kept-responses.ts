import type { ResponseStore } from '../../core/idempotency/response-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';
import { decodeKeptResponse, encodeKeptResponse, type KeptResponse, MAX_KEPT_BYTES } from './kept-response.ts';

/** The responses to writes that are kept for repeats (`idempotency.replayAnswers`). */
export class KeptResponses {
  readonly #store: ResponseStore;

  constructor(store: ResponseStore) {
    this.#store = store;
  }

  get bounds(): readonly ResourceBound[] {
    return this.#store.bounds;
  }

  /** Calls back once; undefined if none is kept or it cannot be read. */
  read(id: string, onRead: (response: KeptResponse | undefined) => void): void {
    this.#store.read(id, (bytes, keptFor) => {
      const response = bytes && decodeKeptResponse(bytes);
      onRead(response && { ...response, keptFor });
    });
  }

  /** @param onKept called once, also if it is too long, or cannot be kept */
  keep(id: string, response: Omit<KeptResponse, 'keptFor'>, lifetime: Millis, onKept: () => void): void {
    const bytes = encodeKeptResponse(response);
    if (bytes.length > MAX_KEPT_BYTES) return onKept();
    this.#store.keep(id, bytes, lifetime, onKept);
  }
}
