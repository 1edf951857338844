import type { ResourceBound } from '../overload/resource-bound.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import { decayDemand, raiseDemand } from './client-allowance.ts';

const WINDOW: Millis = 2000;
/** More addresses than one process serves in a window. */
const MAX_ADDRESSES = 25_000;

interface AddressActivity {
  clients: number;
  /** As `ActiveClients.freshDemand`, at the last arrival. */
  freshDemand: PerSecond;
  arrivedAt: Millis;
}

/**
 * Counts the active clients of each address. An unverified client key is nested within its address: the clients of an
 * address divide one share, so that a client gains nothing by rotating keys.
 */
export class AddressGroups {
  readonly #maxAddresses: number;
  #uncounted = 0;
  #window = Number.NEGATIVE_INFINITY;
  #active = new Map<string, AddressActivity>();
  #previous = new Map<string, AddressActivity>();

  /** @param maxAddresses addresses counted at a time. Clients of further addresses each have a share of their own. */
  constructor(maxAddresses = MAX_ADDRESSES) {
    this.#maxAddresses = maxAddresses;
  }

  get bound(): ResourceBound {
    return { name: 'addresses', used: this.#active.size / this.#maxAddresses, reached: this.#uncounted };
  }

  /** Records an arrival. A client counts once per window. @param isReturn see `ActiveClients.onArrival` */
  onArrival(address: string, now: Millis, previousArrival: Millis, isReturn = false): void {
    this.#roll(now);
    const isCounted = Math.floor(previousArrival / WINDOW) === this.#window;
    let activity = this.#active.get(address);
    if (activity === undefined) {
      if (this.#active.size >= this.#maxAddresses) {
        if (!isCounted) this.#uncounted += 1;
        return;
      }
      activity = { clients: 0, freshDemand: this.freshDemand(address, now), arrivedAt: now };
      this.#active.set(address, activity);
    }
    const demand = decayDemand(activity.freshDemand, now - activity.arrivedAt);
    activity.freshDemand = isReturn ? demand : raiseDemand(demand);
    activity.arrivedAt = now;
    if (!isCounted) activity.clients += 1;
  }

  /** Active clients of the address in this window or the previous one, whichever is more; at least 1. */
  activeClients(address: string, now: Millis): number {
    this.#roll(now);
    return Math.max(1, this.#active.get(address)?.clients ?? 0, this.#previous.get(address)?.clients ?? 0);
  }

  /** The demand of all clients of the address: see `ActiveClients.freshDemand`. */
  freshDemand(address: string, now: Millis): PerSecond {
    this.#roll(now);
    const activity = this.#active.get(address) ?? this.#previous.get(address);
    return activity === undefined ? 0 : decayDemand(activity.freshDemand, now - activity.arrivedAt);
  }

  #roll(now: Millis): void {
    const window = Math.floor(now / WINDOW);
    if (window === this.#window) return;
    const isNext = window === this.#window + 1;
    this.#previous = isNext ? this.#active : new Map<string, AddressActivity>();
    this.#active = new Map();
    this.#window = window;
  }
}
