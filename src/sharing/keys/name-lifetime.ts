import { DEFAULT_KEY_LIFETIME } from '../../core/idempotency/key-registry.ts';
import type { Millis } from '../../core/scalars.ts';
import type { NameChange } from './key-state-backend.ts';

const DAY: Millis = 24 * 60 * 60 * 1000;

/** How long what is known of a write is remembered after its key has expired. */
const KEPT_FOR: Millis = DAY;

/** The same from the last change on, while a write is unresolved or in progress: in practice, until it is resolved or evicted. */
const OPEN_FOR: Millis = 365 * DAY;

/** How long the store keeps what it knows of a write, from its first send on at least. */
export function keptFor(ttl: Millis = DEFAULT_KEY_LIFETIME): Millis {
  return ttl + KEPT_FOR;
}

/** How long the writes of a name are stored, as the requests of this process determine it. */
export class NameLifetime {
  #longestTtl: Millis = 0;
  #openFor: Millis = 0;

  /** @param ttl undefined if it is not known: then the write is forgotten after a day, resolved or not */
  onRequest(ttl: Millis | undefined): void {
    this.#longestTtl = Math.max(this.#longestTtl, ttl ?? DEFAULT_KEY_LIFETIME);
    if (ttl !== undefined) this.#openFor = OPEN_FOR;
  }

  get terms(): Pick<NameChange, 'keptFor' | 'openFor'> {
    return { keptFor: this.#longestTtl + KEPT_FOR, openFor: this.#openFor };
  }
}
