import { LinkedQueue } from '../../../core/collections/linked-queue.ts';
import type { PooledSend } from '../pooled-send.ts';

/** A queue of requests. `head` is the next one. */
export type SendQueue = Pick<LinkedQueue<PooledSend>, 'head' | 'length' | 'push' | 'remove' | 'clear'>;

/** Requests that have no HTTP/2 connection yet, in order of arrival. */
export class WaitingSends {
  /** All connections have as many requests as they take. */
  readonly forStream: SendQueue;
  /** The bodies of others leave no room for theirs on the connections. They get it on the next one. */
  readonly forRoom = new LinkedQueue<PooledSend>();

  constructor(forStream: SendQueue = new LinkedQueue<PooledSend>()) {
    this.forStream = forStream;
  }

  /** A new connection has room for one of them at least. */
  pushForRoom(pending: PooledSend): void {
    pending.waitedForConnection = this.forRoom.length > 0;
    pending.waitsForRoom = true;
    this.forRoom.push(pending);
  }

  /** Returns whether it waited. */
  remove(pending: PooledSend): boolean {
    const queue = pending.waitsForRoom ? this.forRoom : this.forStream;
    pending.waitsForRoom = false;
    return queue.remove(pending);
  }

  clear(): PooledSend[] {
    return [...this.forStream.clear(), ...this.clearForRoom()];
  }

  clearForRoom(): PooledSend[] {
    const all = this.forRoom.clear();
    for (const pending of all) pending.waitsForRoom = false;
    return all;
  }
}
