import type { Dispatcher } from 'undici';
import type { BodyForwarding } from '../response/body-forwarding.ts';
import type { DiscardedBody } from './discarded-body.ts';

const NO_BYTES: Buffer = Buffer.alloc(0);

/**
 * The part of a response's body that arrives before it is decided what becomes of the response: what is known of a key may have
 * to be read from another process first. The upstream is paused, but the rest of what was received with the head still arrives.
 */
export class HeldBody {
  readonly #controller: Dispatcher.DispatchController;
  readonly #chunks: Buffer[];
  #onDecided: (() => void) | undefined;

  /** @param first the part that has arrived */
  constructor(controller: Dispatcher.DispatchController, first = NO_BYTES) {
    this.#controller = controller;
    this.#chunks = [first];
    controller.pause();
  }

  /** Copies it, because the connection reuses its memory. */
  add(chunk: Buffer): void {
    this.#chunks.push(Buffer.from(chunk));
  }

  /** The response has ended meanwhile. @param run called once it is decided */
  whenDecided(run: () => void): void {
    this.#onDecided = run;
  }

  release(receiver: BodyForwarding | DiscardedBody): void {
    for (const chunk of this.#chunks) if (chunk.length > 0) receiver.onChunk(chunk);
    if (!receiver.isPaused) this.#controller.resume();
    // The caller has to know first what becomes of the response.
    if (this.#onDecided !== undefined) process.nextTick(this.#onDecided);
  }
}
