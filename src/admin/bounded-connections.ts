import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Bound } from '../core/overload/resource-bound.ts';

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

  /** To be called once the server has its handler of requests, which then gets only those that may be answered. */
  watch(server: Server): void {
    const handlers = server.listeners('request');
    server.removeAllListeners('request');
    server.on('connection', (socket: Socket) => this.#take(socket));
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      if (socket.destroyed) return;
      if (this.#sockets.get(socket) === 'busy') return abandon(socket);
      this.#use(socket, 'busy');
      response.once('close', () => this.#use(socket, 'idle'));
      for (const handle of handlers) Reflect.apply(handle, server, [request, response]);
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

/**
 * Ends a connection, and the reading of what has come on it. The parser of Node 24 would go on through all requests of one piece, 1500 of
 * them, and the end costs each of them an error. Parsers are used again, so what is replaced is put back.
 */
function abandon(socket: Socket): void {
  const parser: unknown = Reflect.get(socket, 'parser');
  if (typeof parser === 'object' && parser !== null) {
    const onHeadersComplete: unknown = Reflect.get(parser, ON_HEADERS_COMPLETE);
    Reflect.set(parser, ON_HEADERS_COMPLETE, () => REFUSED);
    socket.once('close', () => Reflect.set(parser, ON_HEADERS_COMPLETE, onHeadersComplete));
  }
  socket.destroy();
}

/** HTTPParser.kOnHeadersComplete of Node, which has no public name. */
const ON_HEADERS_COMPLETE = 2;
/** To llhttp: an error, which ends the parsing. */
const REFUSED = -1;
