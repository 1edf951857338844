import type { QueueFit } from './fit-queue.ts';
import type { AttemptSeries } from './attempt-series.ts';
import type { FittedLimit, LimitFit, LimitKind } from './limit-fit.ts';
import { FITTED_NUMBERS } from './limit-fit.ts';
import { countPredicted, countWrong, penalizedLikelihood, tabulate, UNKNOWN } from './prediction-table.ts';

export interface RankedLimit {
  readonly limit: FittedLimit;
  /** Penalized log-likelihood of the responses, in nats. */
  readonly likelihood: number;
  /** Responses that it predicted, and those of them that came otherwise. */
  readonly predicted: number;
  readonly wrong: number;
}

/** What a log shows, and how sure it is. */
export interface LimitVerdict {
  /**
   * `sure`: the likeliest kind predicts the log, and no other does. `unsure`: another kind predicts it as well. `partly`: the likeliest
   * kind leaves many responses unexplained. `few`: not enough refusals to tell. `coarse`: the log has its times in whole seconds.
   */
  readonly confidence: 'sure' | 'unsure' | 'partly' | 'few' | 'coarse';
  /** `queue`: no refusals, but latency grows as behind a queue. */
  readonly kind: LimitKind | 'queue';
  /** How much likelier the log is with this kind than with the next, in nats; undefined if there is no other. */
  readonly margin: number | undefined;
  /** Refusals beyond those of the log that would be enough; 0 if they are. */
  readonly missing: number;
}

/**
 * A log twenty times as likely, and more: strong evidence is 3 nats and very strong is 5, in R. E. Kass and A. E. Raftery, Bayes
 * factors, J. Amer. Statist. Assoc. 90 (1995).
 */
const SURE_MARGIN = 5;
/**
 * The search tries some thousand windows, so chance finds one that is likelier than none by the logarithm of that, and then as sure as
 * above.
 */
const LEAST_GAIN = 14;
/** Fewer refusals, or fewer accepted attempts, do not show a kind. */
const MIN_RESPONSES = 100;
/** A kind that predicts fewer of its responses leaves something unexplained. */
const MIN_RIGHT = 0.9;
/** Service times that depend on the number in flight are not those of a queue. */
const MAX_CORRELATION = 0.2;

/**
 * The likeliest first. All are compared on the attempts that each of them predicts: one whose state is known sooner after a gap has
 * no advantage.
 */
export function rankLimits(series: AttemptSeries, fits: readonly LimitFit[]): RankedLimit[] {
  const isScored = Uint8Array.from(series.outcomes, (_, i) =>
    fits.every(({ predictions }) => predictions[i] !== UNKNOWN) ? 1 : 0,
  );
  const none: LimitFit = { limit: { kind: 'none' }, predictions: new Uint8Array(series.count).fill(UNKNOWN) };
  return [...fits, none]
    .map(({ limit, predictions }) => {
      const table = tabulate(series, predictions, isScored);
      const all = tabulate(series, predictions);
      return {
        limit,
        likelihood: penalizedLikelihood(table, FITTED_NUMBERS[limit.kind]),
        predicted: countPredicted(all),
        wrong: countWrong(all),
      };
    })
    .toSorted((a, b) => b.likelihood - a.likelihood);
}

export function judgeLimits(
  ranking: readonly RankedLimit[],
  queue: QueueFit | undefined,
  passed: number,
  refused: number,
): LimitVerdict {
  const [best, next] = ranking;
  const none = ranking.find(({ limit }) => limit.kind === 'none');
  if (best === undefined || best.likelihood < (none?.likelihood ?? 0) + LEAST_GAIN) {
    // A few refusals beside a queue are of another cause.
    if (isQueue(queue)) return { confidence: 'sure', kind: 'queue', margin: queue.margin, missing: 0 };
    if (refused === 0) return { confidence: 'sure', kind: 'none', margin: undefined, missing: 0 };
    const missing = missingOf(Math.min(passed, refused));
    return { confidence: missing > 0 ? 'few' : 'sure', kind: 'none', margin: undefined, missing };
  }
  const missing = missingOf(Math.min(passed, refused));
  const common = { kind: best.limit.kind, margin: marginOf(best, next), missing };
  if (common.missing > 0) return { confidence: 'few', ...common };
  if (common.margin !== undefined && common.margin < SURE_MARGIN) return { confidence: 'unsure', ...common };
  const isRight = best.wrong <= (1 - MIN_RIGHT) * best.predicted;
  return { confidence: isRight ? 'sure' : 'partly', ...common };
}

function isQueue(queue: QueueFit | undefined): queue is QueueFit {
  return queue !== undefined && queue.margin >= SURE_MARGIN && Math.abs(queue.correlation) < MAX_CORRELATION;
}

function marginOf(best: RankedLimit | undefined, next: RankedLimit | undefined): number | undefined {
  return best === undefined || next === undefined ? undefined : best.likelihood - next.likelihood;
}

function missingOf(responses: number): number {
  return Math.max(0, MIN_RESPONSES - responses);
}
