import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import { constants } from 'node:http2';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { errors } from 'undici';
import type { Errand } from './http1-connection.ts';
import { UnreadError } from './send-failure.ts';
import { fitsHttp2, http2Head } from './http2-request-head.ts';

/** The connection that a send is on, as far as the send has to know. */
export interface SendCarrier {
  readonly session: ClientHttp2Session;
  /** Of the streams of a connection that goes away, the last that was read; undefined while it does not. */
  readonly lastRead: number | undefined;
  /** Why it has ended, where that is known. */
  readonly error: Error | undefined;
  /** The stream is closed: its place is free. Told before what came of it, when nothing has been told yet. */
  onClosed(send: Http2Send): void;
  /** Some of an upload is on its way. */
  onWritten(): void;
}

/**
 * One send over HTTP/2: a stream of a connection that others share. Told is what HTTP tells, and nothing that Node's streams make
 * of it: an answer is whole when END_STREAM has come, whatever resets the stream after that (RFC 9113 §8.1), and cut when a
 * reset comes first, whatever its code; its body is not read before its head has been dealt with; and when it is whole, an
 * upload that still goes on is reset, so that nothing of it is left on the connection.
 */
export class Http2Send implements Dispatcher.DispatchController {
  readonly errand: Errand;
  rawHeaders: string[] = [];
  rawTrailers: string[] = [];
  aborted = false;
  reason: Error | null = null;
  /** We have reset it. */
  wasReset = false;
  readonly #carrier: SendCarrier;
  readonly #giveUp = new AbortController();
  #stream: ClientHttp2Stream | undefined;
  /** Something of an answer has come, be it an interim one: the request was read. */
  #isAnswered = false;
  /** END_STREAM has come. */
  #isWhole = false;
  /** Bytes of the answer's body that have come, and that were announced. */
  #received = 0;
  #length: number | undefined;
  /** Its client did not take all at once. */
  #wasHeldUp = false;
  /** All has been told. */
  #isOver = false;
  #error: Error | undefined;

  constructor(errand: Errand, carrier: SendCarrier) {
    this.errand = errand;
    this.#carrier = carrier;
  }

  get paused(): boolean {
    return this.#stream?.isPaused() === true;
  }

