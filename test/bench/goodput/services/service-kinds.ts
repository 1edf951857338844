import type { Millis } from '../../../../src/core/scalars.ts';
import type { WorkersSpec } from '../../../../src/simulator/limit-models/workers.ts';
import type { UpstreamSpec } from '../../../../src/simulator/upstream/upstream-model.ts';
import type { ServiceGoal } from './service-goals.ts';

/** A service that never rejects: requests wait for its workers, in the order of arrival. */
export interface ServiceKind {
  readonly name: string;
  readonly title: string;
  readonly upstream: UpstreamSpec & { readonly limit: WorkersSpec };
  /** When clients give up and disconnect. */
  readonly timeout: Millis;
  /** Seconds before the counted ones. */
  readonly warmup: number;
  readonly seconds: number;
  /** Of Tidegate with `learnFromLatency`. */
  readonly goals: readonly ServiceGoal[];
}

export const SERVICE_KINDS: readonly ServiceKind[] = [
  {
    name: 'workers-8',
    title: '8 workers of 50 ms, timeout of 1 s',
    upstream: { limit: { kind: 'workers', workers: 8 }, latency: { kind: 'lognormal', mean: 50 } },
    timeout: 1000,
    warmup: 20,
    seconds: 30,
    goals: [
      { figure: 'goodput', atLeast: 0.9 },
      { figure: 'waitP99', atMost: 3 * 50 },
    ],
  },
  {
    name: 'workers-2',
    title: '2 workers of 200 ms, timeout of 2 s',
    upstream: { limit: { kind: 'workers', workers: 2 }, latency: { kind: 'lognormal', mean: 200 } },
    timeout: 2000,
    warmup: 20,
    seconds: 60, // 600 requests: the mean of their times varies by 2 %
    goals: [
      { figure: 'goodput', atLeast: 0.85 },
      { figure: 'abandoned', atMost: 0.02 },
    ],
  },
];

/** Requests that HAProxy with a `maxconn` leaves at the service: a request waits about as long as it is worked on. */
export function maxconnOf({ upstream }: ServiceKind): number {
  return 2 * upstream.limit.workers;
}
