import type { Dispatcher } from 'undici';
import type { Millis } from '../../core/scalars.ts';
import { MAX_CAPTURE_TIME } from '../idempotency/response-capture.ts';
import type { BodyReaders } from '../response/body-forwarding.ts';

/** A response that is not forwarded is read up to this size and time, to keep its connection; beyond, a new one is cheaper. */
const MAX_BYTES = 256 * 1024;
const MAX_TIME: Millis = 500;

/** Reads the body of a response, or the rest of it, that no client receives. */
export class DiscardedBody {
  readonly isPaused = false;
  /** Bytes that a client had received before it left. */
  readonly writtenBytes: number;
  readonly #controller: Dispatcher.DispatchController | undefined;
  readonly #readers: BodyReaders;
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;

  constructor(controller: Dispatcher.DispatchController | undefined, readers: BodyReaders, writtenBytes = 0) {
    const { capture } = readers;
    this.writtenBytes = writtenBytes;
    this.#controller = controller;
    this.#readers = readers;
    this.#timer = setTimeout(() => this.#abort(), capture === undefined ? MAX_TIME : MAX_CAPTURE_TIME).unref();
    capture?.whenGivenUp(() => this.#abort());
  }

  onChunk(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#readers.capture?.add(chunk);
    this.#readers.tap?.add(chunk);
    if (this.#bytes > MAX_BYTES) this.#abort();
  }

  /** Takes the beginning of the body, which was held back while it was classified. */
  onPreviewed(held: Buffer): void {
    if (held.length > 0) this.onChunk(held);
  }

  /** A response with trailers is not kept. */
  addTrailers(): void {
    this.#readers.capture?.abort();
  }

  /** @param isComplete nothing is missing */
  end(isComplete: boolean): void {
    clearTimeout(this.#timer);
    const { capture, tap } = this.#readers;
    tap?.end(isComplete);
    if (isComplete) capture?.end();
    else capture?.abort();
  }

  #abort(): void {
    this.#controller?.abort(new Error('discarded'));
  }
}
