import { PASSED, REFUSED } from '../log-excerpt.ts';
import type { PredictionTable } from './prediction-table.ts';
import { logLikelihood, OPEN, SHUT, UNKNOWN } from './prediction-table.ts';
import type { AttemptSeries } from './attempt-series.ts';

/** Marks an attempt before which the level is unknown. */
export const UNKNOWN_LEVEL = -1;

/** The limit whose predictions are the likeliest. */
export interface BestThreshold {
  /** ≥ 1: attempts that find this level or a higher one are refused. */
  readonly limit: number;
  readonly likelihood: number;
}

/**
 * A window and a limit on requests in flight refuse what finds a level (requests in the window, requests in flight) at the limit.
 * Finds the limit that predicts the log best, in one pass over the levels.
 * @param levels before each attempt; `UNKNOWN_LEVEL` without a prediction
 * @returns undefined if every attempt finds level 0, or an unknown one
 */
export function findThreshold({ outcomes, count }: AttemptSeries, levels: Int32Array): BestThreshold | undefined {
  const highest = levels.reduce((a, b) => Math.max(a, b), 0);
  const [passedAt, refusedAt] = [new Uint32Array(highest + 1), new Uint32Array(highest + 1)];
  let [unknownPassed, unknownRefused, shutPassed, shutRefused] = [0, 0, 0, 0];
  for (let i = 0; i < count; i += 1) {
    const [level, isPassed, isRefused] = [levels[i] ?? 0, outcomes[i] === PASSED, outcomes[i] === REFUSED];
    if (level === UNKNOWN_LEVEL) {
      if (isPassed) unknownPassed += 1;
      else if (isRefused) unknownRefused += 1;
    } else if (isPassed) {
      passedAt[level] = (passedAt[level] ?? 0) + 1;
      shutPassed += 1;
    } else if (isRefused) {
      refusedAt[level] = (refusedAt[level] ?? 0) + 1;
      shutRefused += 1;
    }
  }
  let best: BestThreshold | undefined;
  let [openPassed, openRefused] = [0, 0];
  for (let limit = 1; limit <= highest; limit += 1) {
    const [passed, refused] = [passedAt[limit - 1] ?? 0, refusedAt[limit - 1] ?? 0];
    openPassed += passed;
    openRefused += refused;
    shutPassed -= passed;
    shutRefused -= refused;
    const table: PredictionTable = { openPassed, openRefused, shutPassed, shutRefused, unknownPassed, unknownRefused };
    const likelihood = logLikelihood(table);
    if (best === undefined || likelihood > best.likelihood) best = { limit, likelihood };
  }
  return best;
}

/** What a limit predicts for each attempt. */
export function predictByLevel(levels: Int32Array, limit: number): Uint8Array {
  return Uint8Array.from(levels, (level) => (level === UNKNOWN_LEVEL ? UNKNOWN : level < limit ? OPEN : SHUT));
}
