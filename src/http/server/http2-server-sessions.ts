import type { IncomingHttpHeaders, Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { constants, createServer } from 'node:http2';
import type { Duplex } from 'node:stream';
import { MAX_STREAMS } from '../../config/schema/listen-schema.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { Http2Inbound } from './http2-stream-request.ts';
import { Http2Outbound } from './http2-stream-response.ts';
import { MOST_SESSION_MEMORY } from '../undici/http2-session-memory.ts';

/**
 * HTTP/2 towards clients, on connections that others accept. Abuse is bounded by node:http2 (Node 24, nghttp2): a client
 * may reset 1000 streams at once and 33 a second after that (CVE-2023-44487), continue a head in 8 frames
 * (CVE-2024-28182); beyond that its connection ends.
 */
export class Http2Sessions {
  readonly #server: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #idle: Millis;
  #isDraining = false;
  #onNone: () => void = () => undefined;

  constructor(
    { idle, maxHeaderSize }: { readonly idle: Millis; readonly maxHeaderSize: number },
    receive: (request: Http2Inbound, response: Http2Outbound) => void,
  ) {
    this.#idle = idle;
    this.#server = createServer({
      maxSessionMemory: MOST_SESSION_MEMORY,
      settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: maxHeaderSize, enablePush: false },
      // What an upstream repeats is passed on as it is, over HTTP/1.1 too.
      strictSingleValueFields: false,
      // nghttp2 drops a field that may not be and goes on (RFC 9113 §8.2.1 calls the whole malformed). What it can be told to
      // let through is found here.
      strictFieldWhitespaceValidation: false,
    });
    this.#server.on('session', (session) => this.#keep(session));
    this.#server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags, raw: string[]) => {
      const response = new Http2Outbound(stream, headers[':method'] === 'HEAD');
      const { socket } = stream.session ?? {};
      if (socket === undefined) return; // it has gone already
      if (raw.some(hasOuterSpace)) return stream.close(constants.NGHTTP2_PROTOCOL_ERROR);
      receive(new Http2Inbound(stream, headers, raw, socket), response);
    });
  }

  /** @param socket on which HTTP/2 was agreed */
  accept(socket: Duplex): void {
    this.#server.emit('connection', socket);
  }

  /** Tells clients which of their requests are still answered (GOAWAY): the rest they may send elsewhere, whatever it is. */
  drain(): void {
    this.#isDraining = true;
    for (const session of this.#sessions) session.close();
  }

  /** Resolves when clients have taken what was written and closed, or when they have had this long for it. */
  async settle(within: Millis): Promise<void> {
    if (this.#sessions.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, within);
      this.#onNone = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Without a request for as long as that, a connection is let go. Frames that are none, such as pings, do not count. */
  #keep(session: ServerHttp2Session): void {
    if (this.#isDraining) return session.destroy();
    this.#sessions.add(session);
    let streams = 0;
    const timer = setTimeout(() => {
      if (streams === 0) session.close();
    }, this.#idle);
    session.on('stream', (stream) => {
      streams += 1;
      stream.on('close', () => {
        streams -= 1;
        if (streams === 0) timer.refresh();
      });
    });
    session.on('close', () => {
      clearTimeout(timer);
      this.#sessions.delete(session);
      if (this.#sessions.size === 0) this.#onNone();
    });
  }
}

function hasOuterSpace(text: string): boolean {
  return isSpace(text.charCodeAt(0)) || isSpace(text.charCodeAt(text.length - 1));
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
