import type { Millis } from '../scalars.ts';

export interface OverloadSettings {
  /** Above this event loop delay, a growing share of new requests is refused. */
  readonly eventLoopDelay: Millis;
  /** The same above this share of the heap; all new requests are refused at a tenth of the heap more. */
  readonly heapUsed: number;
}

export type OverloadCause = 'event_loop' | 'heap';

/** Time constant of the smoothed delay. */
const SMOOTHING: Millis = 1000;
/**
 * Bounds the weight of one late sample, and its value to twice the bound: a single pause of the machine or of the garbage
 * collector is no overload, two in a row may be.
 */
const MAX_SAMPLE_WEIGHT = 0.3;
const MAX_LATENESS_FACTOR = 2;
/** The admitted share falls by a fifth at each late sample, and grows by 0.1 a second: AIMD, as in TCP. */
const DECREASE = 0.8;
const INCREASE_PER_MS = 0.1 / 1000;
const MAX_INCREASE_STEP: Millis = 200;
/** The event loop delay never sheds more than 95 %: a proxy without load could not measure that it can serve again. */
const MIN_ADMITTED = 0.05;
/** From the heap use that starts shedding to the one that sheds everything. (Envoy's scaled trigger of an overload action.) */
const HEAP_SPAN = 0.1;
/** An episode of overload ends when nothing has been shed for this long. */
const EPISODE_END_AFTER: Millis = 3000;

/**
 * Computes the share of new requests to refuse because this process itself cannot keep up, from samples of its event loop
 * delay and heap use. The share follows them smoothly and does not flap.
 */
export class LoadShedder {
  readonly #settings: OverloadSettings;
  #delay: Millis = 0;
  #admittedShare = 1;
  #heapShare = 0;
  #heapUsed = 0;
  #calmFor: Millis = EPISODE_END_AFTER;

  constructor(settings: OverloadSettings) {
    this.#settings = settings;
  }

  /** The share of new requests to refuse, in [0, 1]. */
  get shedShare(): number {
    return Math.max(1 - this.#admittedShare, this.#heapShare);
  }

  /** Which of the two measures requires the larger share. */
  get cause(): OverloadCause {
    return this.#heapShare > 1 - this.#admittedShare ? 'heap' : 'event_loop';
  }

  /** The smoothed delay of the event loop. */
  get delay(): Millis {
    return this.#delay;
  }

  /** The heap in use, as a share of its limit. */
  get heapUsed(): number {
    return this.#heapUsed;
  }

  /** True from the first shed share above 0 until it has been 0 for EPISODE_END_AFTER. */
  get isOverloaded(): boolean {
    return this.#calmFor < EPISODE_END_AFTER;
  }

  /**
   * @param lateBy how much later than scheduled this sample was taken
   * @param elapsed since the last sample
   */
  onSample(lateBy: Millis, elapsed: Millis, heapUsed: number): void {
    const bound = this.#settings.eventLoopDelay;
    const weight = Math.min(MAX_SAMPLE_WEIGHT, 1 - Math.exp(-elapsed / SMOOTHING));
    this.#delay += weight * (Math.min(lateBy, MAX_LATENESS_FACTOR * bound) - this.#delay);
    if (this.#delay > bound) this.#admittedShare = Math.max(MIN_ADMITTED, DECREASE * this.#admittedShare);
    else if (this.#delay < bound / 2) {
      this.#admittedShare = Math.min(1, this.#admittedShare + INCREASE_PER_MS * Math.min(elapsed, MAX_INCREASE_STEP));
    }
    this.#heapUsed = heapUsed;
    this.#heapShare = Math.min(1, Math.max(0, (heapUsed - this.#settings.heapUsed) / HEAP_SPAN));
    this.#calmFor = this.shedShare > 0 ? 0 : Math.min(EPISODE_END_AFTER, this.#calmFor + elapsed);
  }
}
