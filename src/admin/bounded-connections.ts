import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ResourceBound } from '../core/overload/resource-bound.ts';

/**
 * Bounds the connections of an operator listener. A connection beyond the bound is still accepted, so that probes are always
 * answered: it evicts the connection that has been idle longest, or else the oldest busy one, of the address that has the most of them.
 * A connection that pipelines a request before it has its response is closed: a thousand pipelined scrapes would delay probes.
 */
export class BoundedConnections {
  readonly #max: number;
  /** Least recently used first; `busy`: a response is pending. */
  readonly #sockets = new Map<Socket, 'idle' | 'busy'>();
  #evicted = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get bound(): ResourceBound {
    return { name: 'admin_connections', used: this.#sockets.size / this.#max, reached: this.#evicted };
  }

  /** Wraps the request handlers of the server, so it must be called after they are registered. */
  attach(server: Server): void {
    const handlers = server.listeners('request');
    server.removeAllListeners('request');
    server.on('connection', (socket: Socket) => this.#onConnection(socket));
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      if (socket.destroyed) return;
      if (this.#sockets.get(socket) === 'busy') return abandon(socket);
      this.#markUsed(socket, 'busy');
      response.once('close', () => this.#markUsed(socket, 'idle'));
      for (const handle of handlers) Reflect.apply(handle, server, [request, response]);
    });
  }

  #onConnection(socket: Socket): void {
    if (this.#sockets.size >= this.#max) {
      this.#evicted += 1;
      this.#evictCandidate()?.destroy();
    }
    this.#sockets.set(socket, 'idle');
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #markUsed(socket: Socket, state: 'idle' | 'busy'): void {
    if (this.#sockets.delete(socket)) this.#sockets.set(socket, state);
  }

  /** Removes the candidate at once, because its `close` event may come after the next connection. */
  #evictCandidate(): Socket | undefined {
    const counts = new Map<string | undefined, number>();
    for (const { remoteAddress } of this.#sockets.keys()) {
      counts.set(remoteAddress, (counts.get(remoteAddress) ?? 0) + 1);
    }
    const most = Math.max(...counts.values());
    let found: Socket | undefined;
    for (const [socket, state] of this.#sockets) {
      if (counts.get(socket.remoteAddress) !== most) continue;
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
 * Closes a connection and stops the parsing of data already received. Without this, the parser of Node 24 goes through all
 * requests of one chunk (1500 of them), each of which then fails with an error. Node reuses parsers, so the callback is restored.
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

/** HTTPParser.kOnHeadersComplete of Node; it has no public name. */
const ON_HEADERS_COMPLETE = 2;
/** An error to llhttp, which ends the parsing. */
const REFUSED = -1;
