import type { ResourceBound } from '../overload/resource-bound.ts';
import type { Clock, Millis } from '../scalars.ts';
import type { KeyClaimRequest, KeyStore } from './key-store.ts';
import type { KeyRegistry } from './key-registry.ts';
import { isUnresolved, type OwnerDigests } from './keyed-write.ts';
import { RegistryKeyClaim } from './registry-key-claim.ts';

/** The keys of writes of this process alone. */
export class RegistryKeyStore implements KeyStore {
  readonly keys: KeyRegistry;
  readonly #clock: Clock;
  readonly #schedule: (delay: Millis, run: () => void) => () => void;

  /** @param schedule calls `run` once after a time, and returns a function that cancels it */
  constructor(keys: KeyRegistry, clock: Clock, schedule: (delay: Millis, run: () => void) => () => void) {
    this.keys = keys;
    this.#clock = clock;
    this.#schedule = schedule;
  }

  get bounds(): readonly ResourceBound[] {
    return this.keys.bounds;
  }

  /**
   * @param countsAsSent from the grant on, the write counts as sent: the request is of another process, whose messages take time and
   *   end with it, or the write is stored before it is sent
   */
  makeClaim(request: KeyClaimRequest, countsAsSent = this.keys.journal !== undefined): RegistryKeyClaim {
    const { keys } = this;
    return new RegistryKeyClaim({ keys, clock: this.#clock, schedule: this.#schedule, request, countsAsSent });
  }

  /** Whether an unresolved write of this name was first sent no longer ago than this. */
  isUnresolvedWithin(name: string, age: Millis): boolean {
    const since = this.#clock.now() - age;
    for (const write of this.keys.writesOf(name)) if (isUnresolved(write) && write.firstSentAt >= since) return true;
    return false;
  }

  findUnresolved(
    upstream: string,
    names: readonly string[] | undefined,
    onFound: (isUnresolved: boolean) => void,
    by?: OwnerDigests,
  ): void {
    const { keys } = this;
    onFound(names === undefined ? keys.hasUnresolvedAt(upstream) : names.some((name) => keys.isUnresolved(name, by)));
  }

  mayHaveUnresolved(upstream?: string): boolean {
    return upstream === undefined ? this.keys.hasUnresolved : this.keys.hasUnresolvedAt(upstream);
  }
}
