import type { Millis } from '../../core/scalars.ts';
import type { Job, ServiceStation } from './service-station.ts';

/** Time of a run, virtual or real. */
export interface StationClock {
  now(): Millis;
  /** Calls `run` at `at` or a little later; at once if `at` is past. */
  wakeAt(at: Millis, run: () => void): void;
}

/** Advances a station when its next event is due. */
export class StationTimer {
  readonly #station: ServiceStation;
  readonly #clock: StationClock;
  /** Applies what is due at the upstream before the station goes on: it may change the number of workers. */
  readonly #beforeAdvance: (now: Millis) => void;
  #wakeAt = Number.POSITIVE_INFINITY;

  constructor(station: ServiceStation, clock: StationClock, beforeAdvance: (now: Millis) => void) {
    this.#station = station;
    this.#clock = clock;
    this.#beforeAdvance = beforeAdvance;
  }

  /** @returns the time of the arrival */
  arrive(job: Job): Millis {
    const now = this.#clock.now();
    this.#station.arrive(job, now);
    this.#rearm();
    return now;
  }

  readonly wake = (): void => {
    const now = this.#clock.now();
    this.#beforeAdvance(now);
    this.#station.advance(now);
    if (now >= this.#wakeAt) this.#wakeAt = Number.POSITIVE_INFINITY;
    this.#rearm();
  };

  /** A later wake stays: it finds nothing to do. */
  #rearm(): void {
    const at = this.#station.nextEventAt();
    if (at >= this.#wakeAt) return;
    this.#wakeAt = at;
    this.#clock.wakeAt(at, this.wake);
  }
}
