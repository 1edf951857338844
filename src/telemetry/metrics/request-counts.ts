import type { RequestOutcome } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { REQUEST_BUCKETS } from './duration-histogram.ts';

/** What has been counted since the start: of it, two readings make rates. It crosses between processes as it is. */
export interface Counts {
  readonly outcomes: Readonly<Record<RequestOutcome, number>>;
  /** Requests that have arrived and not ended. */
  readonly inFlight: number;
  /** How many took how long, by bucket, not cumulative. */
  readonly durations: readonly number[];
  readonly upstreams: ReadonlyMap<string, UpstreamCounts>;
}

export interface UpstreamCounts {
  readonly sent: number;
  /** Answered, and neither throttled nor with an error of a gateway. */
  readonly accepted: number;
  readonly throttled: number;
  readonly retries: number;
  /** Of attempts, as of requests. */
  readonly durations: readonly number[];
}

export const NO_COUNTS: Counts = {
  outcomes: {
    forwarded: 0,
    recovered: 0,
    checked: 0,
    preflight: 0,
    refused: 0,
    queue_timeout: 0,
    upstream_error: 0,
    unknown: 0,
    client_gone: 0,
  },
  inFlight: 0,
  durations: [],
  upstreams: new Map(),
};

export const NOTHING_SENT: UpstreamCounts = { sent: 0, accepted: 0, throttled: 0, retries: 0, durations: [] };

/** Of several processes, as if one had counted. */
export function addCounts(all: Iterable<Counts>): Counts {
  const outcomes = { ...NO_COUNTS.outcomes };
  const durations: number[] = [];
  const upstreams = new Map<string, UpstreamCounts>();
  let inFlight = 0;
  for (const counts of all) {
    for (const outcome of REQUEST_OUTCOMES) outcomes[outcome] += counts.outcomes[outcome];
    addTo(durations, counts.durations);
    inFlight += counts.inFlight;
    for (const [name, each] of counts.upstreams) upstreams.set(name, combine(upstreams.get(name), each));
  }
  return { outcomes, inFlight, durations, upstreams };
}

/** Bucket by bucket. */
export function addTo(sums: number[], counts: ArrayLike<number>): void {
  for (let i = 0; i < counts.length; i += 1) sums[i] = (sums[i] ?? 0) + (counts[i] ?? 0);
}

/**
 * A quantile of what was counted between two readings, interpolated within its bucket; the upper bound of the last bucket
 * for what lies beyond it; undefined where nothing was.
 * @param q in (0, 1]
 */
export function quantile(q: number, before: readonly number[], after: readonly number[]): Millis | undefined {
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

/** How a request may end, in the order in which it is counted. */
export const REQUEST_OUTCOMES = [
  'forwarded',
  'recovered',
  'checked',
  'preflight',
  'refused',
  'queue_timeout',
  'upstream_error',
  'unknown',
  'client_gone',
] as const satisfies readonly RequestOutcome[];

function combine(a: UpstreamCounts | undefined, b: UpstreamCounts): UpstreamCounts {
  if (a === undefined) return b;
  const durations = [...a.durations];
  addTo(durations, b.durations);
  return {
    sent: a.sent + b.sent,
    accepted: a.accepted + b.accepted,
    throttled: a.throttled + b.throttled,
    retries: a.retries + b.retries,
    durations,
  };
}
