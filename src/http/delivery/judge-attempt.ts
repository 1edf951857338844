import { acknowledgementBytes, isAcknowledged, type Acknowledgement } from '../../core/delivery/acknowledgement.ts';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { Millis } from '../../core/scalars.ts';

/** What the end of an attempt means for its delivery. */
export type AttemptJudgement =
  | { readonly kind: 'acknowledged' }
  /** Tidegate itself refused it, or ends: nothing was sent, so the schedule does not count it. */
  | { readonly kind: 'not_sent'; readonly retryAfterMs: Millis }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      readonly retryAfterMs: Millis | undefined;
      /** A write may have taken effect. */
      readonly isUnknown?: boolean;
      /** No attempt follows, whatever the schedule. */
      readonly isFinal?: boolean;
    };

/** Before a request that was refused without a time is tried again. */
export const REFUSED_RETRY_AFTER: Millis = 1000;

/**
 * A delivery that Tidegate refused is tried again after this time at the latest: the reset of a quota may be a month away, and a reload
 * may raise its limit before.
 */
const MAX_POSTPONEMENT: Millis = 3_600_000;

/** @param body of the response; undefined if there is none, or it is incomplete or too long for a rule */
export function judgeAttempt(
  record: Pick<RequestRecord, 'outcome' | 'status' | 'reason' | 'attempts' | 'retryAfterSeconds' | 'detail'>,
  body: Buffer | undefined,
  acknowledgement: Acknowledgement,
): AttemptJudgement {
  const { outcome, status, reason, attempts, retryAfterSeconds, detail } = record;
  const retryAfterMs = retryAfterSeconds === undefined ? undefined : 1000 * retryAfterSeconds;
  if (outcome === 'client_gone') return { kind: 'not_sent', retryAfterMs: REFUSED_RETRY_AFTER }; // the process ends
  const isOwnResponse = detail !== undefined;
  if (isOwnResponse) {
    // Without a Retry-After the request itself is at fault: it cannot be forwarded, however often it is tried.
    const isRefused = (outcome === 'refused' || outcome === 'queue_timeout') && attempts === 0;
    if (isRefused && retryAfterMs !== undefined) {
      return { kind: 'not_sent', retryAfterMs: Math.min(retryAfterMs, MAX_POSTPONEMENT) };
    }
    return { kind: 'failed', reason: reason ?? outcome, retryAfterMs };
  }
  if (isWhole(acknowledgement, status, body) && isAcknowledged(acknowledgement, status, body ?? EMPTY)) {
    return { kind: 'acknowledged' };
  }
  return { kind: 'failed', reason: status < 300 ? 'not_acknowledged' : `status_${status}`, retryAfterMs };
}

const EMPTY = Buffer.alloc(0);

/** The part of the response that counts has arrived. */
function isWhole(acknowledgement: Acknowledgement, status: number, body: Buffer | undefined): boolean {
  return body !== undefined || acknowledgementBytes(acknowledgement, status) === 0;
}
