import { THRESHOLD_FACTOR } from '../../../core/admission/queue-occupancy.ts';
import { ServiceTimes } from '../../../core/limits/service-times.ts';
import { MIN_RELEASE_RATE, OTHERS_ACTIVE_FOR, OTHERS_EXPECTED_FOR } from '../../../core/limits/shared-places.ts';
import type { Clock, Millis } from '../../../core/scalars.ts';

interface UnsharedSharesOptions {
  readonly clock: Clock;
  /** Connections that are free or may be opened. */
  readonly countFree: () => number;
  /** A client that left the free connections to others may take one now. */
  readonly onYieldEnd: () => void;
}

/**
 * Decides which client, or address (a fairness key), takes no further connection without other requests while few are free: one that
 * holds `THRESHOLD_FACTOR` times as many leaves them to others that have asked for one lately (dynamic thresholds, Choudhury and Hahne
 * 1998). It may keep a connection for long, and they may need one the next moment. `SharedPlaces` has the same rule for the connections
 * that the gate knows.
 */
export class UnsharedShares {
  readonly #options: UnsharedSharesOptions;
  #lastKey: string | undefined;
  #askedAt: Millis = Number.NEGATIVE_INFINITY;
  #othersAskedAt: Millis = Number.NEGATIVE_INFINITY;
  /** How long the requests of those that hold many connections take, until they hold none. */
  readonly #serviceTimes = new ServiceTimes();
  readonly #takenAt = new WeakMap<object, Millis>();
  #timer: NodeJS.Timeout | undefined;
  #timerDueAt: Millis = Number.POSITIVE_INFINITY;

  constructor(options: UnsharedSharesOptions) {
    this.#options = options;
  }

  /** A request needs a connection. */
  onAsked(key: string): void {
    if (key !== this.#lastKey) [this.#lastKey, this.#othersAskedAt] = [key, this.#askedAt];
    this.#askedAt = this.#options.clock.now();
  }

  onTaken(connection: object): void {
    this.#takenAt.set(connection, this.#options.clock.now());
  }

  /** @param left how many connections this client still holds */
  onReleased(key: string, connection: object, left: number): void {
    const takenAt = this.#takenAt.get(connection);
    if (left === 0) this.#serviceTimes.forget(key);
    else if (takenAt !== undefined && left + 1 >= THRESHOLD_FACTOR) {
      this.#serviceTimes.learn(key, this.#options.clock.now() - takenAt);
    }
  }

  /** Whether a client leaves the free connections to others. If so, `onYieldEnd` is called when it may take one. */
  yields(key: string, held: number): boolean {
    const free = this.#options.countFree();
    if (free <= 0 || held < THRESHOLD_FACTOR * free) return false;
    const now = this.#options.clock.now();
    const othersAskedAt = key === this.#lastKey ? this.#othersAskedAt : this.#askedAt;
    const dueAt = othersAskedAt + (this.#isSlow(key, held) ? OTHERS_EXPECTED_FOR : OTHERS_ACTIVE_FOR);
    if (now >= dueAt) return false;
    this.#wakeAt(dueAt, now);
    return true;
  }

  /** Whether it releases its connections slowly, or it is not known how fast. */
  #isSlow(key: string, held: number): boolean {
    const mean = this.#serviceTimes.mean(key, THRESHOLD_FACTOR);
    return mean === undefined || (1000 * held) / mean < MIN_RELEASE_RATE;
  }

  #wakeAt(dueAt: Millis, now: Millis): void {
    if (this.#timer !== undefined && this.#timerDueAt <= dueAt) return;
    clearTimeout(this.#timer);
    this.#timerDueAt = dueAt;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#options.onYieldEnd();
      },
      Math.ceil(dueAt - now),
    ).unref();
  }
}
