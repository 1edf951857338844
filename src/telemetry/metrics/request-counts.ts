import type { RequestOutcome } from '../../core/events/event-labels.ts';
import type { Millis } from '../../core/scalars.ts';
import { REQUEST_BUCKETS } from './duration-histogram.ts';

/** Counters since the start; the difference of two readings gives rates. Sent between processes in this form. */
export interface RequestCounts {
  readonly outcomes: Readonly<Record<RequestOutcome, number>>;
  /** Requests in flight. */
  readonly inFlight: number;
  /** Responses to clients with a status of 500 or above, those of Tidegate included. */
  readonly serverErrors: number;
  /** Request durations by bucket, not cumulative. */
  readonly durations: readonly number[];
  readonly upstreams: ReadonlyMap<string, UpstreamCounts>;
}

export interface UpstreamCounts {
  readonly sent: number;
  /** Responses that are neither throttled nor a gateway error. */
  readonly accepted: number;
  readonly throttled: number;
  /** Attempts without a response, or with a status of 500 or above that is not throttling. */
  readonly failed: number;
  readonly retries: number;
  /** Requests that Tidegate refused, or that timed out in the queue. */
  readonly refused: number;
  /** Outcomes of checked requests that an ingress reported. */
  readonly reported: number;
  /** Attempt durations by bucket, not cumulative. */
  readonly durations: readonly number[];
}

export const ZERO_REQUEST_COUNTS: RequestCounts = {
  outcomes: {
    forwarded: 0,
    recovered: 0,
    replayed: 0,
    coalesced: 0,
    checked: 0,
    accepted: 0,
    preflight: 0,
    refused: 0,
    queue_timeout: 0,
    upstream_error: 0,
    unknown: 0,
    client_gone: 0,
  },
  inFlight: 0,
  serverErrors: 0,
  durations: [],
  upstreams: new Map(),
};

export const ZERO_UPSTREAM_COUNTS: UpstreamCounts = {
  sent: 0,
  accepted: 0,
  throttled: 0,
  failed: 0,
  retries: 0,
  refused: 0,
  reported: 0,
  durations: [],
};

/** The sum over several processes. */
export function sumRequestCounts(all: Iterable<RequestCounts>): RequestCounts {
  const outcomes = { ...ZERO_REQUEST_COUNTS.outcomes };
  const durations: number[] = [];
  const upstreams = new Map<string, UpstreamCounts>();
  let inFlight = 0;
  let serverErrors = 0;
  for (const counts of all) {
    for (const outcome of REQUEST_OUTCOMES) outcomes[outcome] += counts.outcomes[outcome];
    addBuckets(durations, counts.durations);
    inFlight += counts.inFlight;
    serverErrors += counts.serverErrors;
    for (const [name, each] of counts.upstreams) upstreams.set(name, sumUpstreamCounts(upstreams.get(name), each));
  }
  return { outcomes, inFlight, serverErrors, durations, upstreams };
}

/** Adds bucket by bucket. */
export function addBuckets(sums: number[], counts: ArrayLike<number>): void {
  for (let i = 0; i < counts.length; i += 1) sums[i] = (sums[i] ?? 0) + (counts[i] ?? 0);
}

/**
 * A quantile of the durations between two readings, interpolated within its bucket. Returns the upper bound of the last bucket
 * for longer durations, and undefined if there are none.
 * @param q in (0, 1]
 */
export function histogramQuantile(q: number, before: readonly number[], after: readonly number[]): Millis | undefined {
  const counts = after.map((count, i) => Math.max(0, count - (before[i] ?? 0)));
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const { bounds } = REQUEST_BUCKETS;
  let left = q * total;
  for (const [i, count] of counts.entries()) {
    const upper = bounds[i];
    if (upper === undefined) break;
    const lower = bounds[i - 1] ?? 0;
    if (count >= left) return lower + (upper - lower) * (left / count);
    left -= count;
  }
  return bounds.at(-1);
}

/** All outcomes of a request, in the order of the counters. */
export const REQUEST_OUTCOMES = [
  'forwarded',
  'recovered',
  'replayed',
  'coalesced',
  'checked',
  'accepted',
  'preflight',
  'refused',
  'queue_timeout',
  'upstream_error',
  'unknown',
  'client_gone',
] as const satisfies readonly RequestOutcome[];

function sumUpstreamCounts(a: UpstreamCounts | undefined, b: UpstreamCounts): UpstreamCounts {
  if (a === undefined) return b;
  const durations = [...a.durations];
  addBuckets(durations, b.durations);
  return {
    sent: a.sent + b.sent,
    accepted: a.accepted + b.accepted,
    throttled: a.throttled + b.throttled,
    failed: a.failed + b.failed,
    retries: a.retries + b.retries,
    refused: a.refused + b.refused,
    reported: a.reported + b.reported,
    durations,
  };
}
