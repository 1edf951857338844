import type { Millis } from '../../core/scalars.ts';
import { MAX_KEPT_BYTES } from './kept-response.ts';

/** The key of a write is held until its response is kept, so a body that takes longer than this is not kept. */
export const MAX_CAPTURE_TIME: Millis = 5000;

/** Collects the body of a response while it is forwarded. */
export class ResponseCapture {
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #onDone: ((body: Buffer | undefined) => void) | undefined;
  /** Called if the body turns out too long or too slow. */
  #onGivenUp: (() => void) | undefined;
  readonly #timer: NodeJS.Timeout;

  /** @param onDone called once; undefined if the body is incomplete, too long or too slow */
  constructor(onDone: (body: Buffer | undefined) => void) {
    this.#onDone = onDone;
    this.#timer = setTimeout(() => this.#giveUp(), MAX_CAPTURE_TIME).unref();
  }

  /** The body may still be kept. */
  get isOpen(): boolean {
    return this.#onDone !== undefined;
  }

  /** Only this needs the rest of the body: its reader stops once it cannot be kept. */
  whenGivenUp(stop: () => void): void {
    this.#onGivenUp = stop;
  }

  /** Copies it, because the caller may reuse its memory. */
  add(chunk: Buffer): void {
    if (this.#onDone === undefined) return;
    this.#size += chunk.length;
    if (this.#size > MAX_KEPT_BYTES) this.#giveUp();
    else this.#chunks.push(Buffer.from(chunk));
  }

  /** The body is complete. */
  end(): void {
    this.#finish(Buffer.concat(this.#chunks));
  }

  /** The body will not be complete, or cannot be kept. */
  abort(): void {
    this.#finish(undefined);
  }

  #giveUp(): void {
    this.abort();
    this.#onGivenUp?.();
  }

  #finish(body: Buffer | undefined): void {
    clearTimeout(this.#timer);
    this.#chunks.length = 0;
    const onDone = this.#onDone;
    this.#onDone = undefined;
    onDone?.(body);
  }
}
