import type { ResponseStore } from '../../core/idempotency/response-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';
import { REPLY_WITHIN } from './remote-key-claim.ts';
import type { ResponseOperation, ResponseReply } from './response-protocol.ts';

export interface ResponseClientParts {
  readonly send: (operation: ResponseOperation) => void;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly after: (delay: Millis, run: () => void) => () => void;
}

/** Kept responses of a worker, in its primary. */
export class ResponseClient implements ResponseStore {
  readonly #parts: ResponseClientParts;
  readonly #queries = new Map<number, (bytes: Buffer | undefined, keptFor: Millis) => void>();
  #number = 0;

  constructor(parts: ResponseClientParts) {
    this.#parts = parts;
  }

  /** The primary reports them. */
  get bounds(): readonly ResourceBound[] {
    return [];
  }

  read(id: string, onRead: (bytes: Buffer | undefined, keptFor: Millis) => void): void {
    this.#parts.send({ do: 'read', query: this.#ask(onRead), id });
  }

  keep(id: string, bytes: Buffer, lifetime: Millis, onKept: () => void): void {
    const query = this.#ask(() => onKept());
    this.#parts.send({ do: 'keep', query, id, bytes: bytes.toString('base64'), lifetime });
  }

  remove(write: string): void {
    this.#parts.send({ do: 'remove', write });
  }

  onReply({ query, bytes, keptFor }: ResponseReply): void {
    this.#answer(query, bytes === undefined ? undefined : Buffer.from(bytes, 'base64'), keptFor);
  }

  /** Calls back once, without bytes if no reply arrives in time. */
  #ask(onAnswer: (bytes: Buffer | undefined, keptFor: Millis) => void): number {
    this.#number += 1;
    const query = this.#number;
    const cancelTimer = this.#parts.after(REPLY_WITHIN, () => this.#answer(query, undefined));
    this.#queries.set(query, (bytes, keptFor) => {
      cancelTimer();
      onAnswer(bytes, keptFor);
    });
    return query;
  }

  #answer(query: number, bytes: Buffer | undefined, keptFor: Millis = 0): void {
    const onAnswer = this.#queries.get(query);
    this.#queries.delete(query);
    onAnswer?.(bytes, keptFor);
  }
}
