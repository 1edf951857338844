import type { Millis } from '../../core/scalars.ts';

interface Timed {
  readonly at: Millis;
}

/** A span of samples that ends at `at`. */
export interface SampleWindow<S> {
  readonly from: Millis;
  readonly at: Millis;
  readonly samples: readonly S[];
}

/** Splits samples into spans of equal size, at least `least` samples each and at most `most` spans; the last may be shorter. */
export function downsample<S extends Timed>(
  series: readonly S[],
  minSamples: number,
  maxWindows: number,
): SampleWindow<S>[] {
  const size = Math.max(minSamples, Math.ceil(series.length / maxWindows));
  const windows: SampleWindow<S>[] = [];
  let from = 0;
  for (let start = 0; start < series.length; start += size) {
    const samples = series.slice(start, start + size);
    const at = samples.at(-1)?.at ?? from;
    windows.push({ from, at, samples });
    from = at;
  }
  return windows;
}

/** The values at its end. */
export function lastValue<S>({ samples }: SampleWindow<S>, of: (sample: S) => number): number {
  const last = samples.at(-1);
  return last === undefined ? Number.NaN : of(last);
}

/** @returns Infinity where one of the values is */
export function meanValue<S>({ samples }: SampleWindow<S>, of: (sample: S) => number): number {
  return samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
}
