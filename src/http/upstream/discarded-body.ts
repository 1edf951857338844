import type { Dispatcher } from 'undici';
import type { Millis } from '../../core/scalars.ts';
import { MAX_CAPTURE_TIME, type ResponseCapture } from '../idempotency/response-capture.ts';

/** A response that is not forwarded is read up to this size and time, to keep its connection; beyond, a new one is cheaper. */
const MAX_BYTES = 256 * 1024;
const MAX_TIME: Millis = 500;

/** Reads the body of a response, or the rest of it, that no client receives. */
export class DiscardedBody {
  readonly isPaused = false;
  /** Bytes that a client had received before it left. */
  readonly writtenBytes: number;
  readonly #controller: Dispatcher.DispatchController | undefined;
  readonly #capture: ResponseCapture | undefined;
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;

  /** @param capture keeps the body for repeats of the request */
  constructor(
    controller: Dispatcher.DispatchController | undefined,
    capture: ResponseCapture | undefined,
    writtenBytes = 0,
  ) {
    this.writtenBytes = writtenBytes;
    this.#controller = controller;
    this.#capture = capture;
    this.#timer = setTimeout(() => this.#abort(), capture === undefined ? MAX_TIME : MAX_CAPTURE_TIME).unref();
    capture?.whenGivenUp(() => this.#abort());
  }

  onChunk(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#capture?.add(chunk);
    if (this.#bytes > MAX_BYTES) this.#abort();
  }

  /** Takes the beginning of the body, which was held back while it was classified. */
  onPreviewed(held: Buffer): void {
    if (held.length > 0) this.onChunk(held);
  }

  /** A response with trailers is not kept. */
  addTrailers(): void {
    this.#capture?.abort();
  }

  /** @param isComplete nothing is missing */
  end(isComplete: boolean): void {
    clearTimeout(this.#timer);
    if (isComplete) this.#capture?.end();
    else this.#capture?.abort();
  }

  #abort(): void {
    this.#controller?.abort(new Error('discarded'));
  }
}
