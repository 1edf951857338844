import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Bound } from '../policy/bound.ts';

/**
 * At most so many connections to a listener for operators. The next one is taken all the same, so that a probe is always answered:
 * the one that nothing has been asked on for the longest time gives way to it, or else the oldest that is being answered. A connection
 * that asks again before it has its answer ends: a thousand scrapes in one piece would keep probes waiting.
 */
export class BoundedConnections {
  readonly #most: number;
  /** In the order of their last use; the value says whether one is being answered. */
  readonly #sockets = new Map<Socket, 'idle' | 'busy'>();
  #closed = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get bound(): Bound {
    return { name: 'admin_connections', used: this.#sockets.size / this.#most, reached: this.#closed };
  }

  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#take(socket));
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      if (this.#sockets.get(socket) === 'busy') return void socket.destroy();
      this.#use(socket, 'busy');
      response.once('close', () => this.#use(socket, 'idle'));
    });
  }

  #take(socket: Socket): void {
    if (this.#sockets.size >= this.#most) {
      this.#closed += 1;
      this.#leastUseful()?.destroy();
    }
    this.#sockets.set(socket, 'idle');
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #use(socket: Socket, state: 'idle' | 'busy'): void {
    if (this.#sockets.delete(socket)) this.#sockets.set(socket, state);
  }

  /** It is forgotten at once: its end may be told later than the next connection. */
  #leastUseful(): Socket | undefined {
    let found: Socket | undefined;
    for (const [socket, state] of this.#sockets) {
      found ??= socket;
      if (state === 'busy') continue;
      found = socket;
      break;
    }
    if (found !== undefined) this.#sockets.delete(found);
    return found;
  }
}
