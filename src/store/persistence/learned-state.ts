import type { ClientHold } from '../../core/limits/client-holds.ts';
import type { LimitView } from '../../core/events/gate-views.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { isClassLimitRef } from '../../core/limits/limit-ref.ts';
import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import type { QuotaOwner } from '../../core/quota/requester.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';

/** What was learned, as far as it outlives the process. Times are those of its monotonic clock. */
export interface LearnedState {
  readonly limits: readonly LearnedLimit[];
  readonly holds: readonly ClientHold[];
}

export interface LearnedLimit {
  readonly ref: LimitRef;
  /** Undefined if no rate was learned, or it is too old: the limit is only blocked. */
  readonly rate: PerSecond | undefined;
  readonly ceiling: PerSecond | undefined;
  /** Of these rates: see `RateSettings`. */
  readonly unit?: string | undefined;
  readonly concurrencyLimit: number | undefined;
  readonly blockedUntil: Millis | undefined;
  /** The owner of the quota that blocks it, if one does. */
  readonly quotaOwner?: QuotaOwner | undefined;
  /** The block, of a part of the requests or of all. */
  readonly block?: BlockStatus | undefined;
}

/**
 * Collects limits with a learned rate or a block, `maxEntries` at most.
 * @param initialRateOf the configured initial rate: a limit still at this rate has learned nothing
 */
export function collectLearnedLimits(
  views: Iterable<LimitView>,
  initialRateOf: (upstream: string, nested: string) => PerSecond | undefined,
  maxEntries: number,
  now: Millis,
): LearnedLimit[] {
  const learned: LearnedLimit[] = [];
  for (const {
    upstream,
    nested,
    scope,
    key,
    state,
    rate,
    ceiling,
    unit,
    concurrencyLimit,
    latencyLimit,
    blockedUntil,
    quotaOwner,
    block,
  } of views) {
    if (learned.length === maxEntries) break;
    if (isClassLimitRef({ nested })) continue; // configured, never learned
    const isAsConfigured = rate === ceiling && rate === initialRateOf(upstream, nested);
    // The rate of a limit that was blocked while open is the one to resume at, not a learned one.
    const isBlockedWhileOpen = state === 'blocked' && !Number.isFinite(ceiling);
    const isLearned = state !== 'open' && Number.isFinite(rate) && rate > 0 && !isAsConfigured && !isBlockedWhileOpen;
    const isBlocked = blockedUntil !== undefined && blockedUntil > now;
    if (!isLearned && !isBlocked && block === undefined) continue;
    learned.push({
      ref: { upstream, nested, scope, key },
      rate: isLearned ? rate : undefined,
      ceiling: isLearned && Number.isFinite(ceiling) ? Math.max(rate, ceiling) : undefined,
      unit,
      // One that latency has shown is soon found again.
      concurrencyLimit: isLearned && concurrencyLimit !== latencyLimit?.size ? concurrencyLimit : undefined,
      blockedUntil: isBlocked ? blockedUntil : undefined,
      block,
      quotaOwner: isBlocked && quotaOwner?.until === blockedUntil ? quotaOwner : undefined,
    });
  }
  return learned;
}
