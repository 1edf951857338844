import type { Millis } from '../../../core/scalars.ts';
import { REFUSED } from '../log-excerpt.ts';
import type { AttemptSeries } from './attempt-series.ts';
import { UNKNOWN_LEVEL } from './best-threshold.ts';

/** Fewer times than this share of the accepted attempts do not show how many were in flight. */
const MIN_TIMED = 0.9;
/** After a gap, most of what was in flight before it has ended after this quantile of the times, … */
const LONG_QUANTILE = 0.99;
/** … or, behind a queue, when the first so many after it have ended. */
const FIRST = 8;

/** When accepted attempts ended. */
export interface Departures {
  /** The index of each accepted attempt, by time of arrival. */
  readonly accepted: Uint32Array;
  /** Their ends in the same order. */
  readonly ends: Float64Array;
  /** The ends by time. */
  readonly sortedEnds: Float64Array;
  /** A long time of an attempt. */
  readonly long: Millis;
}

/** @returns undefined if the log has no times */
export function listDepartures({ count, at, outcomes, took }: AttemptSeries): Departures | undefined {
  const accepted = new Uint32Array(count);
  const known = new Float64Array(count);
  let [size, timed] = [0, 0];
  for (let i = 0; i < count; i += 1) {
    if (outcomes[i] === REFUSED) continue;
    accepted[size] = i;
    size += 1;
    const time = took[i] ?? Number.NaN;
    if (Number.isNaN(time)) continue;
    known[timed] = time;
    timed += 1;
  }
  if (timed === 0 || timed < MIN_TIMED * size) return undefined;
  const times = known.subarray(0, timed).toSorted();
  const median = times[timed >> 1] ?? 0;
  const indices = accepted.subarray(0, size);
  const ends = Float64Array.from(indices, (i) => {
    const time = took[i] ?? Number.NaN;
    return (at[i] ?? 0) + (Number.isNaN(time) ? median : time);
  });
  const long = times[Math.floor(LONG_QUANTILE * (timed - 1))] ?? 0;
  return { accepted: indices, ends, sortedEnds: ends.toSorted(), long };
}

/** The number of accepted requests in flight when each attempt came. */
export function computeInFlightLevels(
  { count, at, outcomes, gaps }: AttemptSeries,
  { ends, sortedEnds, long }: Departures,
): Int32Array {
  const levels = new Int32Array(count);
  let [accepted, ended, nextGap, knownFrom] = [0, 0, 0, Number.NEGATIVE_INFINITY];
  for (let i = 0; i < count; i += 1) {
    const now = at[i] ?? 0;
    if (i === gaps[nextGap]) {
      nextGap += 1;
      knownFrom = Math.min(now + long, ends.subarray(accepted, accepted + FIRST).reduce(laterOf, now));
    }
    while (ended < accepted && (sortedEnds[ended] ?? 0) <= now) ended += 1;
    levels[i] = now < knownFrom ? UNKNOWN_LEVEL : accepted - ended;
    if (outcomes[i] !== REFUSED) accepted += 1;
  }
  return levels;
}

/** Whether the log does not show how many were in flight, for most accepted attempts. */
export function areLevelsHidden(series: AttemptSeries): boolean {
  const departures = listDepartures(series);
  if (departures === undefined) return false;
  const levels = computeInFlightLevels(series, departures);
  const { accepted } = departures;
  return 2 * accepted.filter((i) => levels[i] === UNKNOWN_LEVEL).length > accepted.length;
}

/** The most requests that an accepted one met. */
export function busiestLevel({ accepted }: Departures, levels: Int32Array): number {
  return accepted.reduce((most, i) => Math.max(most, levels[i] ?? 0), 0);
}

function laterOf(a: Millis, b: Millis): Millis {
  return Math.max(a, b);
}
