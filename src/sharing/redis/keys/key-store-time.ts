import type { Millis } from '../../../core/scalars.ts';
import { BackendClock } from '../../replicas/backend-clock.ts';

/** Clocks of machines drift apart by less than this part of the time: NTP corrects a clock by no more. */
const DRIFT = 0.0005;

/**
 * The time of an upstream's keys in Redis. It does not go back if the clock of Redis does: each call contains the time that it is
 * at least, which this process knows by its own clock. The scripts take the largest time that they get, and remember by how much
 * it is ahead of the clock of Redis.
 */
export class KeyStoreTime {
  readonly #clock = new BackendClock();
  /** A lower bound of the offset. */
  #leastOffset: Millis = Number.NEGATIVE_INFINITY;
  #boundAt: Millis = 0;

  /** @param timeout a response that took longer says too little: it would make the age of a key wrong by up to half of its delay */
  addSample(sentAt: Millis, receivedAt: Millis, time: Millis, timeout: Millis): void {
    if (receivedAt - sentAt <= timeout) this.#clock.addSample(sentAt, receivedAt, time);
    const leastOffset = time - receivedAt; // it was read before
    if (leastOffset <= this.#leastOffsetAt(receivedAt)) return;
    this.#leastOffset = leastOffset;
    this.#boundAt = receivedAt;
  }

  /** False before the first response in time, while times of Redis mean nothing here. */
  get isKnown(): boolean {
    return this.#clock.isKnown;
  }

  /** How far it is ahead of the local time. */
  get offset(): Millis {
    return this.#clock.offset;
  }

  /** It is not earlier than this; 0 if nothing is known. */
  least(now: Millis): Millis {
    return Math.max(0, Math.floor(now + this.#leastOffsetAt(now)));
  }

  #leastOffsetAt(now: Millis): Millis {
    return this.#leastOffset - DRIFT * (now - this.#boundAt);
  }
}
