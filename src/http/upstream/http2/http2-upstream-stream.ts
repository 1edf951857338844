import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import { constants } from 'node:http2';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { errors } from 'undici';
import type { PooledSend, RequestWriter } from '../pooled-send.ts';
import { DefectiveResponseError, MAX_RESPONSE_HEADERS } from '../response-defect.ts';
import { headersLength, http2Fields } from '../../headers/raw-headers.ts';
import { Http2BodyProgress } from './http2-body-progress.ts';
import { isBodyless, resetUnlessEnded } from './http2-bodyless-response.ts';
import { isResetBusy, resetHeldHead } from './http2-held-head.ts';
import { fitsHttp2Head, toHttp2Head } from './http2-request-head.ts';
import { uploadBody } from './http2-upload.ts';
import { isOfConnection, notProcessedError, streamResetError } from './http2-stream-errors.ts';

/** The connection of a stream. */
export interface Http2StreamCarrier {
  readonly session: ClientHttp2Session;
  /** From GOAWAY: the last stream that the upstream processed; undefined without GOAWAY. */
  readonly lastStreamId: number | undefined;
  /** The first error of a GOAWAY. Node gives it to the streams that it ends, as if the upstream had reset them with it. */
  readonly errorCode: number | undefined;
  /** Why the connection closed, if known. */
  readonly error: Error | undefined;
  /** The head of a final response has arrived. */
  onResponse(send: Http2UpstreamStream, status: number): void;
  /** The stream is closed, and its place free. The send's error, if any, has not been reported yet: see `takeError`. */
  onClosed(send: Http2UpstreamStream): void;
  /** Part of an upload was written. */
  onUploadProgress(): void;
}

/**
 * One send over HTTP/2: a stream of a shared connection. It reports the end of a response as HTTP defines it, which
 * Node's streams do not: a response is complete when END_STREAM has arrived, whatever resets the stream later (RFC 9113
 * §8.1), and truncated when a reset arrives first, whatever its code. The body is not read before the head is handled.
 * When the response is complete, an upload that is still under way is reset, so that nothing of it remains on the
 * connection.
 */
export class Http2UpstreamStream implements Dispatcher.DispatchController, RequestWriter {
  readonly pending: PooledSend;
  rawHeaders: string[] = [];
  rawTrailers: string[] = [];
  aborted = false;
  reason: Error | null = null;
  /** This side reset the stream. */
  wasResetByUs = false;
  isUnwritten = false;
  /** The first error: of the stream, or why it was aborted. */
  error: Error | undefined = undefined;
  readonly #carrier: Http2StreamCarrier;
  readonly #abortController = new AbortController();
  #stream: ClientHttp2Stream | undefined;
  /** A response has begun, or an interim one: the request was read. */
  #hasResponse = false;
  /** END_STREAM has arrived. */
  #isComplete = false;
  readonly #body = new Http2BodyProgress();
  /** The end has been reported to the attempt. */
  #isReported = false;

  constructor(pending: PooledSend, carrier: Http2StreamCarrier) {
    this.pending = pending;
    this.#carrier = carrier;
    pending.writer = this;
  }

  get unwrittenBytes(): number {
    return this.#stream?.writableLength ?? 0;
  }

  get isFlushed(): boolean {
    if (this.#stream?.writableFinished !== true) return this.#stream === undefined;
    // Without a response, a head may wait in the queue of nghttp2 while the upstream reads nothing.
    return this.#hasResponse || (this.#carrier.session.state.outboundQueueSize ?? 0) === 0;
  }

  get isResetBusy(): boolean {
    return this.#stream !== undefined && !this.#hasResponse && isResetBusy(this.#stream, this.#carrier.session);
  }

  /** The upstream reset the request before its response, because it holds too much on the connection. */
  get isExcessive(): boolean {
    return !this.#hasResponse && this.#stream?.rstCode === constants.NGHTTP2_ENHANCE_YOUR_CALM;
  }

  get paused(): boolean {
    return this.#stream?.isPaused() === true;
  }

  start(): void {
    const { request } = this.pending;
    try {
      this.pending.onRequestStart(this);
    } catch (error) {
      this.error = error instanceof Error ? error : new Error(String(error));
      return this.#close();
    }
    if (this.aborted) return this.#close();
    const { path, headers, body } = request;
    if (!fitsHttp2Head(path, headers)) return this.#failUnsent('its headers are too large for HTTP/2');
    try {
      this.#stream = this.#carrier.session.request(toHttp2Head(request), {
        endStream: body === null || body === undefined,
        signal: this.#abortController.signal,
      });
    } catch (error) {
      return this.#failUnsent(error);
    }
    this.#listen(this.#stream);
    if (Buffer.isBuffer(body)) this.#stream.end(body, this.#onWritten);
    else if (body instanceof Readable) uploadBody(this.#stream, body, this.#onWritten, (error) => this.abort(error));
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.error ??= reason;
    this.#reset();
  }

  pause(): void {
    this.#stream?.pause();
  }

  resume(): void {
    this.#stream?.resume();
  }

