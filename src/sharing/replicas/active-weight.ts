import type { Millis } from '../../core/scalars.ts';

/** The part of a replica's account that `ActiveWeight` needs. */
export interface WeightAccount {
  /** The number of the window in which the replica was counted last. */
  window: number;
  /** Its weight in that window, and in the one before. */
  weightInWindow: number;
  weightBefore: number;
}

/**
 * A total weight of all replicas, such as that of the requests that wait there, without reading each account: the sum of the
 * weights reported in a window of time. A replica that no longer calls drops out after the next window.
 */
export class ActiveWeight {
  #window = 0;
  #endsAt = Number.NEGATIVE_INFINITY;
  #previous = 0;
  #current = 0;

  /** @param windowLength so long that each replica with a weight calls at least once in it */
  record(account: WeightAccount, weight: number, now: Millis, windowLength: Millis): void {
    if (now >= this.#endsAt) {
      this.#previous = now < this.#endsAt + windowLength ? this.#current : 0;
      this.#current = 0;
      this.#window += 1;
      this.#endsAt = now + windowLength;
    }
    if (account.window !== this.#window) {
      account.weightBefore = account.window === this.#window - 1 ? account.weightInWindow : 0;
      account.weightInWindow = 0;
    }
    this.#current += weight - account.weightInWindow;
    account.window = this.#window;
    account.weightInWindow = weight;
  }

  /** The weight of all replicas but this one, which was recorded in the current window. */
  excluding({ weightInWindow, weightBefore }: WeightAccount): number {
    return Math.max(0, this.#previous - weightBefore, this.#current - weightInWindow);
  }

  /** The weight of all replicas, at least that of the one recorded last. */
  get total(): number {
    return Math.max(this.#previous, this.#current);
  }
}
