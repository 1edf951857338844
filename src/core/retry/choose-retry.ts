import { hintedDelay, jitterAboveHint } from './hinted-delay.ts';
import type { RetryOutcome, RetryPolicy, RetryReason } from './retry-policy.ts';
import { isGatewayError, isThrottled, type AttemptOutcome } from '../exchange/attempt-outcome.ts';
import { isNamedByKey, isSafe, type RequestFacts } from '../exchange/request-facts.ts';
import { isIdempotentMethod } from '../http-semantics/methods.ts';
import { NOT_PROCESSED } from '../idempotency/write-outcome.ts';
import type { Millis, Random } from '../scalars.ts';

/** A retry worth making, if the gate and the deadline allow it. */
export interface PlannedRetry {
  readonly reason: RetryReason;
  readonly delay: Millis;
  readonly source: 'backoff' | 'hint';
  /** Whether the retry budget pays for it. It pays neither for retries of a 429, which pacing bounds, nor for those that add no load. */
  readonly usesBudget: boolean;
  /** It is sent with another account of the upstream. */
  readonly isOtherAccount?: boolean;
  /** The state of the backoff, for the next retry. */
  readonly memory: number;
}

export type RetryChoice =
  /** Nothing calls for a retry. */
  | { readonly kind: 'settled' }
  | { readonly kind: 'retry'; readonly retry: PlannedRetry }
  /** The outcome calls for a retry, but none is allowed. */
  | { readonly kind: 'stop'; readonly why: RetryOutcome };

/** Another account of the upstream may serve a request that was rejected with one. */
export interface OtherAccount {
  /** Until the retry may ask for admission; 0 if it may now. */
  readonly delay: Millis;
  /** The upstream rejected the credential of the account, with a status that says so. */
  readonly isCredentialRejected: boolean;
}

export interface RetryProgress {
  /** Attempts made, ≥ 1. */
  readonly attempts: number;
  /** Whether the body can be sent again, byte for byte. */
  readonly isBodyReplayable: boolean;
  /** An earlier attempt of this write may have taken effect, or may still be in progress. */
  readonly mayHaveTakenEffect: boolean;
  /** From the last retry; 0 before the first. */
  readonly memory: number;
  /** The upstream answered this write in an earlier exchange. */
  readonly wasAnswered?: boolean;
  /** Time since the key was first sent; absent if it was not, or if its age does not matter. */
  readonly keyAge?: Millis | undefined;
  /** The next attempt goes to the same endpoint, whatever the state of the others. */
  readonly isPinned?: boolean;
  /** Absent if no other account may serve the request. */
  readonly otherAccount?: OtherAccount | undefined;
}

const NO_RETRY: RetryChoice = { kind: 'settled' };

/**
 * Decides whether this outcome of this request is retried, and after what delay. All conditions are here, in the order in
 * which they are reported: a reason to retry, the upstream's veto, safety, the body, the number of attempts, the hint, the
 * lifetime of the key.
 */
export function chooseRetry(
  request: RequestFacts,
  policy: RetryPolicy,
  outcome: AttemptOutcome,
  progress: RetryProgress,
  random: Random,
): RetryChoice {
  const reason = findRetryReason(request, policy, outcome, progress);
  if (reason === undefined) return NO_RETRY;
  const hints = outcome.kind === 'response' ? outcome.hints : undefined;
  if (hints?.retryAdvice === 'never') return stopRetrying('upstream_veto');
  if (!isSafeToRepeat(request, policy, outcome)) return stopRetrying('not_idempotent');
  if (!progress.isBodyReplayable && isBodyConsumed(outcome)) return stopRetrying('body_too_large');
  // A proxy in front already retries: our retries would multiply its attempts.
  const maxAttempts = request.priorAttempts > 0 ? 1 : policy.attempts;
  if (progress.attempts >= maxAttempts) return stopRetrying('attempts_exhausted');

  if (wasNeverProcessed(outcome, progress)) {
    return {
      kind: 'retry',
      retry: { reason, delay: 0, source: 'backoff', usesBudget: false, memory: progress.memory },
    };
  }
  if (progress.otherAccount !== undefined) {
    // The rejection concerns one account: neither its hint nor a backoff applies to another one.
    const { delay } = progress.otherAccount;
    if (delay > policy.maxRetryAfter) return stopRetrying('retry_after_too_long');
    const { memory } = progress;
    const usesBudget = reason !== 'status_429';
    return { kind: 'retry', retry: { reason, delay, source: 'backoff', usesBudget, isOtherAccount: true, memory } };
  }
  const step = (policy.backOffFor[reason] ?? policy.backOff).next(progress.attempts - 1, progress.memory, random);
  if (step === undefined) return stopRetrying('attempts_exhausted');
  const isTakenOver = outcome.kind === 'response' && outcome.isTakenOver === true && progress.isPinned !== true;
  const hinted = hints === undefined || isTakenOver ? undefined : hintedDelay(hints);
  if (hinted !== undefined && hinted > policy.maxRetryAfter) return stopRetrying('retry_after_too_long');
  const delay = hinted === undefined ? (isTakenOver ? 0 : step.delay) : jitterAboveHint(hinted, random);
  if (
    isSafeOnlyByKey(request, policy) &&
    progress.keyAge !== undefined &&
    progress.keyAge + delay > (request.keyTtl ?? Infinity)
  ) {
    return stopRetrying('key_expired');
  }
  return {
    kind: 'retry',
    retry: {
      reason,
      delay,
      source: hinted === undefined ? 'backoff' : 'hint',
      usesBudget: reason !== 'status_429',
      memory: step.memory,
    },
  };
}

