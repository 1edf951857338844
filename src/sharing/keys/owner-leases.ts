import type { Clock, Millis } from '../../core/scalars.ts';
import type { KeyStateBackend, RenewedLeases, WriteName } from './key-state-backend.ts';
import type { NameLease } from './name-lease.ts';

/** How often it is checked which leases have to be renewed, in the time of a lease. */
const CHECKS = 4;
/** A lease is renewed once less than this part of it remains: most requests end before, and a lost renewal is repeated. */
const DUE = 0.6;
/** Names in one call. */
const BATCH = 100;

export interface LeasedName {
  readonly name: WriteName;
  readonly lease: NameLease;
  /** This process has claims to it. */
  readonly hasClaims: boolean;
  /** The store has none of these claims any more. */
  onMissing(): void;
}

export interface OwnerLeasesParts {
  readonly clock: Clock;
  readonly backend: Pick<KeyStateBackend, 'renew' | 'leaseTime'>;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
}

/** Renews the leases of this process on the names to which it has claims. */
export class OwnerLeases {
  readonly #parts: OwnerLeasesParts;
  readonly #names = new Set<LeasedName>();
  #cancelTimer: (() => void) | undefined;

  constructor(parts: OwnerLeasesParts) {
    this.#parts = parts;
  }

  add(leased: LeasedName): void {
    this.#names.add(leased);
    this.#cancelTimer ??= this.#scheduleCheck();
  }

  remove(leased: LeasedName): void {
    this.#names.delete(leased);
  }

  close(): void {
    this.#cancelTimer?.();
  }

  #scheduleCheck(): () => void {
    return this.#parts.schedule(this.#parts.backend.leaseTime / CHECKS, this.#check);
  }

  readonly #check = (): void => {
    this.#cancelTimer = undefined;
    if (this.#names.size === 0) return;
    const { backend, clock } = this.#parts;
    const before = clock.now() + DUE * backend.leaseTime;
    const due = [...this.#names].filter(({ hasClaims, lease }) => hasClaims && lease.validUntil < before);
    for (const [upstream, names] of Map.groupBy(due, ({ name }) => name.upstream)) {
      for (let i = 0; i < names.length; i += BATCH) this.#renew(upstream, names.slice(i, i + BATCH));
    }
    this.#cancelTimer = this.#scheduleCheck();
  };

  #renew(upstream: string, names: readonly LeasedName[]): void {
    const sentAt = this.#parts.clock.now();
    const onRenewed = (renewed: RenewedLeases | undefined): void => {
      if (renewed === undefined) return;
      for (const each of names) {
        if (renewed.missing.has(each.name.name)) each.onMissing();
        else each.lease.onRenewed(sentAt);
      }
    };
    this.#parts.backend.renew(
      upstream,
      names.map(({ name }) => name.name),
      onRenewed,
    );
  }
}
