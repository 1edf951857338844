import type { ResourceBound } from '../overload/resource-bound.ts';
import type { Millis } from '../scalars.ts';

const WINDOW: Millis = 2000;
/** More addresses than one process serves in a window. */
const MAX_ADDRESSES = 25_000;

/**
 * Counts the active clients of each address. An unverified client key is nested within its address: the clients of an
 * address divide one share, so that a client gains nothing by rotating keys.
 */
export class AddressGroups {
  readonly #maxAddresses: number;
  #uncounted = 0;
  /** Clients beyond the first of each address, in this window and the previous one. */
  #extra = 0;
  #previousExtra = 0;
  #window = Number.NEGATIVE_INFINITY;
  #active = new Map<string, number>();
  #previous = new Map<string, number>();

  /** @param maxAddresses addresses counted at a time. Clients of further addresses each have a share of their own. */
  constructor(maxAddresses = MAX_ADDRESSES) {
    this.#maxAddresses = maxAddresses;
  }

  get bound(): ResourceBound {
    return { name: 'addresses', used: this.#active.size / this.#maxAddresses, reached: this.#uncounted };
  }

  /** Records an arrival. A client counts once per window. */
  onArrival(address: string, now: Millis, previousArrival: Millis): void {
    this.#roll(now);
    if (Math.floor(previousArrival / WINDOW) === this.#window) return;
    const count = this.#active.get(address);
    if (count !== undefined) this.#extra += 1;
    if (count !== undefined || this.#active.size < this.#maxAddresses) this.#active.set(address, (count ?? 0) + 1);
    else this.#uncounted += 1;
  }

  /** Active clients of the address in this window or the previous one, whichever is more; at least 1. */
  activeClients(address: string, now: Millis): number {
    this.#roll(now);
    return Math.max(1, this.#active.get(address) ?? 0, this.#previous.get(address) ?? 0);
  }

  /** The number of active clients less the number of active addresses. */
  extraClients(now: Millis): number {
    this.#roll(now);
    return Math.max(this.#extra, this.#previousExtra);
  }

  #roll(now: Millis): void {
    const window = Math.floor(now / WINDOW);
    if (window === this.#window) return;
    const isNext = window === this.#window + 1;
    this.#previous = isNext ? this.#active : new Map<string, number>();
    this.#previousExtra = isNext ? this.#extra : 0;
    this.#extra = 0;
    this.#active = new Map();
    this.#window = window;
  }
}
