import type { Clock, Millis } from '../../core/scalars.ts';

export interface Clocks {
  readonly clock: Clock;
  readonly wallClock: () => Millis;
  /** The uptime of the system: it also counts while the system is suspended, when the clock of a process stands still. */
  readonly uptime: () => Millis;
}

/** The clocks differ by less without a step: the uptime has a resolution of 10 ms. */
const MIN_STEP: Millis = 100;

/** How far somebody, or NTP, has set the wall clock. Time in which the system was suspended is no step. */
export class WallClockSteps {
  readonly #clocks: Clocks;
  #wallOffset: Millis;
  #uptimeOffset: Millis;
  #total: Millis = 0;

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
    const now = clocks.clock.now();
    this.#wallOffset = clocks.wallClock() - now;
    this.#uptimeOffset = clocks.uptime() - now;
  }

  /** The sum of all steps so far: below 0 if it was set back. */
  total(): Millis {
    const { clock, wallClock, uptime } = this.#clocks;
    const now = clock.now();
    const wallOffset = wallClock() - now;
    if (Math.abs(wallOffset - this.#wallOffset) < MIN_STEP) return this.#total; // the uptime is in a file
    const uptimeOffset = uptime() - now;
    const step = wallOffset - this.#wallOffset - (uptimeOffset - this.#uptimeOffset);
    this.#wallOffset = wallOffset;
    this.#uptimeOffset = uptimeOffset;
    if (Math.abs(step) >= MIN_STEP) this.#total += step;
    return this.#total;
  }
}
