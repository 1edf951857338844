/** Scales from values to positions on a chart, and their ticks. */
export interface Scale {
  readonly kind: 'linear' | 'log';
  readonly low: number;
  readonly high: number;
  readonly ticks: readonly number[];
  /** 0 at `low`, 1 at `high`; values beyond are at the end that is nearer. */
  toFraction(value: number): number;
}

/** From 0, or the smallest value where that is negative, to a round number no smaller than the largest. */
export function linearScale(values: readonly number[], from?: number): Scale {
  const finite = values.filter(Number.isFinite);
  const least = from ?? Math.min(0, ...finite);
  const most = Math.max(...finite, least + Number.EPSILON);
  const rough = (most - least || 1) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough * 0.999) ?? 10);
  const low = Math.floor(least / step + 1e-9) * step;
  const count = Math.max(1, Math.ceil((most - low) / step - 1e-9));
  const ticks = Array.from({ length: count + 1 }, (_, i) => low + i * step);
  const high = low + count * step;
  return { kind: 'linear', low, high, ticks, toFraction: (value) => clamp((value - low) / (high - low)) };
}

/**
 * Between powers of ten, down to the smallest value above 0 but at most `decades` below the largest: smaller
 * ones, and 0, are at the foot.
 */
export function logScale(values: readonly number[], mostDecades = 5): Scale {
  const above0 = values.filter((value) => Number.isFinite(value) && value > 0);
  const most = above0.length === 0 ? 1 : Math.max(...above0);
  const top = Math.ceil(Math.log10(most) - 1e-9);
  const least = above0.length === 0 ? 0.1 : Math.min(...above0);
  const bottom = Math.min(top - 1, Math.max(Math.floor(Math.log10(least) + 1e-9), top - mostDecades));
  const ticks = Array.from({ length: top - bottom + 1 }, (_, i) => 10 ** (bottom + i));
  return {
    kind: 'log',
    low: 10 ** bottom,
    high: 10 ** top,
    ticks,
    toFraction: (value) => (value <= 0 ? 0 : clamp((Math.log10(value) - bottom) / (top - bottom))),
  };
}

function clamp(part: number): number {
  return Math.min(1, Math.max(0, part));
}
