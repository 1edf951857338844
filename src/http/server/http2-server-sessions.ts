import type { IncomingHttpHeaders, Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { constants, createServer } from 'node:http2';
import type { Duplex } from 'node:stream';
import { MAX_CONCURRENT_STREAMS } from '../../config/schema/listen-schema.ts';
import type { Millis } from '../../core/scalars.ts';
import { Http2StreamRequest } from './http2-stream-request.ts';
import { Http2StreamResponse } from './http2-stream-response.ts';
import { MAX_SESSION_MEMORY } from '../undici/http2-session-memory.ts';

/**
 * The largest head that nghttp2 sends, as it estimates it: the text and 12 bytes for each field. The 64 KiB that an upstream may
 * send in names and values are up to 64 Ki fields. By default nghttp2 resets the stream and closes the connection over 64 KiB.
 */
const MAX_SENT_HEAD = 1024 * 1024;

/**
 * HTTP/2 sessions of clients, on connections accepted elsewhere. node:http2 bounds abuse (Node 24, nghttp2): a client may reset
 * 1000 streams at once and 33 per second after that (CVE-2023-44487), and continue a head in 8 frames (CVE-2024-28182); beyond
 * that its connection is closed.
 */
export class Http2ServerSessions {
  readonly #server: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #idleTimeout: Millis;
  #isDraining = false;
  #onAllClosed: () => void = () => undefined;

  constructor(
    { idle, maxHeaderSize }: { readonly idle: Millis; readonly maxHeaderSize: number },
    receive: (request: Http2StreamRequest, response: Http2StreamResponse) => void,
  ) {
    this.#idleTimeout = idle;
    this.#server = createServer({
      maxSessionMemory: MAX_SESSION_MEMORY,
      maxSendHeaderBlockLength: MAX_SENT_HEAD,
      settings: { maxConcurrentStreams: MAX_CONCURRENT_STREAMS, maxHeaderListSize: maxHeaderSize, enablePush: false },
      // Repeated headers of an upstream are forwarded unchanged, as over HTTP/1.1.
      strictSingleValueFields: false,
      // nghttp2 would drop an invalid field and continue, while RFC 9113 §8.2.1 calls the whole request malformed. So it lets
      // white space through, which is checked here.
      strictFieldWhitespaceValidation: false,
    });
    this.#server.on('session', (session) => this.#track(session));
    this.#server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags, raw: string[]) => {
      const response = new Http2StreamResponse(stream, headers[':method'] === 'HEAD');
      const { socket } = stream.session ?? {};
      if (socket === undefined) return; // the session is closed already
      if (raw.some(hasSurroundingSpace)) return stream.close(constants.NGHTTP2_PROTOCOL_ERROR);
      receive(new Http2StreamRequest(stream, headers, raw, socket), response);
    });
  }

  /** @param socket that negotiated HTTP/2 */
  accept(socket: Duplex): void {
    this.#server.emit('connection', socket);
  }

  /** Sends GOAWAY, which names the last request that gets a response: clients may send the others elsewhere. */
  drain(): void {
    this.#isDraining = true;
    for (const session of this.#sessions) session.close();
  }

  /** Resolves when clients have read everything and closed, or after this time. */
  async flush(within: Millis): Promise<void> {
    if (this.#sessions.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, within);
      this.#onAllClosed = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Closes a session that has had no request for the idle time. Other frames, such as PING, do not count. */
  #track(session: ServerHttp2Session): void {
    if (this.#isDraining) return session.destroy();
    this.#sessions.add(session);
    let streams = 0;
    const timer = setTimeout(() => {
      if (streams === 0) session.close();
    }, this.#idleTimeout);
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
      if (this.#sessions.size === 0) this.#onAllClosed();
    });
  }
}

function hasSurroundingSpace(text: string): boolean {
  return isSpace(text.charCodeAt(0)) || isSpace(text.charCodeAt(text.length - 1));
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
