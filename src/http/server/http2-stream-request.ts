import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { constants } from 'node:http2';
import { Readable } from 'node:stream';
import { parseExpect } from '../headers/expect-header.ts';
import type { BodyListener, HttpServerRequest } from './server-request.ts';
import { takeBuffered, withoutQuery } from './server-request.ts';
import { isSameAuthority } from '../request/request-target.ts';

/**
 * A request over HTTP/2. Its body ends only if the client ended it: Node 24 emits `end` for a stream that was reset, and its
 * compatibility layer forwards that, so that half a payment would look complete.
 */
export class Http2StreamRequest extends Readable implements HttpServerRequest {
  verb: string;
  target: string;
  expectsContinue: boolean;
  readonly httpVersion = '2.0';
  headers: IncomingHttpHeaders;
  rawHeaders: readonly string[];
  readonly hasBody: boolean;
  readonly socket: HttpServerRequest['socket'];
  bodyListener: BodyListener | undefined;
  readonly #stream: ServerHttp2Stream;
  #isAttached = false;

  /** @param raw names and values in turn, pseudo-headers among them */
  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    raw: readonly string[],
    socket: HttpServerRequest['socket'],
  ) {
    super();
    this.#stream = stream;
    this.socket = socket;
    this.verb = headers[':method'] ?? '';
    this.target = headers[':path'] ?? '';
    this.headers = headers;
    joinRepeatedFields(headers, raw);
    this.rawHeaders = toHttp1Headers(raw, headers[':scheme'] ?? '');
    headers.host ??= headers[':authority'];
    this.hasBody = !stream.endAfterHeaders;
    this.expectsContinue = parseExpect(headers.expect) === 'continue';
    // The client may abort while nothing reads the body.
    this.on('error', () => undefined);
    if (this.hasBody) stream.on('close', this.#onClose);
    else this.push(null);
  }

  get complete(): boolean {
    return !this.hasBody || this.readableEnded || this.#hasClientEnded();
  }

  get path(): string {
    return withoutQuery(this.target);
  }

  /** From the stream: this one would have it only in a later turn of the event loop. */
  takeArrivedBody(): Buffer | undefined {
    return this.complete && !this.#isAttached ? takeBuffered(this.#stream) : undefined;
  }

  /** Also if nothing has read the body: `readableEnded` becomes true only when its end is read. */
  #hasClientEnded(): boolean {
    return this.#stream.state.state === constants.NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE;
  }

  override _read(): void {
    if (!this.hasBody) return;
    if (!this.#isAttached) {
      this.#isAttached = true;
      this.#stream.on('data', this.#onData);
      this.#stream.on('end', this.#onEnd);
    }
    this.#stream.resume();
  }

  readonly #onData = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.#stream.pause();
  };

  readonly #onEnd = (): void => {
    if (this.#stream.aborted || this.#stream.closed) return; // a reset is not the end of the body
    this.push(null);
  };

  readonly #onClose = (): void => {
    if (!this.readableEnded) this.destroy(new Error('the client aborted its upload'));
  };
}

/** Fields of requests of which Node 24 gives the first line over HTTP/2, and all lines as a list over HTTP/1.1. */
const LISTS_OVER_HTTP1 = [
  'access-control-request-method',
  'content-encoding',
  'content-language',
  'content-location',
  'content-md5',
  'content-range',
  'date',
  'dnt',
  'if-match',
  'if-none-match',
  'if-range',
  'range',
  'tk',
  'upgrade-insecure-requests',
];

/** Joins them, so that every decision about a request equals that over HTTP/1.1: a body may be coded in the second line. */
function joinRepeatedFields(headers: IncomingHttpHeaders, raw: readonly string[]): void {
  for (const name of LISTS_OVER_HTTP1) {
    if (headers[name] === undefined) continue;
    headers[name] = raw.filter((_, i) => i % 2 === 1 && raw[i - 1] === name).join(', ');
  }
}

/**
 * The headers as in HTTP/1.1: `:authority` as Host (RFC 9113 §8.3.1), with a Host beside it only if the two differ, and cookie
 * fragments joined (§8.2.3).
 */
function toHttp1Headers(raw: readonly string[], scheme: string): string[] {
  const out: string[] = [];
  let authority: string | undefined;
  let cookieAt = -1;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const value = raw[i + 1] ?? '';
    if (name.startsWith(':')) {
      if (name === ':authority') {
        authority = value;
        out.push('host', value);
      }
      continue;
    }
    if (name === 'host' && authority !== undefined && isSameAuthority(value, authority, scheme)) continue;
    if (name === 'cookie') {
      if (cookieAt >= 0) {
        out[cookieAt] += `; ${value}`;
        continue;
      }
      cookieAt = out.length + 1;
    }
    out.push(name, value);
  }
  return out;
}
