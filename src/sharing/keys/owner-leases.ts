import type { Clock, Millis } from '../../core/scalars.ts';
import type { KeyStateBackend } from './key-state-backend.ts';

/** Renewals, in the time of a lease. */
const RENEWALS = 4;
/** The clocks of two machines drift apart by less than this part of a lease while it lasts. */
const DRIFT = 0.05;

export interface OwnerLeasesParts {
  readonly clock: Clock;
  readonly backend: Pick<KeyStateBackend, 'renew' | 'leaseTime'>;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  /** The lease had ended for some time: other processes may have taken requests of this one for ended. */
  readonly onLapsed: (upstream: string) => void;
}

/**
 * The leases of this process: while one lasts, no other process takes its requests at that upstream for ended. It lasts from
 * when its renewal was sent, because the store received that later.
 */
export class OwnerLeases {
  readonly #parts: OwnerLeasesParts;
  readonly #leases = new Map<string, { claims: number; validUntil: Millis }>();
  #cancelTimer: (() => void) | undefined;

  constructor(parts: OwnerLeasesParts) {
    this.#parts = parts;
  }

  isValid(upstream: string): boolean {
    const lease = this.#leases.get(upstream);
    return lease !== undefined && this.#parts.clock.now() < lease.validUntil;
  }

  /** The process has one more claim there. */
  add(upstream: string): void {
    const lease = this.#leases.get(upstream);
    if (lease === undefined) this.#leases.set(upstream, { claims: 1, validUntil: Number.NEGATIVE_INFINITY });
    else lease.claims += 1;
    this.#cancelTimer ??= this.#scheduleRenewal();
  }

  remove(upstream: string): void {
    const lease = this.#leases.get(upstream);
    if (lease === undefined) return;
    lease.claims -= 1;
    if (lease.claims === 0) this.#leases.delete(upstream);
  }

  /** The store has renewed the lease. */
  onRenewed(upstream: string, sentAt: Millis): void {
    const lease = this.#leases.get(upstream);
    if (lease === undefined) return;
    const hasLapsed = sentAt >= lease.validUntil && lease.validUntil !== Number.NEGATIVE_INFINITY;
    lease.validUntil = Math.max(lease.validUntil, sentAt + (1 - DRIFT) * this.#parts.backend.leaseTime);
    if (hasLapsed) this.#parts.onLapsed(upstream);
  }

  close(): void {
    this.#cancelTimer?.();
  }

  #scheduleRenewal(): () => void {
    return this.#parts.schedule(this.#parts.backend.leaseTime / RENEWALS, this.#renew);
  }

  readonly #renew = (): void => {
    this.#cancelTimer = undefined;
    if (this.#leases.size === 0) return;
    const { backend, clock } = this.#parts;
    for (const upstream of this.#leases.keys()) {
      const sentAt = clock.now();
      backend.renew(upstream, (isRenewed) => isRenewed && this.onRenewed(upstream, sentAt));
    }
    this.#cancelTimer = this.#scheduleRenewal();
  };
}
