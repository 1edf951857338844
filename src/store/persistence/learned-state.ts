import type { LimitView } from '../../core/events/proxy-events.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { isOfClass } from '../../core/limits/limit-ref.ts';
import type { Block } from '../../core/rate/breaker/active-block.ts';
import type { QuotaOwner } from '../../core/quota/requester.ts';
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { Hold } from '../../sharing/workers/worker-protocol.ts';

/** What was learned and is worth keeping when the process ends. Times are of its monotonic clock. */
export interface Learned {
  readonly limits: readonly LearnedLimit[];
  readonly holds: readonly Hold[];
}

export interface LearnedLimit {
  readonly ref: LimitRef;
  /** Undefined where no limit was felt, or what was felt is too old: it is only blocked. */
  readonly rate: PerSecond | undefined;
  readonly ceiling: PerSecond | undefined;
  readonly places: number | undefined;
  readonly blockedUntil: Millis | undefined;
  /** Whom the quota is about that blocks it, where one does. */
  readonly quotaOwner?: QuotaOwner | undefined;
  /** What was blocked, for a part of all requests or for all. */
  readonly block?: Block | undefined;
}

/**
 * Those that are felt or blocked, `most` at most: an open limit remembers nothing.
 * @param initialRateOf what a limit was said to be: one that has not moved from there was not felt
 */
export function learnedOf(
  views: Iterable<LimitView>,
  initialRateOf: (upstream: string, nested: string) => PerSecond | undefined,
  most: number,
  now: Millis,
): LearnedLimit[] {
  const learned: LearnedLimit[] = [];
  for (const { upstream, nested, scope, key, state, rate, ceiling, places, blockedUntil, quotaOwner, block } of views) {
    if (learned.length === most) break;
    if (isOfClass({ nested })) continue; // it is as it is written
    const isAsConfigured = rate === ceiling && rate === initialRateOf(upstream, nested);
    // Of an open limit that is blocked, its rate is what it would come back to: no limit was felt.
    const isOpenBlocked = state === 'blocked' && !Number.isFinite(ceiling);
    const isFelt = state !== 'open' && Number.isFinite(rate) && rate > 0 && !isAsConfigured && !isOpenBlocked;
    const isBlocked = blockedUntil !== undefined && blockedUntil > now;
    if (!isFelt && !isBlocked && block === undefined) continue;
    learned.push({
      ref: { upstream, nested, scope, key },
      rate: isFelt ? rate : undefined,
      ceiling: isFelt && Number.isFinite(ceiling) ? Math.max(rate, ceiling) : undefined,
      places: isFelt ? places : undefined,
      blockedUntil: isBlocked ? blockedUntil : undefined,
      block,
      quotaOwner: isBlocked && quotaOwner?.until === blockedUntil ? quotaOwner : undefined,
    });
  }
  return learned;
}
