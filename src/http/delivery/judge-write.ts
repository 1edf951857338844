import type { RequestRecord } from '../../core/events/request-record.ts';
import type { WriteOutcome } from '../../core/idempotency/write-outcome.ts';
import type { Millis } from '../../core/scalars.ts';
import { type AttemptJudgement, REFUSED_RETRY_AFTER } from './judge-attempt.ts';

/** What the exchange knows of the last attempt of a write. */
export interface WriteAttempt {
  /** Undefined if none was made, or the response was kept from an earlier one. */
  readonly meaning: WriteOutcome | undefined;
  /** The upstream is working on the same object. */
  readonly isLocked: boolean;
  /** The upstream has answered the write in another request with its key, or in an attempt whose end was not stored. */
  readonly wasAnswered: boolean;
}

/**
 * Judges the end of an attempt of a write that is sent later. The write is done once the upstream has decided about it, and another
 * attempt follows as long as it has not. A write that may have taken effect is marked as such until a response settles it, and is never
 * reported as failed. Neither is one that another request with its key has done, or may be doing.
 *
 * | end of the attempt | means |
 * | --- | --- |
 * | a response to the write (2xx, a 402, one that is marked as replayed) | done |
 * | a 3xx or another 4xx, if no attempt or request before may have taken effect | done |
 * | 408, 425, 429, a lock, 501, 503, 505, 529; no connection; a refusal of Tidegate | again |
 * | another 5xx, no response, a response that broke off | again, as it may have taken effect |
 * | the key has expired | the end: it may have taken effect |
 * | a refusal of Tidegate that would recur, such as 422 `key_reused` | the end; after 409 `key_ambiguous`, it may have taken effect |
 *
 * @param wasUnknown an attempt before may have taken effect
 * @param isWhole the response has arrived in full
 */
export function judgeWrite(
  record: Pick<
    RequestRecord,
    'outcome' | 'status' | 'reason' | 'attempts' | 'retryAfterSeconds' | 'detail' | 'isTruncated'
  >,
  { meaning, isLocked, wasAnswered }: WriteAttempt,
  { wasUnknown, isWhole }: { readonly wasUnknown: boolean; readonly isWhole: boolean },
): AttemptJudgement {
  const { outcome, status, attempts, retryAfterSeconds, detail } = record;
  const retryAfterMs = retryAfterSeconds === undefined ? undefined : 1000 * retryAfterSeconds;
  const isOwn = detail !== undefined;
  const ownReason = isOwn ? (record.reason ?? outcome) : `status_${status}`;
  // The process ends: the next one sends it.
  if (outcome === 'client_gone' || ownReason === 'draining') return NOT_SENT;
  // The request that was answered is another one if the key was reused.
  const isDoneByOthers = wasAnswered && ownReason !== 'key_reused' && ownReason !== 'key_expired';
  const reason = isDoneByOthers ? ANSWERED_BEFORE : ownReason;
  if (isOwn && reason === 'key_expired') return failed(reason, undefined, { isUnknown: true, isFinal: true });
  if (outcome === 'unknown') return failed(ownReason, retryAfterMs, { isUnknown: true });
  const doubt = {
    isUnknown: wasUnknown && !isDoneByOthers,
    isDoneByOthers: isDoneByOthers || (isOwn && (reason === 'key_in_use' || reason === 'key_ambiguous')),
  };
  if (isOwn) {
    const wouldRecur = outcome === 'refused' && attempts === 0 && status < 500 && retryAfterMs === undefined;
    return failed(reason, retryAfterMs, { ...doubt, isFinal: wouldRecur });
  }
  const isAnswered = meaning === 'answered' || outcome === 'replayed';
  if (meaning === 'may_have_taken_effect') return failed(ownReason, retryAfterMs, { isUnknown: true });
  if (isAnswered) return isWhole && !record.isTruncated ? DONE : failed('incomplete', undefined, { isUnknown: true });
  const isDecided = meaning === 'rejected' && !isLocked && !TRY_AGAIN.has(status) && isWhole;
  return isDecided && !wasUnknown && !isDoneByOthers ? DONE : failed(reason, retryAfterMs, doubt);
}

/** The reason of an attempt of a write that may have taken effect begins with it. */
const UNKNOWN = 'unknown_';

/** The reason of an attempt that failed while the upstream's answer to the write is known, and its client has got it. */
const ANSWERED_BEFORE = 'answered_before';

/** What a store records in place of an attempt, and of the reason before it; and what is known only as long as the record of the key. */
const IN_DOUBT: ReadonlySet<string> = new Set(['unreadable', 'expired', ANSWERED_BEFORE]);

/** @param reason of the last attempt */
export function mayHaveTakenEffect(reason: string | undefined): boolean {
  return reason !== undefined && (reason.startsWith(UNKNOWN) || IN_DOUBT.has(reason));
}

const DONE = { kind: 'acknowledged' } as const;
const NOT_SENT = { kind: 'not_sent', retryAfterMs: REFUSED_RETRY_AFTER } as const;

/** Request timeout, too early: the same request may succeed (RFC 9110 §15.5.9, RFC 8470 §5.2). */
const TRY_AGAIN: ReadonlySet<number> = new Set([408, 425]);

interface Doubt {
  /** An attempt may have taken effect: this one, or one before. */
  readonly isUnknown: boolean;
  /** Another request may have done the write. Not marked: the next attempt looks up the key again. */
  readonly isDoneByOthers?: boolean;
  readonly isFinal?: boolean;
}

function failed(
  reason: string,
  retryAfterMs: Millis | undefined,
  { isUnknown, isDoneByOthers = false, isFinal = false }: Doubt,
): AttemptJudgement {
  const marked = isUnknown ? `${UNKNOWN}${reason}` : reason;
  return { kind: 'failed', reason: marked, retryAfterMs, isUnknown: isUnknown || isDoneByOthers, isFinal };
}
