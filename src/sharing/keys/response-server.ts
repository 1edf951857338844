import type { ResponseStore } from '../../core/idempotency/response-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { ResponseOperation, ResponseReply } from './response-protocol.ts';

/** Keeps the responses of several workers. */
export class ResponseServer {
  readonly #store: ResponseStore;
  readonly #send: (worker: number, reply: ResponseReply) => void;

  constructor(store: ResponseStore, send: (worker: number, reply: ResponseReply) => void) {
    this.#store = store;
    this.#send = send;
  }

  get bounds(): readonly ResourceBound[] {
    return this.#store.bounds;
  }

  onOperation(worker: number, operation: ResponseOperation): void {
    switch (operation.do) {
      case 'read': {
        const { query, id } = operation;
        return this.#store.read(id, (bytes, keptFor) =>
          this.#send(worker, { query, bytes: bytes?.toString('base64'), keptFor }),
        );
      }
      case 'keep': {
        const { query, id, lifetime } = operation;
        const bytes = Buffer.from(operation.bytes, 'base64');
        return this.#store.keep(id, bytes, lifetime, () => this.#send(worker, { query, bytes: undefined }));
      }
      case 'remove':
        return this.#store.remove(operation.write);
    }
  }
}