  #listen(stream: ClientHttp2Stream): void {
    const push = stream.push.bind(stream);
    stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
      if (chunk === null) this.#onLastPush(stream);
      else if (Buffer.isBuffer(chunk)) this.#body.onReceived(chunk.length);
      const goesOn = push(chunk, encoding);
      if (!goesOn && chunk !== null) this.#body.wasBackpressured = true;
      return goesOn;
    };
    stream.on('headers', (head, _flags, raw: string[]) => this.#onHead(head, raw));
    stream.once('response', (head, flags, raw: string[]) => {
      this.#body.onHead(head, this.pending.request.takesTrailers === true);
      this.#carrier.onResponse(this, Number(head[':status']));
      this.#onHead(head, raw);
      if (this.aborted) return;
      stream.on('data', this.#onData);
      stream.once('end', this.#onEnd);
      const hasEnded = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
      if (hasEnded || !isBodyless(this.pending.request.method, Number(head[':status']))) return;
      this.#reportEnd();
      resetUnlessEnded(stream, () => this.#reset());
    });
    stream.once('trailers', (_trailers, _flags, raw: string[]) => {
      this.rawTrailers = http2Fields(raw);
      this.#checkSize(this.rawTrailers);
    });
    stream.on('error', (error) => {
      this.error ??= error;
    });
    // GOAWAY is reported in the same turn, after the end of the streams.
    stream.once('close', () => process.nextTick(this.#close));
  }

  /** Nothing more arrives. Node discards what was not read of a stream that it destroys: all of a complete response is passed on. */
  #onLastPush(stream: ClientHttp2Stream): void {
    this.#isComplete ||= this.#body.appearsComplete(stream);
    if (!this.#isComplete || this.aborted || !stream.destroyed) return;
    stream.off('data', this.#onData);
    for (let chunk: unknown = stream.read(); Buffer.isBuffer(chunk); chunk = stream.read()) this.#onData(chunk);
  }

  #onHead(head: IncomingHttpHeaders, raw: readonly string[]): void {
    this.#hasResponse = true;
    if (this.aborted) return;
    this.rawHeaders = http2Fields(raw);
    this.pending.responseVersion = '2.0';
    this.pending.onResponseStarted();
    this.#checkSize(this.rawHeaders);
    if (this.aborted) return;
    this.pending.onResponseStart(this, Number(head[':status']), head);
  }

  /** Aborts the send if these are more headers than are allowed over HTTP/1.1 too. */
  #checkSize(headers: readonly string[]): void {
    if (headersLength(headers) >= MAX_RESPONSE_HEADERS) this.abort(new DefectiveResponseError('headers_too_large'));
  }

  readonly #onData = (chunk: Buffer): void => {
    if (!this.#isReported) this.pending.onResponseData(this, chunk);
    if (this.#body.onDelivered(chunk.length)) setImmediate(this.#endWithLength);
  };

  /** A response with all its announced bytes is complete, as over HTTP/1.1: its client may go on. */
  readonly #endWithLength = (): void => {
    const stream = this.#stream;
    if (this.#isReported || this.aborted || stream === undefined) return;
    this.#reportEnd();
    resetUnlessEnded(stream, () => this.#reset());
  };

  readonly #onEnd = (): void => {
    if (this.#isComplete && !this.#isReported && !this.aborted) this.#reportEnd();
  };

  #reportEnd(): void {
    this.#isReported = true;
    this.pending.onResponseEnd(this);
    if (this.#stream?.writableFinished === false && !this.#stream.destroyed) this.#reset();
  }

  /**
   * Resets with CANCEL at once. Node 24.21 never resets a stream that is closed and then destroyed (lib/internal/http2/core.js,
   * closeStream): the upstream would wait for the rest; and at its next window update nghttp2 would ask for bytes of a stream
   * that Node has forgotten, in an endless loop (src/node_http2.cc, Provider::Stream::OnRead).
   */
  #reset(): void {
    const stream = this.#hasResponse ? undefined : this.#stream;
    this.isUnwritten = stream !== undefined && resetHeldHead(stream, this.#carrier.session);
    this.wasResetByUs = !this.isUnwritten;
    this.#abortController.abort();
  }

  readonly #onWritten = (): void => {
    this.#carrier.onUploadProgress();
    if (!this.#isReported) this.pending.onBodySent();
  };

  readonly #close = (): void => {
    this.#onEnd();
    this.#carrier.onClosed(this);
  };

  /** Why no complete response arrived; undefined if the end was reported. To be called once, after the stream is closed. */
  takeError(): Error | undefined {
    if (this.#isReported) return undefined;
    this.#isReported = true;
    const { error } = this.#carrier;
    const { id, rstCode = constants.NGHTTP2_NO_ERROR } = this.#stream ?? {};
    if (this.aborted || this.#hasResponse) return this.error ?? streamResetError(rstCode);
    const notProcessed = notProcessedError(this.#carrier, { id, rstCode, error: this.error });
    return notProcessed ?? this.error ?? error ?? streamResetError(rstCode);
  }

  /** Node refuses to write the request, or the connection cannot take it. */
  #failUnsent(why: unknown): void {
    const message = why instanceof Error ? why.message : String(why);
    this.error = why instanceof Error && isOfConnection(why) ? why : new errors.InvalidArgumentError(message);
    this.#close();
  }
}
