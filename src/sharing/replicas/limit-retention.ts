import type { LimitState } from '../../core/limits/limit-state.ts';
import type { LocalMeter } from '../../core/limits/local-meter.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';

/** How long a token may be used after its time. */
export const VALID_FOR: Millis = 100;

/** The longest time that a backend keeps a limit after the last call for it. */
export const MAX_RETENTION: Millis = 3_600_000;
/** Replicas that use a limit call more often: see `SILENCE_TIMEOUT` in replica-shared-limit.ts. */
const USED_RETENTION: Millis = 3000;
/** Added for each request that was sent: while the limit is as configured, and once something was learned about it. */
const UNLEARNED_RETENTION: Millis = 1000;
const LEARNED_RETENTION: Millis = 30_000;

/**
 * How long a backend keeps a limit of a client, credential or path after the last call for it. Requests decide how many such
 * limits there are. As each request adds the same time, the number of limits is bounded by the rate of requests, whatever names
 * they invent. The delay of the next request is added, so that to forget the limit does not shorten it.
 */
export function limitRetention(meter: LocalMeter, settings: RateSettings, now: Millis): Millis {
  const { phase, ceiling, sendCount } = meter;
  const hasLearned = !isAsConfigured(phase, ceiling, settings) || meter.hasBlock || meter.isQuotaInForce(now);
  const retention = hasLearned ? LEARNED_RETENTION * (1 + sendCount) : USED_RETENTION + UNLEARNED_RETENTION * sendCount;
  const delay = meter.delay(now);
  // Without a place in flight, the delay is unknown. The replicas of the requests in flight call in time.
  return Math.min(MAX_RETENTION, retention + (delay === Number.POSITIVE_INFINITY ? 0 : delay));
}

/**
 * How long a backend keeps the claim of the first token of a limit of a client, credential or path. The next token, of any
 * replica, is due within this time.
 */
export function claimRetention({ initialRate, maxRate }: Pick<RateSettings, 'initialRate' | 'maxRate'>): Millis {
  const rate = Math.min(initialRate ?? Number.POSITIVE_INFINITY, maxRate);
  return Math.min(MAX_RETENTION, Math.ceil(USED_RETENTION + 1000 / rate));
}

/** Whether the limit has not been found since it was made: its rate is the configured one. */
export function isAsConfigured(
  phase: LimitState,
  ceiling: PerSecond,
  { initialRate, maxRate }: Pick<RateSettings, 'initialRate' | 'maxRate'>,
): boolean {
  if (phase === 'open') return true;
  return phase === 'restoring' && ceiling === Math.min(initialRate ?? Number.POSITIVE_INFINITY, maxRate);
}
