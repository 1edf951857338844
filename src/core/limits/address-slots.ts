import { RecencyMap } from '../collections/recency-map.ts';
import type { Millis } from '../scalars.ts';

/** The maximum number of addresses that have return slots at one limit. Beyond it, the one without a refusal for longest is forgotten. */
const MAX_ADDRESSES = 1000;

/**
 * The last return slot of each address whose clients are identified by keys. Of these, only one has a slot in the sequence of the
 * limit. The slots of the others follow at the rate that the address can have.
 */
export class AddressSlots {
  readonly #lastByAddress = new RecencyMap<string, Millis>();

  /** −Infinity if there is none. */
  last(address: string): Millis {
    return this.#lastByAddress.get(address) ?? Number.NEGATIVE_INFINITY;
  }

  release(address: string): void {
    this.#lastByAddress.delete(address);
  }

  /** Releases all slots from a time on. */
  releaseFrom(time: Millis): void {
    for (const [address, slot] of this.#lastByAddress) if (slot >= time) this.#lastByAddress.delete(address);
  }

  set(address: string, last: Millis, now: Millis): void {
    this.#lastByAddress.set(address, last);
    for (const [oldest, slot] of this.#lastByAddress) {
      if (slot > now && this.#lastByAddress.size <= MAX_ADDRESSES) break;
      this.#lastByAddress.delete(oldest);
    }
  }
}
