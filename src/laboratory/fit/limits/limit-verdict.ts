import type { AttemptSeries } from './attempt-series.ts';
import type { FittedLimit, LimitFit, LimitKind } from './limit-fit.ts';
import { FITTED_NUMBERS } from './limit-fit.ts';
import type { ServiceFit } from './service-fit.ts';
import { countPredicted, countWrong, penalizedLikelihood, tabulate, UNKNOWN } from './prediction-table.ts';

export interface RankedLimit {
  readonly limit: FittedLimit;
  /** Penalized log-likelihood of the responses, in nats. */
  readonly likelihood: number;
  /** Responses that it predicted, and those of them that came otherwise. */
  readonly predicted: number;
  readonly wrong: number;
}

export type ServiceKind = 'queue' | 'sharing';

/** Services that reject nothing, fitted to the times of a log. Undefined without times, or if too few requests waited. */
export interface ServiceFits {
  readonly queue: ServiceFit | undefined;
  readonly sharing: ServiceFit | undefined;
  /** Most requests were there so long that the log does not show how many were in flight. */
  readonly isHidden: boolean;
}

/** What a log shows, and how sure it is. */
export interface LimitVerdict {
  /**
   * `sure`: the likeliest kind predicts the log, and no other does. `unsure`: another kind predicts it as well. `partly`: the likeliest
   * kind leaves many responses unexplained. `few`: not enough refusals to tell. `coarse`: the log has its times in whole seconds.
   */
  readonly confidence: 'sure' | 'unsure' | 'partly' | 'few' | 'coarse';
  /** `queue`, `sharing`: no refusals, but latency grows as behind a queue, or as where all requests are worked on at once. */
  readonly kind: LimitKind | ServiceKind;
  /** How much likelier the log is with this kind than with the next, in nats; undefined if there is no other. */
  readonly margin: number | undefined;
  /** Refusals beyond those of the log that would be enough; 0 if they are. */
  readonly missing: number;
}

/**
 * A log twenty times as likely, and more: strong evidence is 3 nats and very strong is 5, in R. E. Kass and A. E. Raftery, Bayes
 * factors, J. Amer. Statist. Assoc. 90 (1995).
 */
export const SURE_MARGIN = 5;
/**
 * The search tries some thousand windows, so chance finds one that is likelier than none by the logarithm of that, and then as sure as
 * above.
 */
const LEAST_GAIN = 14;
/** Fewer refusals, or fewer accepted attempts, do not show a kind. */
const MIN_RESPONSES = 100;
/** A kind that predicts fewer of its responses leaves something unexplained. */
const MIN_RIGHT = 0.9;
/**
 * Service times that depend on the number in flight are not explained. If they are almost constant, a small effect of a busy machine
 * correlates with that number: so a trend below this share may correlate more.
 */
const MAX_CORRELATION = 0.1;
const MAX_SLIGHT_CORRELATION = 0.6;
const MAX_TREND = 0.05;
/** Of few requests, times correlate by chance: this divided by the root of their number is three standard deviations. */
const CHANCE_CORRELATION = 3;
/** If other numbers of workers, further from the likeliest than this, are almost as likely, the number is not sure. */
const MAX_WORKERS_RATIO = 1.15;

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
  services: ServiceFits,
  passed: number,
  refused: number,
): LimitVerdict {
  const [best, next] = ranking;
  const none = ranking.find(({ limit }) => limit.kind === 'none');
  if (best === undefined || best.likelihood < (none?.likelihood ?? 0) + LEAST_GAIN) {
    // A few refusals beside a queue are of another cause.
    const service = judgeServices(services);
    if (service !== undefined) return service;
    if (refused === 0) {
      return { confidence: mayBeDelayed(services) ? 'unsure' : 'sure', kind: 'none', margin: undefined, missing: 0 };
    }
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

/** The likelier of the services that the log shows; undefined if it shows none. */
function judgeServices({ queue, sharing }: ServiceFits): LimitVerdict | undefined {
  const [queueMargin, sharingMargin] = [shownMargin(queue, SURE_MARGIN), shownMargin(sharing, LEAST_GAIN)];
  const [kind, best] = sharingMargin > queueMargin ? (['sharing', sharing] as const) : (['queue', queue] as const);
  const margin = Math.abs(queueMargin - sharingMargin);
  if (best === undefined || Math.max(queueMargin, sharingMargin) === 0) return undefined;
  const { workers, fewest, most } = best;
  const isNumberSure = most <= MAX_WORKERS_RATIO * workers && workers <= MAX_WORKERS_RATIO * fewest;
  const isSure = margin >= SURE_MARGIN && isNumberSure;
  return { confidence: isSure ? 'sure' : 'unsure', kind, margin, missing: 0 };
}

/** How much likelier the log is with this service than without it, in nats; 0 if it does not show it. */
function shownMargin(fit: ServiceFit | undefined, leastMargin: number): number {
  if (fit === undefined || fit.margin < leastMargin) return 0;
  const mostByChance = Math.max(MAX_CORRELATION, CHANCE_CORRELATION / Math.sqrt(fit.examined));
  const maxCorrelation = Math.abs(fit.trend) < MAX_TREND ? MAX_SLIGHT_CORRELATION : mostByChance;
  return Math.abs(fit.correlation) < maxCorrelation ? fit.margin : 0;
}

/** Whether latency depends on the number in flight in another way, or the log does not show that number. */
function mayBeDelayed({ queue, sharing, isHidden }: ServiceFits): boolean {
  return isHidden || Math.max(queue?.margin ?? 0, sharing?.margin ?? 0) >= LEAST_GAIN;
}

function marginOf(best: RankedLimit | undefined, next: RankedLimit | undefined): number | undefined {
  return best === undefined || next === undefined ? undefined : best.likelihood - next.likelihood;
}

function missingOf(responses: number): number {
  return Math.max(0, MIN_RESPONSES - responses);
}
