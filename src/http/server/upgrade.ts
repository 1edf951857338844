import type { IncomingMessage } from 'node:http';
import { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { parseListField } from '../../core/http-semantics/list-field.ts';
import type { Millis } from '../../core/scalars.ts';
import { parseExpect } from '../headers/expect-header.ts';
import { lingeringClose } from './end-response.ts';

/** The only protocol that clients may change to. */
export const WEBSOCKET = 'websocket';

/** Detects a client that has vanished: tunnels have no idle timeout. */
const KEEP_ALIVE_PROBE: Millis = 60_000;

/**
 * Whether a request is upgraded (RFC 6455 §4.1). Other upgrades are ignored (RFC 9110 §7.8), and so are upgrades with a body and
 * pipelined ones.
 */
export function isWebSocketUpgrade(request: IncomingMessage): boolean {
  const { headers } = request;
  if (request.method !== 'GET' || request.httpVersion !== '1.1') return false;
  if (parseExpect(headers.expect) !== 'nothing') return false;
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0) return false;
  if (hasPendingResponse(request.socket)) return false;
  return parseListField(headers.upgrade?.toLowerCase()).includes(WEBSOCKET);
}

/** An earlier response of this connection is not finished (by Node's private field): two cannot be written at once. */
function hasPendingResponse(socket: Socket): boolean {
  return '_httpMessage' in socket && socket._httpMessage !== null;
}

/** A request for a change of protocol, whose connection Node has handed over. It ends with the response, or becomes a tunnel. */
export class Upgrade {
  /** For a response other than 101; its `close` means that the client has disconnected. */
  readonly response: ServerResponse;
  readonly #socket: Socket;

  /** @param head bytes that the client sent after its request */
  constructor(request: IncomingMessage, socket: Duplex, head: Buffer) {
    if (!(socket instanceof Socket)) throw new TypeError('the connection belongs to another server');
    this.#socket = socket;
    this.response = new ServerResponse(request);
    this.response.shouldKeepAlive = false;
    this.response.on('finish', this.#onResponseFinished);
    if (head.length > 0) socket.unshift(head);
    socket.setTimeout(0);
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE);
    socket.on('error', () => undefined); // `close` follows
    // Node does this for the responses of its own connections.
    socket.on('drain', this.#onDrain);
    // A client that ends its side before the response counts as gone, because it requested a two-way protocol.
    socket.on('end', this.#onEnd);
    this.response.assignSocket(socket);
  }

  /** The upgrade is declined: what the client sends is dropped, and read only to notice that it leaves. */
  decline(): void {
    this.#socket.resume();
  }

  /** The connection, for a tunnel. The response emits no `close` any more. */
  takeSocket(): Socket {
    const socket = this.#socket;
    this.response.off('finish', this.#onResponseFinished);
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

  readonly #onResponseFinished = (): void => {
    lingeringClose(this.takeSocket());
    this.response.emit('close');
  };
}