function findRetryReason(
  request: RequestFacts,
  policy: RetryPolicy,
  outcome: AttemptOutcome,
  progress: RetryProgress,
): RetryReason | undefined {
  const { retryOn } = policy;
  if (outcome.kind === 'error') {
    switch (outcome.reason) {
      case 'connect':
      case 'reset':
      case 'timeout':
        return retryOn[outcome.reason] ? outcome.reason : undefined;
      case 'aborted':
      case 'too_many_files': // another attempt would need another file
        return undefined;
    }
  }
  const { status, hints, isReplayed } = outcome;
  if (isReplayed === true) return undefined; // the stored response is the same each time
  if (progress.otherAccount?.isCredentialRejected === true) return 'account';
  const throttled = isThrottled(status, hints);
  if (!throttled && (status < 400 || hints.throttled === false)) return undefined;
  const isListed = retryOn.statuses.has(throttled ? 429 : status) || hints.retryAdvice === 'retry';
  if (isLockConflict(request, outcome)) {
    // The conflict is with this write itself, which the upstream has already answered: a wait would change nothing.
    if (progress.wasAnswered === true) return undefined;
    // A key in progress after an attempt without a response: that attempt is still running, and its result is needed.
    return isListed || retryOn.lock || progress.mayHaveTakenEffect ? 'lock' : undefined;
  }
  if (!isListed) return undefined;
  if (throttled) return 'status_429';
  return policy.replaysErrors === true && hints.retryAdvice !== 'retry' && isStoredError(request, policy, status)
    ? undefined
    : 'status_5xx';
}

/** Another request holds the object, or the same key is in progress: worth a retry, and not a sign of a limit. */
function isLockConflict(request: RequestFacts, outcome: AttemptOutcome & { kind: 'response' }): boolean {
  return outcome.hints.lock || (outcome.status === 409 && request.keyed);
}

/** The safety table: what may be sent twice. If nothing was sent, as on a refused connection, every request is safe. */
function isSafeToRepeat(request: RequestFacts, policy: RetryPolicy, outcome: AttemptOutcome): boolean {
  if (!wasSent(outcome)) return true;
  if (request.replaySafety === 'never') return false;
  if (request.replaySafety === 'safe' || isIdempotentMethod(request.method)) return true;
  const wouldExecuteAnew =
    policy.replaysErrors === false && outcome.kind === 'response' && isStoredError(request, policy, outcome.status);
  if (request.keyed && !wouldExecuteAnew) return true;
  switch (policy.unkeyedWrites) {
    case 'never':
      return false;
    case 'on429':
      return outcome.kind === 'response' && (isThrottled(outcome.status, outcome.hints) || outcome.status === 401);
    case 'always':
      return true;
  }
}

/**
 * True for an error of the upstream itself, which is stored with the key if the upstream stores errors; false for an error of
 * a gateway in front of it.
 */
function isStoredError(request: RequestFacts, { notProcessed = NOT_PROCESSED }: RetryPolicy, status: number): boolean {
  return request.keyed && !isSafe(request) && status >= 500 && !notProcessed.has(status) && !isGatewayError(status);
}

/** True if only its key makes this write safe to repeat, so it is safe only while the upstream remembers the key. */
export function isSafeOnlyByKey(request: RequestFacts, { unkeyedWrites }: RetryPolicy): boolean {
  return isNamedByKey(request) && unkeyedWrites !== 'always';
}

/**
 * True if no endpoint processed the request, and another endpoint or a new connection may. A wait would not help, and the
 * retry repeats no work of the upstream. The number of attempts bounds how many endpoints are tried. A stale connection is
 * followed by a new one, which cannot be stale.
 */
function wasNeverProcessed(outcome: AttemptOutcome, { isPinned }: RetryProgress): boolean {
  if (outcome.kind !== 'error') return false;
  return (
    outcome.isStaleConnection === true || (!outcome.sent && outcome.otherEndpointsWork === true && isPinned !== true)
  );
}

function wasSent(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'response' || outcome.sent;
}

function isBodyConsumed(outcome: AttemptOutcome): boolean {
  return wasSent(outcome) || (outcome.kind === 'error' && outcome.bodyConsumed === true);
}

function stopRetrying(why: RetryOutcome): RetryChoice {
  return { kind: 'stop', why };
}
