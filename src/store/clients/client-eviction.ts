import type { ClientSlot } from '../../core/admission/client-allowance.ts';
import { calmAt } from '../../core/admission/client-allowance.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ClientRecords } from './client-records.ts';
import { SlotHeap } from './slot-heap.ts';

/** The order of eviction of unused clients: normal ones, the longest unused first; then those closest to `normal`. */
export class ClientEviction {
  readonly #records: ClientRecords;
  readonly #troubled = new SlotHeap();

  constructor(records: ClientRecords) {
    this.#records = records;
  }

  /** The longest unused of the normal clients; undefined if there is none. */
  get firstNormal(): ClientSlot | undefined {
    return this.#records.evictionList.first;
  }

  /** Of the clients that are not normal, the one that will be normal first; undefined if there is none. */
  get firstTroubled(): ClientSlot | undefined {
    return this.#troubled.first;
  }

  /** Makes room for slots below `length`. */
  grow(length: number): void {
    this.#troubled.grow(length);
  }

  /** Allows the eviction of a client that no request uses. */
  add(slot: ClientSlot): void {
    if (this.#records.state(slot) === 0) this.#records.evictionList.push(slot);
    else this.#troubled.push(slot, this.calmAt(slot));
  }

  /** Returns whether it was evictable. */
  remove(slot: ClientSlot): boolean {
    const { evictionList } = this.#records;
    if (evictionList.has(slot)) evictionList.remove(slot);
    else if (this.#troubled.has(slot)) this.#troubled.remove(slot);
    else return false;
    return true;
  }

  /** When a client is normal again, if nothing happens to it until then. */
  calmAt(slot: ClientSlot): Millis {
    return calmAt(this.#records.get(slot, 'refusedAt'), this.#records.get(slot, 'heldUntil'));
  }
}
