import { uptime } from 'node:os';
import { performance } from 'node:perf_hooks';
import type { Clock, Millis } from '../core/scalars.ts';

export interface SuspensionClockSources {
  /** Stands still while the system is suspended (CLOCK_MONOTONIC). */
  readonly monotonic: () => Millis;
  /** The uptime of the system, which counts that time too (CLOCK_BOOTTIME). */
  readonly uptime: () => Millis;
}

/** The clocks differ by less without a suspension: the uptime has a resolution of 10 ms. */
const MIN_SUSPENSION: Millis = 100;
/** How often the uptime is read: it takes microseconds. */
const CHECK_INTERVAL: Millis = 20;

const SYSTEM: SuspensionClockSources = { monotonic: () => performance.now(), uptime: () => uptime() * 1000 };

/**
 * A monotonic clock that counts the time in which the system is suspended, as an upstream does that forgets idempotency keys. Timers
 * of Node do not count it: they are late by as much at most.
 */
export class SuspensionClock implements Clock {
  readonly #sources: SuspensionClockSources;
  /** Of the uptime. */
  #offset: Millis;
  #checkedAt: Millis;
  #suspended: Millis;

  /** @param suspended by how much the clock is ahead of the monotonic one at the start */
  constructor(suspended: Millis = 0, sources = SYSTEM) {
    this.#sources = sources;
    this.#suspended = suspended;
    this.#checkedAt = sources.monotonic();
    this.#offset = sources.uptime() - this.#checkedAt;
  }

  now(): Millis {
    const monotonic = this.#sources.monotonic();
    if (monotonic - this.#checkedAt >= CHECK_INTERVAL) this.#check(monotonic);
    return monotonic + this.#suspended;
  }

  /** By how much it is ahead of the monotonic clock. */
  get suspended(): Millis {
    this.now();
    return this.#suspended;
  }

  #check(monotonic: Millis): void {
    this.#checkedAt = monotonic;
    const offset = this.#sources.uptime() - monotonic;
    const step = offset - this.#offset;
    if (Math.abs(step) < MIN_SUSPENSION) return;
    this.#offset = offset;
    // An uptime that goes back is that of another system: a process can be moved.
    if (step > 0) this.#suspended += step;
  }
}
