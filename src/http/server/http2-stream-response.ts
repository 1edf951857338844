import { EventEmitter } from 'node:events';
import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Millis } from '../../core/scalars.ts';
import { onStreamClose } from '../undici/http2-stream-close.ts';
import { http2HeadSize, toHttp2Fields } from './http2-fields.ts';
import type { HttpServerResponse } from './server-response.ts';

/** How long a client may continue its upload after its response. */
const UPLOAD_LINGER: Millis = 1000;

/**
 * Frames that may be queued on a connection before interim responses are dropped. Unlike bodies they have no flow control
 * (RFC 9113 §5.2), so a client that does not read would make them pile up.
 */
const MAX_QUEUED_FRAMES = 32;

/** A response over HTTP/2: one stream of a shared connection, so nothing here closes the connection. */
export class Http2StreamResponse extends EventEmitter implements HttpServerResponse {
  statusCode = 200;
  readonly #stream: ServerHttp2Stream;
  readonly #isHead: boolean;
  #trailers: OutgoingHttpHeaders = {};
  /** Nothing more is written: the response has ended, or has no body. */
  #hasEnded = false;
  /** The end of the response has been sent. Undefined: not known. */
  #isComplete: boolean | undefined;
  #linger: NodeJS.Timeout | undefined;

  /** @param isHead the response has no body, whatever is written */
  constructor(stream: ServerHttp2Stream, isHead: boolean) {
    super();
    this.#stream = stream;
    this.#isHead = isHead;
    stream.on('error', () => undefined); // `close` follows
    stream.on('drain', () => this.emit('drain'));
    onStreamClose(stream, this.#onStreamClose);
    stream.on('close', () => {
      clearTimeout(this.#linger);
      this.#isComplete ??= this.#hasEnded && stream.rstCode === 0;
      this.emit('close');
    });
  }

  get headersSent(): boolean {
    return this.#stream.headersSent;
  }

  get destroyed(): boolean {
    return this.#stream.closed || this.#stream.destroyed;
  }

  /** Not that of Node 24's stream, which is true even if the client has reset it. */
  get writableFinished(): boolean {
    return this.#isComplete ?? this.#isEndSent;
  }

  /** END_STREAM has been sent, and the stream is still open: the client continues its upload. */
  get #isEndSent(): boolean {
    return this.#hasEnded && this.#stream.writableFinished && this.#stream.state.localClose === 1;
  }

  get writableNeedDrain(): boolean {
    return this.#stream.writableNeedDrain;
  }

  writeContinue(): void {
    if (!this.destroyed) this.#stream.additionalHeaders({ ':status': 100 });
  }

  /**
   * Whether the client accepts a head of this size. It may announce a limit (SETTINGS_MAX_HEADER_LIST_SIZE), and would reset the
   * stream over a larger head: of a write it would not even learn that it was sent.
   */
  accepts(flat: readonly string[]): boolean {
    const limit = this.#stream.session?.remoteSettings.maxHeaderListSize;
    return limit === undefined || http2HeadSize(flat) <= limit;
  }

  /** Writes an interim response, unless it is too large for the client. @returns false if no more must follow: the client reads them more slowly than they arrive */
  writeInformation(status: number, flat: readonly string[]): boolean {
    if (this.destroyed || this.headersSent) return false;
    if (!this.accepts(flat)) return true;
    this.#stream.additionalHeaders({ ...toHttp2Fields(flat), ':status': status });
    return (this.#stream.session?.state.outboundQueueSize ?? 0) < MAX_QUEUED_FRAMES;
  }

  /** HTTP/2 has no reason phrase (RFC 9113 §8.3.2). */
  writeHead(status: number, _reasonPhrase: string, flat: readonly string[]): void {
    if (this.destroyed) return;
    const headers = toHttp2Fields(flat);
    const bodiless = this.#isHead || status === 204 || status === 205 || status === 304;
    if (status === 205) delete headers['content-length']; // node:http2 sends no body with it, whatever is written
    // Waiting for trailers puts the end into a frame of its own. So a response with a length has to announce its trailers.
    const mayHaveTrailers = headers['content-length'] === undefined || headers['trailer'] !== undefined;
    const waitForTrailers = !bodiless && mayHaveTrailers;
    this.#stream.respond({ ...headers, ':status': status }, { waitForTrailers });
    this.statusCode = status;
    this.#hasEnded = this.#stream.writableEnded; // node:http2 ends it if there is no body
    if (waitForTrailers) this.#stream.once('wantTrailers', this.#onWantTrailers);
  }

  write(chunk: Buffer | string): boolean {
    return chunk.length === 0 || this.#hasEnded || this.destroyed || this.#stream.write(chunk);
  }

  addTrailers(trailers: readonly (readonly [string, string])[]): void {
    this.#trailers = toHttp2Fields(trailers.flat());
  }

  /** An upload that continues is reset after a while with NO_ERROR, which keeps the response valid (RFC 9113 §8.1). */
  end(lastChunk?: Buffer): void {
    if (this.destroyed) return;
    const stream = this.#stream;
    if (this.#hasEnded) stream.end();
    else stream.end(lastChunk);
    this.#hasEnded = true;
    if (!stream.endAfterHeaders && !stream.readableEnded) this.#linger = setTimeout(this.#closeUpload, UPLOAD_LINGER);
  }

  /** A stream that was reset is destroyed once Node has closed it: after NO_ERROR, Node would wait for what nobody reads or writes. */
  readonly #onStreamClose = (isEndSent: boolean | undefined): void => {
    this.#isComplete = isEndSent;
    if (isEndSent === false) process.nextTick(() => this.#stream.destroy());
  };

  /**
   * Waits until the whole response has been written: Node 24.21 would delay the reset until then, and never send it if the stream
   * is destroyed meanwhile (see http2-upstream-stream.ts). The stream must be destroyed, because unread bytes of the upload would
   * keep it open.
   */
  readonly #closeUpload = (): void => {
    if (!this.#stream.writableFinished) return void this.#stream.once('finish', this.#closeUpload);
    this.#stream.close();
    this.#stream.destroy();
  };

  readonly #onWantTrailers = (): void => {
    if (!this.destroyed) this.#stream.sendTrailers(this.#trailers);
  };

  /**
   * If the whole response has been sent, only the upload is reset: an error would take the response back (RFC 9113 §8.1). Else
   * not by `close(code)`: Node 24 would end the stream first, and a truncated response would look complete.
   */
  destroy(): void {
    if (this.#isEndSent) return this.#closeUpload();
    this.#stream.destroy(new Error('the response was aborted'));
  }
}
