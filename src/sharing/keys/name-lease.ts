import type { Clock, Millis } from '../../core/scalars.ts';

/** The clocks of two machines drift apart by less than this part of a lease while it lasts. */
const DRIFT = 0.05;

/**
 * The lease of this process on one name: while it lasts, no other process presumes its claims to that name ended. It lasts from
 * when its renewal was sent, because the store received that later. Each name has its own: the store may contain a claim that
 * this process does not know, after it has lost data or received a message late, and nobody renews the lease of that claim.
 */
export class NameLease {
  readonly #clock: Clock;
  readonly #leaseTime: Millis;
  readonly #onLapsed: () => void;
  #validUntil: Millis = Number.NEGATIVE_INFINITY;

  /** @param onLapsed the lease had ended for some time: other processes may have presumed claims of this one ended */
  constructor(clock: Clock, leaseTime: Millis, onLapsed: () => void) {
    this.#clock = clock;
    this.#leaseTime = leaseTime;
    this.#onLapsed = onLapsed;
  }

  get validUntil(): Millis {
    return this.#validUntil;
  }

  get isValid(): boolean {
    return this.#clock.now() < this.#validUntil;
  }

  /** The store has renewed the lease. */
  onRenewed(sentAt: Millis): void {
    const hasLapsed = sentAt >= this.#validUntil && this.#validUntil !== Number.NEGATIVE_INFINITY;
    this.#validUntil = Math.max(this.#validUntil, sentAt + (1 - DRIFT) * this.#leaseTime);
    if (hasLapsed) this.#onLapsed();
  }
}
