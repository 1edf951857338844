import type {
  KeyInspection,
  WriteLookup,
  WriteMatches,
  WriteQuery,
  WriteRemoval,
} from '../../core/idempotency/key-inspection.ts';
import type { ResponseStore } from '../../core/idempotency/response-store.ts';
import { responseWriteOf } from '../../core/idempotency/write-id.ts';
import type { KeyRegistry } from '../../core/idempotency/key-registry.ts';
import {
  MAX_AMBIGUOUS,
  type OnlyWrite,
  onlyWriteOf,
  toWriteView,
  WriteSearch,
  type WriteSearchQuery,
} from '../../core/idempotency/write-search.ts';

/** Writes that are searched before the event loop gets its turn. */
const SEARCH_STEP = 10_000;

/** The keys that this process keeps, for its workers too. */
export class RegistryKeyInspection implements KeyInspection {
  readonly #keys: KeyRegistry;
  readonly #responses: Pick<ResponseStore, 'remove'>;
  readonly #digestKey: (key: string) => string;

  /** @param responses that are kept for repeats @param digestKey as at the end of the names of writes */
  constructor(keys: KeyRegistry, responses: Pick<ResponseStore, 'remove'>, digestKey: (key: string) => string) {
    this.#keys = keys;
    this.#responses = responses;
    this.#digestKey = digestKey;
  }

  async list({ key, ...query }: WriteQuery): Promise<WriteMatches> {
    const keyDigest = key === undefined ? undefined : this.#digestKey(key);
    return (await this.#search({ ...query, keyDigest })).matches;
  }

  async find(id: string): Promise<WriteLookup> {
    const found = await this.#findOnly(id);
    return found.kind === 'found' ? { kind: 'found', write: toWriteView(found.write, this.#keys) } : found;
  }

  async forget(id: string): Promise<WriteRemoval> {
    const found = await this.#findOnly(id);
    if (found.kind !== 'found') return found;
    // Nothing is awaited from here to the removal, so no request can begin to use the write.
    const write = toWriteView(found.write, this.#keys);
    if (write.state === 'in_progress') return { kind: 'in_progress', write };
    this.#keys.forget(found.write);
    this.#responses.remove(responseWriteOf(found.write.name));
    return { kind: (await this.#isStored()) ? 'forgotten' : 'not_stored', write };
  }

  async #findOnly(id: string): Promise<OnlyWrite> {
    const { found } = await this.#search({ id, order: 'newest', limit: MAX_AMBIGUOUS });
    return onlyWriteOf(found, this.#keys);
  }

  async #search(query: WriteSearchQuery): Promise<WriteSearch> {
    const search = new WriteSearch(this.#keys, query);
    while (search.step(SEARCH_STEP)) await new Promise(setImmediate);
    return search;
  }

  #isStored(): Promise<boolean> {
    const { journal } = this.#keys;
    return new Promise((resolve) => {
      if (journal === undefined) resolve(true);
      else journal.whenStored(resolve);
    });
  }
}
