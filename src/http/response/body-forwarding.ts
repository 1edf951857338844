import type { Dispatcher } from 'undici';
import type { HttpServerResponse } from '../server/server-response.ts';
import type { CostTap } from '../cost/cost-tap.ts';
import type { ResponseCapture } from '../idempotency/response-capture.ts';
import { writeAndRelease } from '../undici/buffer-release.ts';
import type { ResponseReadRate } from './response-read-rate.ts';

/** Writing it sends the head: `flushHeaders` of Node 24.21 converts a latin1 head to UTF-8 (nodejs/node#1693). */
const EMPTY_CHUNK = Buffer.alloc(0);

/** What reads the body while it is forwarded. */
export interface BodyReaders {
  /** Keeps it for repeats of the request. */
  readonly capture?: ResponseCapture | undefined;
  readonly tap?: CostTap | undefined;
}

export interface ForwardingListener {
  /** Bytes moved, or the client takes more of them again. */
  onProgress(): void;
}

/**
 * Writes a response body to the client as it arrives, and pauses the upstream while the client does not read. The head and a
 * body that arrives in the same event-loop turn go out as one write.
 */
export class BodyForwarding {
  readonly response: HttpServerResponse;
  /** Bytes given to the client's connection so far. */
  writtenBytes = 0;
  readonly #controller: Dispatcher.DispatchController | undefined;
  readonly #listener: ForwardingListener;
  readonly #readRate: ResponseReadRate | undefined;
  readonly #capture: ResponseCapture | undefined;
  readonly #tap: CostTap | undefined;
  /** Bytes written since the client had read everything. */
  #unreadBytes = 0;
  /** The first chunk of the body, held until the turn ends or another chunk arrives. */
  #firstChunk: Buffer | undefined;
  #hasWritten = false;
  #isPaused = false;
  #hasEnded = false;

  /** The head has been given to `response`. Node keeps it until the body begins, so it is sent at the end of this turn. */
  constructor(
    response: HttpServerResponse,
    controller: Dispatcher.DispatchController | undefined,
    listener: ForwardingListener,
    readRate: ResponseReadRate | undefined,
    { capture, tap }: BodyReaders = {},
  ) {
    this.response = response;
    this.#controller = controller;
    this.#listener = listener;
    this.#readRate = readRate;
    this.#capture = capture;
    this.#tap = tap;
    process.nextTick(this.#writeFirst);
  }

  /** The client has to read before more is written. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  onChunk(chunk: Buffer): void {
    this.#listener.onProgress();
    this.#capture?.add(chunk);
    this.#tap?.add(chunk);
    if (!this.#hasWritten && this.#firstChunk === undefined) {
      this.#firstChunk = chunk;
      return;
    }
    this.#writeFirst();
    this.#write(chunk);
  }

  /** Takes the beginning of the body, which was held back while it was classified. */
  onPreviewed(held: Buffer): void {
    this.#capture?.add(held);
    this.#tap?.add(held);
    if (held.length > 0) this.#firstChunk = held;
    this.pauseIfFull();
  }

  /** Pauses the upstream if the client has to read before more is written. */
  pauseIfFull(): void {
    if (this.response.writableNeedDrain) this.#pause();
  }

  /** A response with trailers is not kept. */
  addTrailers(trailers: readonly [string, string][]): void {
    this.#capture?.abort();
    this.response.addTrailers(trailers);
  }

  /** Stops writing: the client has gone. @returns what keeps the body for repeats of the request; undefined if nothing does */
  abandon(): ResponseCapture | undefined {
    if (this.#capture?.isOpen !== true) return undefined;
    this.#hasEnded = true;
    this.#firstChunk = undefined;
    this.#readRate?.end();
    this.#tap?.end(false);
    return this.#capture;
  }

  /** Nothing more arrives. @param isComplete nothing is missing */
  end(isComplete: boolean): void {
    this.#hasEnded = true;
    this.#readRate?.end();
    this.#tap?.end(isComplete);
    if (isComplete) this.#capture?.end();
    else this.#capture?.abort();
  }

  /** The last chunk, to be written with the end of the response: the whole body if it arrived with its head. */
  takeLastChunk(): Buffer | undefined {
    const lastChunk = this.#firstChunk;
    this.#firstChunk = undefined;
    this.writtenBytes += lastChunk?.length ?? 0;
    return lastChunk;
  }

  /** Writes the head, if it has not gone out: the response counts as forwarded. */
  flushHead(): void {
    if (this.#hasWritten) return;
    const first = this.#firstChunk ?? EMPTY_CHUNK;
    this.writtenBytes += first.length;
    this.response.write(first);
  }

  /** Writes the head and the first chunk, unless that was done or everything has gone to `takeLastChunk`. */
  readonly #writeFirst = (): void => {
    if (this.#hasWritten || this.#hasEnded) return;
    this.#hasWritten = true;
    const first = this.#firstChunk ?? EMPTY_CHUNK;
    this.#firstChunk = undefined;
    this.#write(first);
  };

  #write(chunk: Buffer): void {
    this.#unreadBytes += chunk.length;
    this.writtenBytes += chunk.length;
    if (!writeAndRelease(this.response, chunk)) this.#pause();
  }

  #pause(): void {
    const controller = this.#controller;
    if (controller === undefined) return;
    controller.pause();
    if (this.#isPaused) return; // undici 8.13.1 delivers the rest even so when the upstream has closed
    this.#isPaused = true;
    this.#listener.onProgress();
    this.#readRate?.onBlocked(this.writtenBytes);
    this.response.once('drain', () => {
      this.#isPaused = false;
      this.#listener.onProgress();
      this.#readRate?.onDrained(this.#unreadBytes);
      this.#unreadBytes = 0;
      controller.resume();
    });
  }
}
