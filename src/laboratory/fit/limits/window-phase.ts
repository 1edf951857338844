import type { Millis } from '../../../core/scalars.ts';
import type { Reopenings } from './reopenings.ts';

const BINS = 512;
/** A wider range of phases is tried at so many places. */
const WIDE = 5;
const PLACES = 9;

interface Range {
  readonly begin: Millis;
  readonly end: Millis;
}

/**
 * When windows of this length may start, so that the most refusals end at the start of one: the phases that lie in the most of the
 * intervals. One, or some if the log leaves a wide range.
 */
export function findPhases(reopenings: Reopenings, length: Millis): Millis[] {
  const width = length / BINS;
  const coarse = findBusiest(reopenings, length, 0, width);
  const isWide = coarse.end - coarse.begin > WIDE * width;
  // The edges of the intervals are rounded outwards.
  const { begin, end } = isWide
    ? coarse
    : findBusiest(reopenings, length, coarse.begin - 2 * width, (coarse.end - coarse.begin + 4 * width) / BINS);
  const places = isWide ? PLACES : 1;
  return Array.from({ length: places }, (_, i) => modulo(begin + ((i + 0.5) * (end - begin)) / places, length));
}

/** @returns the longest of the busiest stretches of `BINS` bins from `start` on */
function findBusiest({ from, to, count }: Reopenings, length: Millis, start: Millis, width: Millis): Range {
  const changes = new Int32Array(BINS + 1);
  const add = (first: number, last: number): void => {
    const [begin, end] = [Math.max(0, first), Math.min(BINS - 1, last)];
    if (begin > end) return;
    changes[begin] = (changes[begin] ?? 0) + 1;
    changes[end + 1] = (changes[end + 1] ?? 0) - 1;
  };
  const turn = Math.round(length / width);
  for (let i = 0; i < count; i += 1) {
    const [begin, end] = [from[i] ?? 0, to[i] ?? 0];
    // It contains every phase.
    if (end - begin >= length) continue;
    const offset = modulo(begin - start, length);
    const [first, last] = [Math.floor(offset / width), Math.floor((offset + end - begin) / width)];
    add(first, last);
    add(first - turn, last - turn);
  }
  let [most, first, bins, sum, run] = [-1, 0, 0, 0, 0];
  for (let bin = 0; bin < BINS; bin += 1) {
    const change = changes[bin] ?? 0;
    sum += change;
    run = change === 0 ? run + 1 : 1;
    if (sum > most || (sum === most && run > bins)) [most, first, bins] = [sum, bin - run + 1, run];
  }
  return { begin: start + first * width, end: start + (first + bins) * width };
}

function modulo(value: number, length: number): number {
  return ((value % length) + length) % length;
}
