/**
 * Reads what a response says about pacing into one normal form. Hints take precedence over learning, so they are read with
 * suspicion: a value that is negative or cannot be parsed is ignored, one that is too large is clamped, and of two values
 * the stricter counts.
 */
import { collectHintFields, COUNTER_FAMILIES, type HintFields } from './hint-fields.ts';
import { maxDefined } from './hint-numbers.ts';
import { boundRetryAfter, NO_HINTS, statedRetryAfter, type Hints, type Quota } from './hints.ts';
import { isObjectLockReason } from './object-lock.ts';
import { clampSpentReset, parseRateLimitField, stricterQuota, toQuota } from './quota-fields.ts';
import type { Millis } from '../scalars.ts';

/**
 * Reads the hints of a response head. Retry-After counts on the statuses of `honorsRetryAfter`, a quota on all.
 * `retryAfterMs` is within [0, MAX_HINTED_DELAY], and so is `resetIn` of an exhausted quota. With requests left, `resetIn`
 * is the reported time, as is `window`: both at most 31 days. `remaining` is a whole number, `limit` a whole number ≥ 1.
 * Never throws, whatever the bytes.
 * @param headers names and values in turn, as received: any case, duplicates possible
 * @param wallClock epoch ms by our clock; used only if the response has no usable Date of its own
 * @returns NO_HINTS itself if the response carries no usable hint
 */
export function readHints(status: number, headers: readonly string[], wallClock: Millis): Hints {
  const fields = collectHintFields(status, headers, wallClock);
  return fields === undefined ? NO_HINTS : toHints(fields);
}

/**
 * How long a 429 or 503 asks its client to wait, by whichever of its fields says so: the longest, at most 31 days, 0 if none does.
 * Hints are bounded to five minutes, after which the upstream is tried again; but a client never gets a shorter wait than
 * the upstream asks for. A lock is not an exhausted quota: it has nothing to do with the window.
 * @param headers names and values in turn, as received
 * @param hints from `readHints`, or as the configuration's rules amend them
 * @param hasRetryAfter the client sees a Retry-After: then a reset counts only with a count that is spent
 */
export function readImpliedWait(
  headers: readonly string[],
  hints: Hints,
  wallClock: Millis,
  hasRetryAfter: boolean,
): Millis {
  const stated = Math.max(statedRetryAfter(hints) ?? 0, spentResetIn(hints.quota));
  const fields = collectHintFields(429, headers, wallClock);
  if (fields === undefined) return stated;
  const quota = tightestQuota(fields, !hints.lock && !hasRetryAfter);
  return Math.max(stated, fields.retryAfter ?? 0, spentResetIn(quota));
}

function toHints(fields: HintFields): Hints {
  const { retryAdvice } = fields;
  const isCached = fields.age() > 0;
  const reason = fields.reason ?? (fields.isEnvoyRateLimited ? 'envoy' : undefined);
  const lock = fields.reason !== undefined && isObjectLockReason(fields.reason);
  const quota = tightestQuota(fields, fields.status === 429 && fields.retryAfter === undefined && !lock);
  const retryAfter = earliestRetry(fields, quota);
  const hasHints = retryAfter !== undefined || retryAdvice !== undefined || reason !== undefined || quota !== undefined;
  if (!hasHints && !isCached) return NO_HINTS;
  return boundRetryAfter({
    retryAfterMs: retryAfter,
    quota: quota === undefined ? undefined : clampSpentReset(quota),
    retryAdvice,
    reason,
    lock,
    ...(isCached ? { isFromCache: isCached } : {}),
  });
}

/**
 * A Retry-After may end before the exhausted quota beside it resets; nothing passes until both are over. Without a
 * Retry-After, the exhausted quota stops requests by itself.
 */
function earliestRetry({ retryAfter }: HintFields, quota: Quota | undefined): Millis | undefined {
  if (retryAfter === undefined || quota?.remaining !== 0) return retryAfter;
  return maxDefined(retryAfter, quota.resetIn);
}

/** The tightest of all reported quotas. A cached response reports the quota of when it was made, which says nothing now. */
function tightestQuota(fields: HintFields, isSpent: boolean): Quota | undefined {
  if (fields.age() > 0) return undefined;
  let quota = fields.rateLimit === '' ? undefined : parseRateLimitField(fields.rateLimit, fields.policies);
  for (const family of COUNTER_FAMILIES) quota = stricterQuota(quota, toQuota(fields[family], isSpent));
  quota = stricterQuota(quota, fields.bucket);
  if (!isSpent) return quota;
  for (const counters of Object.values(fields.tokens)) {
    if (counters.remaining === 0) quota = stricterQuota(quota, toQuota(counters, isSpent));
  }
  return quota;
}

function spentResetIn(quota: Quota | undefined): Millis {
  return quota?.remaining === 0 ? (quota.resetIn ?? 0) : 0;
}
