import type { Dispatcher } from 'undici';
import type { BodyForwarding } from '../response/body-forwarding.ts';
import type { DiscardedBody } from './discarded-body.ts';

/**
 * The part of a response's body that arrives before it is decided what becomes of the response: what is known of a key may have
 * to be read from another process first. The upstream is paused, but the rest of what was received with the head still arrives.
 */
export class HeldBody {
  /** Called once it is decided, if the response has ended meanwhile. */
  onDecided: (() => void) | undefined;
  readonly #controller: Dispatcher.DispatchController;
  readonly #chunks: Buffer[];

  /** @param first the part that has arrived */
  constructor(controller: Dispatcher.DispatchController, first: Buffer) {
    this.#controller = controller;
    this.#chunks = [first];
    controller.pause();
  }

  /** Copies it, because the connection reuses its memory. */
  add(chunk: Buffer): void {
    this.#chunks.push(Buffer.from(chunk));
  }

  release(receiver: BodyForwarding | DiscardedBody): void {
    for (const chunk of this.#chunks) if (chunk.length > 0) receiver.onChunk(chunk);
    if (!receiver.isPaused) this.#controller.resume();
    // The caller has to know first what becomes of the response.
    if (this.onDecided !== undefined) process.nextTick(this.onDecided);
  }
}
