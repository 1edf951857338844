import type { Millis } from '../../core/exchange/attempt-outcome.ts';

interface Timed {
  readonly at: Millis;
}

/** A stretch of samples, ended at `at`. */
export interface Stretch<S> {
  readonly from: Millis;
  readonly at: Millis;
  readonly samples: readonly S[];
}

/** Stretches of equally many samples, at least `least` in each and at most `most` stretches; the last may have fewer. */
export function condense<S extends Timed>(series: readonly S[], least: number, most: number): Stretch<S>[] {
  const size = Math.max(least, Math.ceil(series.length / most));
  const stretches: Stretch<S>[] = [];
  let from = 0;
  for (let start = 0; start < series.length; start += size) {
    const samples = series.slice(start, start + size);
    const at = samples.at(-1)?.at ?? from;
    stretches.push({ from, at, samples });
    from = at;
  }
  return stretches;
}

/** What held at its end. */
export function lastOf<S>({ samples }: Stretch<S>, of: (sample: S) => number): number {
  const last = samples.at(-1);
  return last === undefined ? Number.NaN : of(last);
}

/** @returns Infinity where one of them is */
export function meanOf<S>({ samples }: Stretch<S>, of: (sample: S) => number): number {
  return samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
}
