import type {
  Hints,
  Millis,
  Outcome,
  Random,
  RequestFacts,
  RetryEnd,
  RetryPolicy,
  RetryReason,
} from '../exchange/attempt-outcome.ts';
import { isGatewayError, isIdempotentMethod, isSafe, isThrottled } from '../exchange/attempt-outcome.ts';
import { NOT_PROCESSED } from '../idempotency/write-outcome.ts';

/** A retry worth making, if the gate and the deadline allow it. */
export interface Retry {
  readonly reason: RetryReason;
  readonly delay: Millis;
  readonly source: 'backoff' | 'hint';
  /** Whether it is paid from the retry budget. Retries of 429 are not: pacing bounds them. Nor is one that adds no load. */
  readonly charged: boolean;
  /** To be handed back at the next retry. */
  readonly memory: number;
}

export type RetryChoice =
  /** Nothing here calls for a retry. */
  | { readonly kind: 'settled' }
  | { readonly kind: 'retry'; readonly retry: Retry }
  /** A retry was called for, and is not allowed. */
  | { readonly kind: 'stop'; readonly why: RetryEnd };

export interface RetrySoFar {
  /** Sends made, ≥ 1. */
  readonly attempts: number;
  /** Whether the body can be sent again, byte for byte. */
  readonly replayable: boolean;
  /** An earlier attempt of this write may have taken effect, or may still be at work. */
  readonly mayBeDone: boolean;
  readonly memory: number;
  /** The upstream has answered this write in an exchange before. */
  readonly wasAnswered?: boolean;
  /** Since its key was first sent; absent while it has not been, and where nobody counts. */
  readonly keyAge?: Millis | undefined;
  /** The next attempt goes to the same endpoint, whatever comes of the others. */
  readonly isPinned?: boolean;
}

const SETTLED: RetryChoice = { kind: 'settled' };

/**
 * Whether this outcome may be retried for this request, and after how long. All conditions stand here, in the order in
 * which they are told: what calls for it, the upstream's veto, safety, the body, the number of attempts, the hint, the
 * lifetime of its key.
 */
export function chooseRetry(
  request: RequestFacts,
  policy: RetryPolicy,
  outcome: Outcome,
  soFar: RetrySoFar,
  random: Random,
): RetryChoice {
  const reason = callForRetry(request, policy, outcome, soFar);
  if (reason === undefined) return SETTLED;
  const hints = outcome.kind === 'response' ? outcome.hints : undefined;
  if (hints?.verdict === 'never') return stop('upstream_veto');
  if (!isSafeToRepeat(request, policy, outcome)) return stop('not_idempotent');
  if (!soFar.replayable && isBodySpent(outcome)) return stop('body_too_large');
  // Another proxy in front retries already: ours would multiply its attempts.
  const allowed = request.priorAttempts > 0 ? 1 : policy.attempts;
  if (soFar.attempts >= allowed) return stop('attempts_exhausted');

  if (isMissed(outcome, soFar)) {
    return { kind: 'retry', retry: { reason, delay: 0, source: 'backoff', charged: false, memory: soFar.memory } };
  }
  const step = (policy.backOffFor[reason] ?? policy.backOff).next(soFar.attempts - 1, soFar.memory, random);
  if (step === undefined) return stop('attempts_exhausted');
  const hinted = hints === undefined ? undefined : hintedDelay(hints);
  if (hinted !== undefined && hinted > policy.maxRetryAfter) return stop('retry_after_too_long');
  const delay = hinted === undefined ? step.delay : hinted + random() * Math.min(hinted / 10, 1000);
  if (
    restsOnKey(request, policy) &&
    soFar.keyAge !== undefined &&
    soFar.keyAge + delay > (request.keyTtl ?? Infinity)
  ) {
    return stop('key_expired');
  }
  return {
    kind: 'retry',
    retry: {
      reason,
      delay,
      source: hinted === undefined ? 'backoff' : 'hint',
      charged: reason !== 'status_429',
      memory: step.memory,
    },
  };
}

