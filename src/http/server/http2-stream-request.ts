import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { Readable } from 'node:stream';
import { readExpectation } from '../headers/expect-header.ts';
import type { Inbound } from './server-request.ts';
import { withoutQuery } from './server-request.ts';
import { isSameAuthority } from '../request/request-target.ts';

/**
 * A request over HTTP/2. Its body ends only if the client ended it: Node 24 tells `end` of a stream that was reset, and
 * its own compatibility layer passes that on, so that half a payment would look like a whole one.
 */
export class Http2Inbound extends Readable implements Inbound {
  verb: string;
  target: string;
  expectsContinue: boolean;
  readonly httpVersion = '2.0';
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly hasBody: boolean;
  readonly socket: Inbound['socket'];
  readonly #stream: ServerHttp2Stream;
  #isAttached = false;

  /** @param raw names and values in turn, pseudo-headers among them */
  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    raw: readonly string[],
    socket: Inbound['socket'],
  ) {
    super();
    this.#stream = stream;
    this.socket = socket;
    this.verb = headers[':method'] ?? '';
    this.target = headers[':path'] ?? '';
    this.headers = headers;
    this.rawHeaders = plainHeaders(raw, headers[':scheme'] ?? '');
    headers.host ??= headers[':authority'];
    this.hasBody = !stream.endAfterHeaders;
    this.expectsContinue = readExpectation(headers.expect) === 'continue';
    // Its client may break off when nobody reads.
    this.on('error', () => undefined);
    if (this.hasBody) stream.on('close', this.#onClose);
    else this.push(null);
  }

  get complete(): boolean {
    return !this.hasBody || this.readableEnded;
  }

  get path(): string {
    return withoutQuery(this.target);
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
    if (this.#stream.aborted || this.#stream.closed) return; // reset, whatever the code: not the end of the body
    this.push(null);
  };

  readonly #onClose = (): void => {
    if (!this.readableEnded) this.destroy(new Error('the client broke off'));
  };
}

/**
 * As HTTP/1.1 has them: `:authority` as Host (RFC 9113 §8.3.1), a Host beside it only where it says something else, and
 * the crumbs of a cookie put together again (§8.2.3).
 */
function plainHeaders(raw: readonly string[], scheme: string): string[] {
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
