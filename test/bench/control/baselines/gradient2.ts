import type { Millis } from '../../../../src/core/scalars.ts';
import type { InFlightLimit, SampleContext } from './in-flight-meter.ts';
import { inFlightController } from './in-flight-meter.ts';
import { MovingMean } from './statistics.ts';

const MAX_IN_FLIGHT = 200;
const QUEUE_SIZE = 4;
const SMOOTHING = 0.2;
const TOLERANCE = 1.5;
/** In windows; the first ones are averaged alike. */
const LONG_WINDOW = 600;
const FIRST_WINDOWS = 10;
const WINDOW: Millis = 1000;
const MIN_SAMPLES = 10;

/** One update a window, with the mean latency and the most in flight of the window. */
export class Gradient2Limit implements InFlightLimit {
  readonly #longRtt = new MovingMean(LONG_WINDOW, FIRST_WINDOWS);
  #estimate = 20;
  #nextUpdateAt: Millis = 0;
  #sum: Millis = 0;
  #samples = 0;
  #most = 0;

  get limit(): number {
    return Math.floor(this.#estimate);
  }

  /** Drops count by their latency alone. */
  update(rtt: Millis, among: number, _didDrop: boolean, { now }: Pick<SampleContext, 'now'>): void {
    this.#sum += rtt;
    this.#samples += 1;
    this.#most = Math.max(this.#most, among);
    if (now <= this.#nextUpdateAt) return;
    if (this.#samples >= MIN_SAMPLES) this.#onWindow(this.#sum / this.#samples, this.#most);
    this.#nextUpdateAt = now + WINDOW;
    this.#sum = 0;
    this.#samples = 0;
    this.#most = 0;
  }

  #onWindow(rtt: Millis, among: number): void {
    const longRtt = this.#longRtt.add(rtt);
    if (longRtt > 2 * rtt) this.#longRtt.value *= 0.95;
    if (2 * among < this.#estimate) return;
    const gradient = Math.max(0.5, Math.min(1, (TOLERANCE * longRtt) / rtt));
    const next = this.#estimate * gradient + QUEUE_SIZE;
    const smoothed = (1 - SMOOTHING) * this.#estimate + SMOOTHING * next;
    this.#estimate = Math.max(1, Math.min(MAX_IN_FLIGHT, smoothed));
  }
}

/**
 * Netflix's Gradient2Limit with its defaults, in windows of a second, as its documentation describes: the limit shrinks while the
 * latency of the last window is above 1.5 times its long-term mean, and grows by up to 4 otherwise, both smoothed.
 * (com.netflix.concurrency.limits.limit.Gradient2Limit at 74bb308, in a WindowedLimit at 53eee34 with its defaults. Its least limit is
 * 20, which some services here are below; it is 1 here, in its favour.)
 */
export const NETFLIX_GRADIENT2 = inFlightController('netflix-gradient2', () => new Gradient2Limit());
