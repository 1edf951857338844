import { EventEmitter } from 'node:events';
import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Outbound } from './server-response.ts';

/** How long a client may go on with its upload when it has its answer. */
const LINGER: Millis = 1000;

/**
 * Frames that may wait on a connection before no more interim answers are added to them. They have no flow control, as bodies
 * have (RFC 9113 §5.2), so that one that is not read would keep all that an upstream likes to say.
 */
const MOST_WAITING = 32;

/** An answer over HTTP/2: one stream of a connection that others share, so nothing here ends the connection. */
export class Http2Outbound extends EventEmitter implements Outbound {
  statusCode = 200;
  readonly #stream: ServerHttp2Stream;
  readonly #isHead: boolean;
  #trailers: OutgoingHttpHeaders = {};
  /** Nothing more is to be written: the answer is at its end, or has no body. */
  #ended = false;
  #whole = false;
  #linger: NodeJS.Timeout | undefined;

  /** @param isHead its answer has no body, whatever is written */
  constructor(stream: ServerHttp2Stream, isHead: boolean) {
    super();
    this.#stream = stream;
    this.#isHead = isHead;
    stream.on('error', () => undefined); // told by `close`
    stream.on('drain', () => this.emit('drain'));
    stream.on('close', () => {
      clearTimeout(this.#linger);
      this.#whole = this.#ended && stream.rstCode === 0;
      this.emit('close');
    });
  }

  get headersSent(): boolean {
    return this.#stream.headersSent;
  }

  get destroyed(): boolean {
    return this.#stream.closed || this.#stream.destroyed;
  }

  /** Of the stream itself it is true too when its client has reset it (Node 24). */
  get writableFinished(): boolean {
    return this.#whole;
  }

  get writableNeedDrain(): boolean {
    return this.#stream.writableNeedDrain;
  }

  writeContinue(): void {
    if (!this.destroyed) this.#stream.additionalHeaders({ ':status': 100 });
  }

  /** An answer on the way to the final one. False: no more of them, the client takes them more slowly than they come. */
  writeInformation(status: number, flat: readonly string[]): boolean {
    if (this.destroyed || this.headersSent) return false;
    this.#stream.additionalHeaders({ ...fieldsOf(flat), ':status': status });
    return (this.#stream.session?.state.outboundQueueSize ?? 0) < MOST_WAITING;
  }

  /** HTTP/2 has no reason phrase (RFC 9113 §8.3.2). */
  writeHead(status: number, _reasonPhrase: string, flat: readonly string[]): void {
    if (this.destroyed) return;
    const headers = fieldsOf(flat);
    const bodiless = this.#isHead || status === 204 || status === 205 || status === 304;
    if (status === 205) delete headers['content-length']; // node:http2 sends no body with it, whatever is written
    // To wait for trailers costs a frame. An upstream that told the length sends none.
    const waitForTrailers = !bodiless && headers['content-length'] === undefined;
    this.#stream.respond({ ...headers, ':status': status }, { waitForTrailers });
    this.statusCode = status;
    this.#ended = this.#stream.writableEnded; // node:http2 has done so where there is no body
    if (waitForTrailers) this.#stream.once('wantTrailers', this.#onWantTrailers);
  }

  write(chunk: Buffer | string): boolean {
    return chunk.length === 0 || this.#ended || this.destroyed || this.#stream.write(chunk);
  }

  addTrailers(trailers: readonly (readonly [string, string])[]): void {
    this.#trailers = fieldsOf(trailers.flat());
  }

  /** An upload that goes on is cut off after a while, by NO_ERROR: its answer stands (RFC 9113 §8.1). */
  end(rest?: Buffer): void {
    if (this.destroyed) return;
    const stream = this.#stream;
    if (this.#ended) stream.end();
    else stream.end(rest);
    this.#ended = true;
    if (!stream.endAfterHeaders && !stream.readableEnded) this.#linger = setTimeout(this.#closeUpload, LINGER);
  }

  /**
   * Not before all of the answer has gone: Node 24.21 would put the reset off until then, and never send it if the stream is
   * destroyed meanwhile. What becomes of that is told in http2-upstream-stream.ts. And destroyed it has to be: what of the upload has come
   * and is not read would keep it.
   */
  readonly #closeUpload = (): void => {
    if (!this.#stream.writableFinished) return void this.#stream.once('finish', this.#closeUpload);
    this.#stream.close();
    this.#stream.destroy();
  };

  readonly #onWantTrailers = (): void => {
    if (!this.destroyed) this.#stream.sendTrailers(this.#trailers);
  };

  /** Not by `close(code)`: Node 24 then ends the stream first, and what was cut would look whole to its client. */
  destroy(): void {
    this.#stream.destroy(new Error('broken off'));
  }
}

/** What is about a connection has no place in HTTP/2 (RFC 9113 §8.2.2). */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'te',
]);

/** As HTTP/2 wants them: names in lower case, no white space around values (RFC 9113 §8.2.1); of several of a name all values. */
function fieldsOf(flat: readonly string[]): OutgoingHttpHeaders {
  const fields = new Map<string, string | string[]>();
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const name = (flat[i] ?? '').toLowerCase();
    const value = (flat[i + 1] ?? '').replace(/[\t ]+$/, ''); // undici 8 leaves what is behind
    if (OF_CONNECTION.has(name)) continue;
    const before = fields.get(name);
    fields.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(fields);
}