function callForRetry(
  request: RequestFacts,
  policy: RetryPolicy,
  outcome: Outcome,
  soFar: RetrySoFar,
): RetryReason | undefined {
  const { retryOn } = policy;
  if (outcome.kind === 'error') {
    switch (outcome.reason) {
      case 'connect':
        return retryOn.connectFailure ? 'connect' : undefined;
      case 'reset':
        return retryOn.reset ? 'reset' : undefined;
      case 'timeout':
        return retryOn.timeout ? 'timeout' : undefined;
      case 'aborted':
      case 'too_many_files': // more of it would not help
        return undefined;
    }
  }
  const { status, hints, isReplayed } = outcome;
  if (isReplayed === true) return undefined; // it would be the same each time
  const throttled = isThrottled(status, hints);
  if (!throttled && (status < 400 || hints.throttled === false)) return undefined;
  const isListed = retryOn.statuses.has(throttled ? 429 : status) || hints.verdict === 'retry';
  // The upstream says no more of a write that it has answered already.
  if (soFar.wasAnswered === true && isLock(request, outcome)) return undefined;
  // A key that is in progress after an attempt without an answer is that attempt at work: its answer is what is wanted.
  if (isLock(request, outcome)) return isListed || retryOn.lock || soFar.mayBeDone ? 'lock' : undefined;
  if (!isListed) return undefined;
  if (throttled) return 'status_429';
  return policy.replaysErrors === true && hints.verdict !== 'retry' && isStored(request, policy, status)
    ? undefined
    : 'status_5xx';
}

/** Another request holds the object, or the same key is in progress: worth asking again, and no sign of a limit. */
function isLock(request: RequestFacts, outcome: Outcome & { kind: 'response' }): boolean {
  return outcome.hints.lock || (outcome.status === 409 && request.keyed);
}

/** The safety table: what may be sent twice. A refused connection sent nothing, so it is safe for every request. */
function isSafeToRepeat(request: RequestFacts, policy: RetryPolicy, outcome: Outcome): boolean {
  if (!wasSent(outcome)) return true;
  if (request.nature === 'never') return false;
  if (request.nature === 'safe' || isIdempotentMethod(request.method)) return true;
  const isAnew =
    policy.replaysErrors === false && outcome.kind === 'response' && isStored(request, policy, outcome.status);
  if (request.keyed && !isAnew) return true;
  switch (policy.unkeyedWrites) {
    case 'never':
      return false;
    case 'on429':
      return outcome.kind === 'response' && isThrottled(outcome.status, outcome.hints);
    case 'always':
      return true;
  }
}

/** A failure that an upstream stores with a key where it stores failures: its own, not of who stands in front of it. */
function isStored(request: RequestFacts, { notProcessed = NOT_PROCESSED }: RetryPolicy, status: number): boolean {
  return request.keyed && !isSafe(request) && status >= 500 && !notProcessed.has(status) && !isGatewayError(status);
}

/** Only its key makes this write safe to repeat: it is, for as long as the upstream remembers the key. */
export function restsOnKey(request: RequestFacts, { unkeyedWrites }: RetryPolicy): boolean {
  return isNamedByKey(request) && unkeyedWrites !== 'always';
}

/** Only its key says to an upstream that it is a repeat. */
export function isNamedByKey({ keyed, method, nature }: RequestFacts): boolean {
  return keyed && nature !== 'safe' && !isIdempotentMethod(method);
}

/**
 * It reached nobody who would have worked on it: the next endpoint may be better, and so may a new connection. Waiting
 * would help nobody, and the retry is no load that the upstream has borne before. Another endpoint is tried at most as
 * often as attempts go; what was stale is followed by a new connection, which cannot be.
 */
function isMissed(outcome: Outcome, { isPinned }: RetrySoFar): boolean {
  if (outcome.kind !== 'error') return false;
  return outcome.stale === true || (!outcome.sent && outcome.othersWork === true && isPinned !== true);
}

function wasSent(outcome: Outcome): boolean {
  return outcome.kind === 'response' || outcome.sent;
}

function isBodySpent(outcome: Outcome): boolean {
  return wasSent(outcome) || (outcome.kind === 'error' && outcome.bodySpent === true);
}

/** What the upstream asks for, undefined when it asks for nothing. An empty quota asks to wait for its reset. */
export function hintedDelay(hints: Hints): Millis | undefined {
  if (hints.retryAfter !== undefined && hints.retryAfter > 0) return hints.retryAfter;
  if (hints.quota?.remaining === 0 && hints.quota.resetIn !== undefined && hints.quota.resetIn > 0) {
    return hints.quota.resetIn;
  }
  return undefined;
}

function stop(why: RetryEnd): RetryChoice {
  return { kind: 'stop', why };
}
