import type { Millis } from '../scalars.ts';

/** A weight of 1/8 for each new sample, as TCP smooths round trips (RFC 6298). */
const GAIN = 1 / 8;
/** A sample counts as at most this many times the mean. */
const LONGEST_SAMPLE = 2;

/** The mean after a new sample. One stream of an hour says little about how soon others end. */
export function smoothed(mean: Millis | undefined, sample: Millis): Millis {
  const known = mean ?? sample;
  return known + GAIN * (Math.min(sample, LONGEST_SAMPLE * known) - known);
}

interface MeanTime {
  readonly mean: Millis;
  readonly samples: number;
}

/** The mean times that the attempts of each client or address take. The caller bounds their number with `forget`. */
export class ServiceTimes {
  readonly #byKey = new Map<string, MeanTime>();

  learn(key: string, took: Millis): void {
    const known = this.#byKey.get(key);
    this.#byKey.set(key, { mean: smoothed(known?.mean, took), samples: (known?.samples ?? 0) + 1 });
  }

  forget(key: string): void {
    if (this.#byKey.size > 0) this.#byKey.delete(key);
  }

  /** Undefined before there are this many samples. */
  mean(key: string, minSamples: number): Millis | undefined {
    const known = this.#byKey.get(key);
    return known === undefined || known.samples < minSamples ? undefined : known.mean;
  }
}
