/** Upstreams of each kind of limit, and what `lab fit` should learn of them from a log. */
import type { UpstreamSpec } from '../../../src/simulator/upstream/upstream-model.ts';
import { runToCompletion } from '../../../src/laboratory/experiment.ts';
import { BucketSearch } from '../../../src/laboratory/fit/infer-bucket.ts';
import type { IdentifiedLimit } from '../../../src/laboratory/fit/limits/identify-limit.ts';
import { LimitIdentification } from '../../../src/laboratory/fit/limits/identify-limit.ts';
import type { SyntheticTraffic } from './synthetic-log.ts';
import { makeSyntheticLog, surveySynthetic } from './synthetic-log.ts';

export interface LimitCase {
  readonly name: string;
  readonly upstream: UpstreamSpec;
  /** Requests a second that it serves. */
  readonly capacity: number;
  readonly kind: IdentifiedLimit['kind'];
}

const VARIED = { kind: 'lognormal', mean: 40 } as const;

export const LIMIT_CASES: readonly LimitCase[] = [
  {
    name: 'token bucket, 50/s, burst 10',
    upstream: { limit: { kind: 'token-bucket', rate: 50, burst: 10 }, latency: VARIED },
    capacity: 50,
    kind: 'token-bucket',
  },
  {
    name: 'fixed window, 200 in 10 s',
    upstream: { limit: { kind: 'fixed-window', limit: 200, window: 10_000 }, latency: VARIED },
    capacity: 20,
    kind: 'fixed-window',
  },
  {
    name: 'fixed window, 300 in 60 s',
    upstream: { limit: { kind: 'fixed-window', limit: 300, window: 60_000 }, latency: VARIED },
    capacity: 5,
    kind: 'fixed-window',
  },
  {
    name: 'fixed window, 100 in 7.3 s',
    upstream: { limit: { kind: 'fixed-window', limit: 100, window: 7300 }, latency: VARIED },
    capacity: 100 / 7.3,
    kind: 'fixed-window',
  },
  {
    name: 'sliding window, 200 in 10 s',
    upstream: { limit: { kind: 'sliding-window', limit: 200, window: 10_000 }, latency: VARIED },
    capacity: 20,
    kind: 'sliding-window',
  },
  {
    name: '5 in flight of 200 ms',
    upstream: { limit: { kind: 'concurrency', limit: 5 }, latency: { kind: 'constant', mean: 200 } },
    capacity: 25,
    kind: 'concurrency',
  },
  {
    name: '5 in flight of 200 ms, varied',
    upstream: { limit: { kind: 'concurrency', limit: 5 }, latency: { kind: 'lognormal', mean: 200 } },
    capacity: 25,
    kind: 'concurrency',
  },
  {
    name: 'queue, 8 workers of 50 ms',
    upstream: { limit: { kind: 'workers', workers: 8 }, latency: { kind: 'constant', mean: 50 } },
    capacity: 160,
    kind: 'queue',
  },
  {
    name: 'queue, 8 workers of 50 ms, exponential',
    upstream: { limit: { kind: 'workers', workers: 8 }, latency: { kind: 'exponential', mean: 50 } },
    capacity: 160,
    kind: 'queue',
  },
  {
    name: 'no limit',
    upstream: { limit: { kind: 'unlimited' }, latency: VARIED },
    capacity: 100,
    kind: 'none',
  },
];

/** Services that work on all requests at once. If there are always more than workers, their number does not show. */
export const SHARING_CASES: readonly LimitCase[] = [
  {
    name: 'shared workers, 8 of 50 ms',
    upstream: {
      limit: { kind: 'workers', workers: 8, discipline: 'sharing' },
      latency: { kind: 'constant', mean: 50 },
    },
    capacity: 160,
    kind: 'sharing',
  },
  {
    name: 'shared workers, 8 of 50 ms, exponential',
    upstream: {
      limit: { kind: 'workers', workers: 8, discipline: 'sharing' },
      latency: { kind: 'exponential', mean: 50 },
    },
    capacity: 160,
    kind: 'sharing',
  },
];

export interface CaseResult {
  readonly identified: IdentifiedLimit;
  readonly requests: number;
  /** Whether the log has as many rejections as a kind of limit needs. */
  readonly isEnough: boolean;
  /** Whether the limit and the length of the window, or the workers, are as they are. */
  readonly areNumbersRight: boolean;
}

/** @param load the demand as a share of what the upstream serves */
export function runLimitCase(
  { upstream, capacity, kind }: LimitCase,
  { load, arrivals, seed }: Pick<SyntheticTraffic, 'arrivals' | 'seed'> & { readonly load: number },
): CaseResult {
  const requests = Math.round(4000 * Math.max(1, load));
  const spell = 'window' in upstream.limit ? upstream.limit.window : 2000;
  const log = makeSyntheticLog(upstream, { demand: load * capacity, requests, arrivals, seed, spell });
  const segments = surveySynthetic(log);
  const bucket = runToCompletion(new BucketSearch(segments, { rate: undefined, burst: undefined }));
  const identified = runToCompletion(new LimitIdentification(segments, bucket));
  const isEnough = upstream.limit.kind === 'workers' || kind === 'none' || identified.refused >= 100;
  // A log without rests does not show the burst.
  const isBurstShown = bucket?.burstIs === 'told';
  return { identified, requests, isEnough, areNumbersRight: areNumbersRight(upstream, identified, isBurstShown) };
}

function areNumbersRight(
  { limit }: UpstreamSpec,
  { kind, ranking, queue, sharing }: IdentifiedLimit,
  isBurstShown: boolean,
): boolean {
  const found = ranking[0]?.limit;
  switch (limit.kind) {
    case 'token-bucket':
      return (
        found?.kind === limit.kind &&
        isNear(found.rate, limit.rate, 0.05) &&
        (!isBurstShown || isNear(found.burst, limit.burst, 0.1))
      );
    case 'fixed-window':
    case 'sliding-window':
      return (
        found?.kind === limit.kind && isNear(found.limit, limit.limit, 0.05) && isNear(found.window, limit.window, 0.1)
      );
    case 'concurrency':
      return found?.kind === limit.kind && found.limit === limit.limit;
    case 'workers':
      return kind === 'sharing'
        ? limit.discipline === kind && isNear(sharing?.workers ?? 0, limit.workers, 0.15)
        : kind === 'queue' && limit.discipline !== 'sharing' && queue?.workers === limit.workers;
    default:
      return kind === 'none';
  }
}

function isNear(value: number, truth: number, tolerance: number): boolean {
  return Math.abs(value / truth - 1) <= tolerance;
}
