import { LinkedQueue } from '../../../core/collections/linked-queue.ts';
import type { AwaitedConnections } from '../awaited-connections.ts';
import type { PooledSend } from '../pooled-send.ts';
import { countConnecting } from './count-connections.ts';
import type { Http2Connection } from './http2-connection.ts';

/** Requests that wait for a connection without other requests. */
export class UnsharedQueue extends LinkedQueue<PooledSend> implements AwaitedConnections {
  readonly #connections: ReadonlySet<Http2Connection>;

  constructor(connections: ReadonlySet<Http2Connection>) {
    super();
    this.#connections = connections;
  }

  get waiting(): number {
    return this.length;
  }

  get lacking(): number {
    return this.length - countConnecting(this.#connections);
  }

  holders(): ReadonlySet<unknown> {
    return new Set([...this.#connections].map(({ sender }) => sender));
  }
}
