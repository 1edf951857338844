import type { ResponseStore } from '../../core/idempotency/response-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';
import { MessageSeal } from '../message-seal.ts';

/** Keeps nothing. */
const NO_RESPONSES: ResponseStore = {
  bounds: [],
  read: (_, onRead) => onRead(undefined, 0),
  keep: (_id, _bytes, _lifetime, onKept) => onKept(),
  remove: () => undefined,
};

/** Encrypts what a store outside the memory of this process keeps. @param secret undefined: nothing is kept */
export function sealResponses(store: ResponseStore, secret: string | undefined): ResponseStore {
  return secret === undefined ? NO_RESPONSES : new SealedResponseStore(store, new MessageSeal(secret, 'kept response'));
}

class SealedResponseStore implements ResponseStore {
  readonly #store: ResponseStore;
  readonly #seal: MessageSeal;

  constructor(store: ResponseStore, seal: MessageSeal) {
    this.#store = store;
    this.#seal = seal;
  }

  get bounds(): readonly ResourceBound[] {
    return this.#store.bounds;
  }

  read(id: string, onRead: (bytes: Buffer | undefined, keptFor: Millis) => void): void {
    this.#store.read(id, (sealed, keptFor) => onRead(sealed && this.#seal.open(id, sealed), keptFor));
  }

  keep(id: string, bytes: Buffer, lifetime: Millis, onKept: () => void): void {
    this.#store.keep(id, this.#seal.seal(id, bytes), lifetime, onKept);
  }

  remove(write: string): void {
    this.#store.remove(write);
  }
}
