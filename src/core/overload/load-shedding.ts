import type { Millis } from '../exchange/attempt-outcome.ts';

export interface OverloadSettings {
  /** From this delay of the event loop on, more and more of what arrives is turned away. */
  readonly eventLoopDelay: Millis;
  /** From this share of the heap on, too; all of it a tenth of the heap further on. */
  readonly heapUsed: number;
}

/** What brings an overload about. */
export type OverloadCause = 'event_loop' | 'heap';

/** The delay is smoothed over about this long. */
const SMOOTHING: Millis = 1000;
/**
 * One late turn, however late, weighs no more than this, and counts for no more than twice the bound: a pause of the
 * machine or of the collector is no overload, two in a row may be.
 */
const MOST_WEIGHT = 0.3;
const MOST_LATE = 2;
/** What is let in falls by a fifth at each late sample, and grows back by a tenth of all a second: AIMD, as TCP does. */
const DECREASE = 0.8;
const INCREASE_PER_MS = 0.1 / 1000;
const LONGEST_STEP: Millis = 200;
/** So much is always let in as far as the event loop is concerned: a proxy that serves nobody cannot learn that it could. */
const LEAST_ADMITTED = 0.05;
/** From where the heap begins to shed to where it sheds all. (Envoy's scaled trigger of an overload action.) */
const HEAP_SPAN = 0.1;
/** An episode is over when nothing has been shed for this long: another one is news. */
const CALM: Millis = 3000;

/**
 * Which share of new requests this process turns away because it is itself what cannot keep up. Fed with samples of how
 * late its event loop is and how full its heap; the share moves with them and does not flap.
 */
export class Shedding {
  readonly #settings: OverloadSettings;
  #delay: Millis = 0;
  #admitted = 1;
  #heapShare = 0;
  #heapUsed = 0;
  #calmFor: Millis = CALM;

  constructor(settings: OverloadSettings) {
    this.#settings = settings;
  }

  /** Of new requests, in [0, 1]. */
  get share(): number {
    return Math.max(1 - this.#admitted, this.#heapShare);
  }

  /** What asks for more, when something is shed. */
  get cause(): OverloadCause {
    return this.#heapShare > 1 - this.#admitted ? 'heap' : 'event_loop';
  }

  /** How late the event loop is, smoothed. */
  get delay(): Millis {
    return this.#delay;
  }

  /** The heap in use, as a share of what it may become. */
  get heapUsed(): number {
    return this.#heapUsed;
  }

  /** From the first request that may be shed until nothing has been for a while. */
  get isOverloaded(): boolean {
    return this.#calmFor < CALM;
  }

  /**
   * @param late by how much this sample came later than it should
   * @param elapsed since the one before
   */
  note(late: Millis, elapsed: Millis, heapUsed: number): void {
    const bound = this.#settings.eventLoopDelay;
    const weight = Math.min(MOST_WEIGHT, 1 - Math.exp(-elapsed / SMOOTHING));
    this.#delay += weight * (Math.min(late, MOST_LATE * bound) - this.#delay);
    if (this.#delay > bound) this.#admitted = Math.max(LEAST_ADMITTED, DECREASE * this.#admitted);
    else if (this.#delay < bound / 2) {
      this.#admitted = Math.min(1, this.#admitted + INCREASE_PER_MS * Math.min(elapsed, LONGEST_STEP));
    }
    this.#heapUsed = heapUsed;
    this.#heapShare = Math.min(1, Math.max(0, (heapUsed - this.#settings.heapUsed) / HEAP_SPAN));
    this.#calmFor = this.share > 0 ? 0 : Math.min(CALM, this.#calmFor + elapsed);
  }
}
