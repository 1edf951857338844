import type { Millis } from '../../core/scalars.ts';

/**
 * Translates between the wall clock and stored times, which are on the wall clock without its steps. So a step of that clock changes no
 * order, and neither delays a delivery nor makes it due early. A step while no process runs cannot be distinguished from time.
 */
export class DeliveryTimes {
  readonly #wallClock: () => Millis;
  readonly #clockShift: () => Millis;

  /** @param clockShift the sum of the steps of the wall clock: see `StoredWrites.clockShift` */
  constructor(wallClock: () => Millis, clockShift: () => Millis) {
    this.#wallClock = wallClock;
    this.#clockShift = clockShift;
  }

  /** The present time, as it would be stored. */
  now(): Millis {
    return this.toStored(this.#wallClock());
  }

  toStored(wall: Millis): Millis {
    return wall - Math.round(this.#clockShift()); // whole milliseconds stay whole, and exact
  }

  toWall(stored: Millis): Millis {
    return stored + Math.round(this.#clockShift());
  }
}
