import type { PerSecond } from '../../../src/core/scalars.ts';
import type { LatencySpec } from '../../../src/simulator/upstream/latency-model.ts';
import type { LimitModelSpec } from '../../../src/simulator/limit-models/limit-model-spec.ts';
import { limitOf } from '../../../src/simulator/limit-models/limit-model-spec.ts';
import { upstreamCapacity } from '../../../src/simulator/report/upstream-capacity.ts';
import type { UpstreamSpec } from '../../../src/simulator/upstream/upstream-model.ts';

/** A hidden limit to be learned. */
export interface LimitKind {
  readonly name: string;
  readonly title: string;
  readonly upstream: UpstreamSpec;
  /** Seconds in which nearly all runs learn the limit; measuring earlier would measure the speed of learning. */
  readonly warmup: number;
  /** Counted seconds, enough for little variance between runs. */
  readonly seconds: number;
}

const USUAL = { warmup: 10, seconds: 30 } as const;
/** A long window is learned from its first blackouts, a concurrency limit from a series of rejections. */
const SLOWLY_FOUND = { warmup: 30, seconds: 60 } as const;

const SERVICE: Extract<LatencySpec, { readonly kind: 'exponential' }> = { kind: 'exponential', mean: 50 };

export const KINDS: readonly LimitKind[] = [
  kind('token-bucket-100', 'token bucket, 100/s, burst 20', { kind: 'token-bucket', rate: 100, burst: 20 }),
  kind('token-bucket-300', 'token bucket, 300/s, burst 20', { kind: 'token-bucket', rate: 300, burst: 20 }),
  kind('gcra-50', 'GCRA, 50/s, burst 5', { kind: 'gcra', rate: 50, burst: 5 }),
  kind('fixed-100-1s', 'fixed window, 100 in 1 s', { kind: 'fixed-window', limit: 100, window: 1000 }),
  kind(
    'fixed-500-10s',
    'fixed window, 500 in 10 s',
    { kind: 'fixed-window', limit: 500, window: 10_000 },
    SERVICE,
    SLOWLY_FOUND,
  ),
  kind('sliding-100-1s', 'sliding window, 100 in 1 s', { kind: 'sliding-window', limit: 100, window: 1000 }),
  kind('sliding-counting-100-1s', 'sliding window, 100 in 1 s, refusals count', {
    kind: 'sliding-window-counting',
    limit: 100,
    window: 1000,
  }),
  kind(
    'concurrency-20',
    '20 in flight, 100 ms each',
    { kind: 'concurrency', limit: 20 },
    { ...SERVICE, mean: 100 },
    SLOWLY_FOUND,
  ),
];

/** Requests a second that the hidden limit admits, or that the workers of a service answer. */
export function capacity({ upstream }: Pick<LimitKind, 'upstream'>): PerSecond {
  return upstreamCapacity(upstream)(0, limitOf(upstream.limit));
}

function kind(
  name: string,
  title: string,
  limit: LimitModelSpec,
  latency = SERVICE,
  times: Pick<LimitKind, 'warmup' | 'seconds'> = USUAL,
): LimitKind {
  return { name, title, upstream: { limit, latency }, ...times };
}