  begin(): void {
    const { options, attempt } = this.errand;
    try {
      attempt.onRequestStart(this);
    } catch (error) {
      this.#error = error instanceof Error ? error : new Error(String(error));
      return this.#close();
    }
    if (this.aborted) return this.#close();
    const { path, headers, body } = options;
    if (!fitsHttp2(path, headers)) return this.#refuse('its headers are too large for HTTP/2');
    try {
      this.#stream = this.#carrier.session.request(http2Head(options), {
        endStream: body === null || body === undefined,
        signal: this.#giveUp.signal,
      });
    } catch (error) {
      return this.#refuse(error);
    }
    this.#listen(this.#stream);
    if (Buffer.isBuffer(body)) this.#stream.end(body, this.#onWritten);
    else if (body instanceof Readable) this.#upload(this.#stream, body);
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.#error ??= reason;
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
      if (chunk === null) this.#isWhole ||= this.#seemsWhole(stream);
      else if (Buffer.isBuffer(chunk)) this.#received += chunk.length;
      const goesOn = push(chunk, encoding);
      if (!goesOn && chunk !== null) this.#wasHeldUp = true;
      return goesOn;
    };
    stream.on('headers', (head, _flags, raw: string[]) => this.#onHead(head, raw));
    stream.once('response', (head, _flags, raw: string[]) => {
      const length = head['content-length'];
      if (length !== undefined) this.#length = Number(length);
      this.#onHead(head, raw);
      if (this.aborted) return;
      stream.on('data', this.#onData);
      stream.once('end', this.#onEnd);
    });
    stream.once('trailers', (_trailers, _flags, raw: string[]) => {
      this.rawTrailers = raw;
    });
    stream.on('error', (error) => {
      this.#error ??= error;
    });
    // Whether the connection goes away is told in the same turn, behind the end of its streams.
    stream.once('close', () => process.nextTick(this.#onClose));
  }

  /**
   * Node ends a stream that was reset as it ends one that was whole; but then it is closed already. So may one be that was held up
   * by its client (Node 24.21 does not always tell of its end): by NO_ERROR, and with all that was announced. What has no
   * length, was held up, and is reset by NO_ERROR in its middle cannot be told from it.
   */
  #seemsWhole(stream: ClientHttp2Stream): boolean {
    if (!stream.closed) return true;
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) return false;
    return this.#length === undefined ? this.#wasHeldUp : this.#received === this.#length;
  }

  #onHead(head: IncomingHttpHeaders, raw: readonly string[]): void {
    this.#isAnswered = true;
    if (this.aborted) return;
    this.rawHeaders = raw.filter((_, i) => raw[i - (i % 2)]?.startsWith(':') !== true);
    const { attempt } = this.errand;
    attempt.answerVersion = '2.0';
    attempt.onResponseStarted();
    attempt.onResponseStart(this, Number(head[':status']), head);
  }

  readonly #onData = (chunk: Buffer): void => {
    if (!this.#isOver) this.errand.attempt.onResponseData(this, chunk);
  };

  readonly #onEnd = (): void => {
    if (!this.#isWhole || this.#isOver) return;
    this.#isOver = true;
    const stream = this.#stream;
    this.errand.attempt.onResponseEnd(this);
    if (stream?.writableFinished === false) this.#reset();
  };

  /**
   * At once, and by CANCEL. What is closed, and then destroyed, is never reset by Node 24.21 (lib/internal/http2/core.js,
   * closeStream): the upstream would wait for the rest; and when it next allowed for more, nghttp2 would ask for bytes of a
   * stream that Node has forgotten, in one turn of the event loop for ever (src/node_http2.cc, Provider::Stream::OnRead).
   */
  #reset(): void {
    this.wasReset = true;
    this.#giveUp.abort();
  }

  #upload(stream: ClientHttp2Stream, body: Readable): void {
    const onDrain = (): void => void body.resume();
    body.on('data', (chunk: Buffer) => {
      if (!stream.writable) return;
      if (!stream.write(chunk, this.#onWritten)) body.pause();
    });
    body.once('end', () => stream.end(this.#onWritten));
    body.once('close', () => {
      if (!body.readableEnded) this.abort(body.errored ?? new Error('the upload broke off'));
    });
    stream.on('drain', onDrain);
    stream.once('close', () => body.destroy());
  }

  readonly #onWritten = (): void => {
    this.#carrier.onWritten();
    if (!this.#isOver) this.errand.attempt.onBodySent();
  };

  readonly #onClose = (): void => this.#close();

  #close(): void {
    this.#carrier.onClosed(this);
  }

  /** Why no answer, or no whole one, came; undefined where all has been told. To be asked once, when it is closed. */
  takeError(): Error | undefined {
    if (this.#isOver) return undefined;
    this.#isOver = true;
    const { lastRead, error } = this.#carrier;
    const { id, rstCode = constants.NGHTTP2_NO_ERROR } = this.#stream ?? {};
    if (this.aborted || this.#isAnswered) return this.#error ?? broken(rstCode);
    if (lastRead !== undefined && (id === undefined || id > lastRead)) return new UnreadError('GOAWAY');
    if (rstCode === constants.NGHTTP2_REFUSED_STREAM) return new UnreadError('REFUSED_STREAM');
    return this.#error ?? error ?? broken(rstCode);
  }

  /** Node does not write such a request, or not on this connection. */
  #refuse(why: unknown): void {
    const code = why instanceof Error && 'code' in why ? why.code : undefined;
    const isOfConnection = typeof code === 'string' && OF_CONNECTION.has(code);
    const message = why instanceof Error ? why.message : String(why);
    this.#error = isOfConnection ? new UnreadError('GOAWAY') : new errors.InvalidArgumentError(message);
    this.#close();
  }
}

/** What `request` throws because no stream can be opened any more. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  'ERR_HTTP2_INVALID_SESSION',
  'ERR_HTTP2_GOAWAY_SESSION',
  'ERR_HTTP2_OUT_OF_STREAMS',
]);

function broken(rstCode: number): Error {
  return Object.assign(new Error(`the stream was reset with code ${rstCode}`), { code: 'ERR_HTTP2_STREAM_ERROR' });
}
