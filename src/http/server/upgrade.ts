import type { IncomingMessage } from 'node:http';
import { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { listElements } from '../../core/http-semantics/list-field.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { readExpectation } from '../headers/expect-header.ts';

/** What the proxy lets clients change to. */
export const WEBSOCKET = 'websocket';

/** How long a client that was answered instead may take to close its side. */
const LINGER: Millis = 3000;

/** A client that keeps quiet and one that has vanished look the same, and neither has an idle limit. */
const KEEP_ALIVE_PROBE: Millis = 60_000;

/**
 * Whether a request is to be upgraded (RFC 6455 §4.1). One that asks for something else is answered as if it had not
 * (RFC 9110 §7.8), and so is one with a body, and one that was pipelined.
 */
export function asksForWebSocket(request: IncomingMessage): boolean {
  const { headers } = request;
  if (request.method !== 'GET' || request.httpVersion !== '1.1') return false;
  if (readExpectation(headers.expect) !== 'nothing') return false;
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0) return false;
  if (isAnswering(request.socket)) return false;
  return listElements(headers.upgrade?.toLowerCase()).includes(WEBSOCKET);
}

/** An answer to an earlier request is still to come on this connection (Node's own note of it): two cannot be written at once. */
function isAnswering(socket: Socket): boolean {
  return '_httpMessage' in socket && socket._httpMessage !== null;
}

/** A request to change to another protocol, whose connection Node has handed over. It ends with the answer, or becomes a tunnel. */
export class Upgrade {
  /** For an answer that is none to the upgrade; its `close` tells that the client has gone. */
  readonly response: ServerResponse;
  readonly #socket: Socket;

  /** @param head what the client has sent already, before it was asked to */
  constructor(request: IncomingMessage, socket: Duplex, head: Buffer) {
    if (!(socket instanceof Socket)) throw new TypeError('a connection of another server');
    this.#socket = socket;
    this.response = new ServerResponse(request);
    this.response.shouldKeepAlive = false;
    this.response.on('finish', this.#onAnswered);
    if (head.length > 0) socket.unshift(head);
    socket.setTimeout(0);
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE);
    socket.on('error', () => undefined); // told by `close`
    // What Node does for the answers of its own connections.
    socket.on('drain', this.#onDrain);
    // One that has said all before it was answered has gone: what it asked for is to talk.
    socket.on('end', this.#onEnd);
    this.response.assignSocket(socket);
  }

  /** The answer is another than it asked for: what its client says meanwhile is for nobody, but that it leaves is heard. */
  decline(): void {
    this.#socket.resume();
  }

  /** The connection, for both sides to say on it what they like. No `close` of the answer comes any more. */
  release(): Socket {
    const socket = this.#socket;
    this.response.off('finish', this.#onAnswered);
    this.response.detachSocket(socket);
    socket.off('drain', this.#onDrain);
    socket.off('end', this.#onEnd);
    return socket;
  }

  readonly #onDrain = (): void => {
    this.response.emit('drain');
  };

  readonly #onEnd = (): void => {
    this.#socket.destroy();
  };

  readonly #onAnswered = (): void => {
    const socket = this.release();
    socket.end();
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), LINGER);
    socket.once('close', () => clearTimeout(timer));
    this.response.emit('close');
  };
}
