import type { Millis } from '../../../core/scalars.ts';
import type { AttemptSeries } from './attempt-series.ts';
import type { Reopenings } from './reopenings.ts';

/** Lengths that people choose, in seconds. */
const COMMON_SECONDS = [
  0.1, 0.2, 0.25, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 45, 60, 90, 100, 120, 150, 180, 240, 300, 360,
  400, 480, 500, 600, 720, 900, 1000, 1200, 1800, 2400, 3600, 5400, 7200, 10_800, 14_400, 21_600, 28_800, 43_200,
  86_400,
];
export const COMMON_LENGTHS: readonly Millis[] = COMMON_SECONDS.map((seconds) => 1000 * seconds);
/** A shorter log shows too few windows. */
const MIN_WINDOWS = 3;

/** The lengths that a log can show: at least an accepted request in a window, and some windows. */
export function lengthRange({ passed, span }: AttemptSeries): { readonly least: Millis; readonly most: Millis } {
  return { least: span / Math.max(1, passed), most: span / MIN_WINDOWS };
}

/** Reopenings and frequencies that are examined at most. */
const MAX_EXAMINED = 400;
const MAX_FREQUENCIES = 8192;
/** Frequencies between two that a time as long as the log distinguishes. */
const OVERSAMPLING = 4;
const PEAKS = 5;
/** A peak of this share of the highest is as regular. */
const NEARLY = 0.8;

/**
 * Lengths that the log suggests: windows reopen at multiples of their length, after a phase. Peaks of the Rayleigh periodogram of the
 * times (K. V. Mardia and P. E. Jupp, Directional statistics, 2000), each refined over the whole log; and their multiples, because a
 * half of the length is as regular.
 * @param least no shorter length is of interest
 */
export function suggestLengths(reopenings: Reopenings, least: Millis): Millis[] {
  const middles = preciseMiddles(reopenings);
  if (middles.length < 3) return [];
  const examined = middles.subarray(0, MAX_EXAMINED);
  const span = (examined.at(-1) ?? 0) - (examined[0] ?? 0);
  if (span <= 0) return [];
  const most = Math.min(MAX_FREQUENCIES, Math.ceil((OVERSAMPLING * span) / least));
  const powers = Array.from({ length: most }, (_, k) => rayleighPower(examined, k / (OVERSAMPLING * span)));
  const peaks = powers.flatMap((power, k) => {
    const isPeak = k >= OVERSAMPLING && power >= (powers[k - 1] ?? 0) && power >= (powers[k + 1] ?? 0);
    return isPeak ? [{ power, length: (OVERSAMPLING * span) / k }] : [];
  });
  const byPower = peaks.toSorted((a, b) => b.power - a.power);
  // The longest of the regular ones: its parts are as regular.
  const longest = peaks.find(({ power }) => power >= NEARLY * (byPower[0]?.power ?? 0));
  const best = [...byPower.slice(0, PEAKS), ...(longest === undefined ? [] : [longest])];
  return best.flatMap(({ length }) => [1, 2, 3].map((times) => refineLength(middles, times * length)));
}

/** The middles of the shorter half of the intervals. */
function preciseMiddles({ from, to }: Reopenings): Float64Array {
  const gaps = from.map((start, i) => (to[i] ?? 0) - start);
  const median = gaps.toSorted()[gaps.length >> 1] ?? 0;
  return from.map((start, i) => (start + (to[i] ?? 0)) / 2).filter((_, i) => (gaps[i] ?? 0) <= median);
}

function rayleighPower(times: Float64Array, frequency: number): number {
  let [cosines, sines] = [0, 0];
  for (const time of times) {
    const angle = 2 * Math.PI * frequency * time;
    cosines += Math.cos(angle);
    sines += Math.sin(angle);
  }
  return cosines * cosines + sines * sines;
}

/**
 * The least-squares slope of the times over the number of windows between them. A step that is not near a whole number of windows
 * starts anew.
 */
function refineLength(middles: Float64Array, first: Millis): Millis {
  let length = first;
  let [base, number, last] = [middles[0] ?? 0, 0, middles[0] ?? 0];
  let [products, squares] = [0, 0];
  for (const middle of middles) {
    const passed = (middle - last) / length;
    const whole = Math.round(passed);
    if (whole === 0) continue;
    last = middle;
    if (Math.abs(passed - whole) > 0.2) {
      [base, number] = [middle, 0];
      continue;
    }
    number += whole;
    products += number * (middle - base);
    squares += number * number;
    length = products / squares;
  }
  return Math.abs(length / first - 1) < 0.1 ? length : first;
}
