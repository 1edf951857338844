import type { Millis } from '../../../core/scalars.ts';
import type { LogSegment } from '../log-excerpt.ts';
import { PASSED, REFUSED } from '../log-excerpt.ts';

/** The attempts of a log in one row, by time, to try limits on. */
export interface AttemptSeries {
  readonly count: number;
  readonly at: Float64Array;
  /** `PASSED`, `REFUSED` or `FAILED`. A failed attempt is accepted by the limit, but predicts nothing. */
  readonly outcomes: Uint8Array;
  /** NaN if the log does not have it. */
  readonly took: Float64Array;
  /** Indices of attempts before which some of the log is missing: the first, and each after a gap. */
  readonly gaps: readonly number[];
  readonly passed: number;
  readonly refused: number;
  /** Time of the stretches without the gaps, in ms. */
  readonly span: Millis;
}

export function joinSegments(segments: readonly LogSegment[]): AttemptSeries {
  const count = segments.reduce((sum, each) => sum + each.count, 0);
  const [at, outcomes, took] = [new Float64Array(count), new Uint8Array(count), new Float64Array(count)];
  const gaps: number[] = [];
  let [next, passed, refused, span] = [0, 0, 0, 0];
  for (const segment of segments) {
    if (next === 0 || !segment.isContiguous) gaps.push(next);
    at.set(segment.at.subarray(0, segment.count), next);
    outcomes.set(segment.outcomes.subarray(0, segment.count), next);
    took.set(segment.took.subarray(0, segment.count), next);
    next += segment.count;
    span += (segment.at[segment.count - 1] ?? 0) - (segment.at[0] ?? 0);
  }
  for (const outcome of outcomes) {
    if (outcome === PASSED) passed += 1;
    else if (outcome === REFUSED) refused += 1;
  }
  return { count, at, outcomes, took, gaps, passed, refused, span };
}
