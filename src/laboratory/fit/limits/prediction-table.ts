/**
 * How well a limit predicts each response of a log from the responses before it. The likelihood of a log is the product of these
 * predictions: A. P. Dawid, Statistical theory: the prequential approach, J. R. Stat. Soc. A 147 (1984).
 */
import { PASSED, REFUSED } from '../log-excerpt.ts';
import type { AttemptSeries } from './attempt-series.ts';

/** A prediction: the attempt passes, is refused, or either, because the state of the limit is unknown after a gap in the log. */
export const OPEN = 0;
export const SHUT = 1;
export const UNKNOWN = 2;

/** Counts of responses: what was predicted, and what came. */
export interface PredictionTable {
  readonly openPassed: number;
  readonly openRefused: number;
  readonly shutPassed: number;
  readonly shutRefused: number;
  readonly unknownPassed: number;
  readonly unknownRefused: number;
}

/** @param isScored attempts that count; absent: all */
export function tabulate(
  { count, outcomes }: AttemptSeries,
  predictions: Uint8Array,
  isScored?: Uint8Array,
): PredictionTable {
  const [passed, refused] = [new Uint32Array(3), new Uint32Array(3)];
  for (let i = 0; i < count; i += 1) {
    if (isScored !== undefined && isScored[i] === 0) continue;
    const [outcome, prediction] = [outcomes[i], predictions[i] ?? UNKNOWN];
    if (outcome === PASSED) passed[prediction] = (passed[prediction] ?? 0) + 1;
    else if (outcome === REFUSED) refused[prediction] = (refused[prediction] ?? 0) + 1;
  }
  const [openPassed = 0, shutPassed = 0, unknownPassed = 0] = passed;
  const [openRefused = 0, shutRefused = 0, unknownRefused = 0] = refused;
  return { openPassed, openRefused, shutPassed, shutRefused, unknownPassed, unknownRefused };
}

/**
 * In nats, ≤ 0; 0 if every response was predicted. Each prediction has the refused share that fits it best. Predictions that are the
 * reverse of the responses count as none.
 */
export function logLikelihood(table: PredictionTable): number {
  const { openPassed, openRefused, shutPassed, shutRefused, unknownPassed, unknownRefused } = table;
  const isReversed = openRefused * (shutPassed + shutRefused) > shutRefused * (openPassed + openRefused);
  const predicted = isReversed
    ? rowLikelihood(openPassed + shutPassed, openRefused + shutRefused)
    : rowLikelihood(openPassed, openRefused) + rowLikelihood(shutPassed, shutRefused);
  return predicted + rowLikelihood(unknownPassed, unknownRefused);
}

/** The log-likelihood of `a` and `b` of two outcomes, each as frequent as it was, in nats. */
function rowLikelihood(a: number, b: number): number {
  const sum = a + b;
  return (a === 0 ? 0 : a * Math.log(a / sum)) + (b === 0 ? 0 : b * Math.log(b / sum));
}

/**
 * The log-likelihood less half the logarithm of the number of responses for each number that was fitted:
 * G. Schwarz, Estimating the dimension of a model, Ann. Statist. 6 (1978).
 */
export function penalizedLikelihood(table: PredictionTable, parameters: number): number {
  const responses = countPredicted(table) + table.unknownPassed + table.unknownRefused;
  return logLikelihood(table) - (parameters / 2) * Math.log(Math.max(1, responses));
}

/** Responses that came otherwise than predicted. */
export function countWrong({ openRefused, shutPassed }: PredictionTable): number {
  return openRefused + shutPassed;
}

/** Responses with a prediction. */
export function countPredicted({ openPassed, openRefused, shutPassed, shutRefused }: PredictionTable): number {
  return openPassed + openRefused + shutPassed + shutRefused;
}
