import type { PerSecond } from '../../core/scalars.ts';
import type { NestableLimitSpec } from '../../simulator/limit-models/limit-model-spec.ts';
import type { LatencySpec } from '../../simulator/upstream/latency-model.ts';
import type { UpstreamSpec } from '../../simulator/upstream/upstream-model.ts';
import type { InferredBucket, KnownLimit } from './infer-bucket.ts';
import type { IdentifiedLimit } from './limits/identify-limit.ts';
import type { LogSummary } from './log-survey.ts';
import { classifyUnclear } from './log-survey.ts';

/** The latency assumed for a log without times. */
const DEFAULT_LATENCY: LatencySpec = { kind: 'lognormal', mean: 100 };

/**
 * The upstream to replay to: it answers like the one in the log.
 * @param inferred undefined if the log shows no limit
 * @param identified the kind of limit, if the log shows it; else the limit is a token bucket
 */
export function fitUpstream(
  surveyed: LogSummary,
  inferred: InferredBucket | undefined,
  known: KnownLimit,
  identified?: IdentifiedLimit,
): UpstreamSpec {
  const { service, refusing, answers } = surveyed;
  const rate = known.rate ?? inferred?.rate;
  const failed = answers.failed + (classifyUnclear(surveyed) === 'failed' ? answers.unclear : 0);
  const errors = failed === 0 ? [] : [{ probability: failed / (failed + answers.passed), status: 503 }];
  return {
    limit:
      replayableLimit(identified) ??
      (rate === undefined
        ? { kind: 'unlimited' }
        : { kind: 'token-bucket', rate, burst: known.burst ?? inferred?.burst ?? assumeBurst(rate) }),
    latency: service?.spec ?? DEFAULT_LATENCY,
    ...(refusing === undefined ? {} : { refusalLatency: refusing.spec }),
    hints: 'none',
    errors,
  };
}

/** The burst of a known limit without any attempt in the log: a tenth of a second's worth. */
function assumeBurst(rate: PerSecond): number {
  return Math.max(1, Math.round(rate / 10));
}

/** @returns undefined for a token bucket, which reproduces the counts of any log, and if the log does not show the kind */
function replayableLimit(identified: IdentifiedLimit | undefined): NestableLimitSpec | undefined {
  const [best] = identified?.ranking ?? [];
  if (identified?.confidence !== 'sure' || best?.limit.kind !== identified.kind) return undefined;
  switch (best.limit.kind) {
    case 'fixed-window':
    case 'sliding-window': {
      const { kind, limit, window } = best.limit;
      return { kind, limit, window };
    }
    case 'concurrency':
      return best.limit;
    default:
      return undefined;
  }
}
