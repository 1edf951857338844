import type { Sample } from './report.ts';

/** A stretch of samples, ended at `at`. */
export interface Stretch {
  readonly from: number;
  readonly at: number;
  readonly samples: readonly Sample[];
}

/** Stretches of equally many samples, at least `least` in each and at most `most` stretches; the last may have fewer. */
export function condense(series: readonly Sample[], least: number, most: number): Stretch[] {
  const size = Math.max(least, Math.ceil(series.length / most));
  const stretches: Stretch[] = [];
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
export function lastOf({ samples }: Stretch, of: (sample: Sample) => number): number {
  const last = samples.at(-1);
  return last === undefined ? Number.NaN : of(last);
}

/** @returns Infinity where one of them is */
export function meanOf({ samples }: Stretch, of: (sample: Sample) => number): number {
  return samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
}
