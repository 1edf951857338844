import { QueueOccupancy, type QueueOccupant } from '../../core/admission/queue-occupancy.ts';
import { MAX_WAITING } from '../../core/idempotency/key-claims.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';

/** The requests of this process that wait for keys which processes share. */
export class KeyWaits {
  readonly #occupancy = new QueueOccupancy();
  #refused = 0;

  get bound(): ResourceBound {
    return { name: 'key_waits', used: this.#occupancy.size / MAX_WAITING, reached: this.#refused };
  }

  /** @returns false if too many wait, in all or from the same address */
  tryAdd(place: QueueOccupant): boolean {
    if (this.#occupancy.isFull(place.fairnessKey, MAX_WAITING)) {
      this.#refused += 1;
      return false;
    }
    this.#occupancy.add(place);
    return true;
  }

  remove(place: QueueOccupant): void {
    this.#occupancy.remove(place);
  }
}
