import type { ReaderAbortReason } from '../../core/events/event-labels.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ClientStallOptions } from './client-stall.ts';
import { ClientStall } from './client-stall.ts';

export interface ResponseReadRateOptions extends ClientStallOptions {
  /** Time over which the rate is averaged. */
  readonly window: Millis;
  /** Minimum bytes per second that the client must read while bytes are unread; 0: none. */
  readonly minRate: number;
  /** The client reads too slowly, or others wait for its connection or place. */
  readonly onTooSlow: (why: ReaderAbortReason) => void;
}

/** A client that reads steadily shows progress again within this many times its longest pause so far. */
const PAUSE_FACTOR = 2;

/** How long a client that has shown that it reads may pause, however short its pauses were before. */
const READER_PATIENCE: Millis = 5000;

/** More than is written of a response that its client does not read: Linux buffers 4 MiB for the sender by default. */
const MAX_UNREAD = 6 * 1024 * 1024;

/** A pause that ends after this time shows that the client reads. Shorter ones occur while the system's buffer fills. */
const VISIBLE_PAUSE: Millis = 100;

/**
 * Measures how fast a client reads its response. Time counts only while bytes are unread, when the client keeps an upstream
 * connection busy. Progress shows only when the system's buffer has room again, which may be a megabyte later: until then a slow
 * reader looks like one that has stopped, which the idle timeout of the stream ends. Whether it has stopped and gives way is
 * therefore judged by how long it took before.
 */
export class ResponseReadRate {
  readonly #options: ResponseReadRateOptions;
  readonly #stall: ClientStall;
  /** In this span: time with unread bytes, and bytes read. */
  #blockedFor: Millis = 0;
  #bytesRead = 0;
  /** The client has read something: before that, it looks like one that never reads. */
  #isReader = false;

  constructor(options: ResponseReadRateOptions) {
    this.#options = options;
    this.#stall = new ClientStall(options, () => options.onTooSlow('gave_way'));
  }

  /** The client must read before more is written. @param bytes of the whole response that were written, a few of which may wait */
  onBlocked(bytes: number): void {
    if (!this.#isReader && bytes > MAX_UNREAD) this.#extendPatience(0);
    this.#stall.start();
  }

  /** The client has read everything written. */
  onDrained(bytes: number): void {
    const { clock, minRate, window, onTooSlow } = this.#options;
    const pause = Math.max(0, clock.now() - this.#stall.stalledSince);
    if (this.#isReader || pause >= VISIBLE_PAUSE) this.#extendPatience(pause);
    this.#blockedFor += pause;
    this.#bytesRead += bytes;
    this.#stall.stop();
    if (this.#blockedFor < window) return;
    if (this.#bytesRead < (minRate * this.#blockedFor) / 1000) return onTooSlow('slow_reader');
    this.#blockedFor = 0;
    this.#bytesRead = 0;
  }

  /** The client has shown that it reads. @param pause its last one */
  #extendPatience(pause: Millis): void {
    this.#isReader = true;
    const patience = Math.max(READER_PATIENCE, PAUSE_FACTOR * pause);
    this.#stall.patience = Math.max(this.#stall.patience, Math.min(patience, this.#options.window));
  }

  /** The response has ended. */
  end(): void {
    this.#stall.remove();
  }
}
