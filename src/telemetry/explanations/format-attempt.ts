/** Texts about attempts: their outcome, the hints of the upstream, and retries. */
import { hintedDelay } from '../../core/retry/hinted-delay.ts';
import type { Hints } from '../../core/hints/hints.ts';
import type { Millis } from '../../core/scalars.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { RetryOutcome, RetryPolicy } from '../../core/retry/retry-policy.ts';
import { isThrottled } from '../../core/exchange/attempt-outcome.ts';
import type { TraceStep } from '../../core/exchange/exchange-observer.ts';
import { secondsOrNull } from './format-decision.ts';
import { humanizeDuration, toSeconds } from '../format-values.ts';

type AnsweredStep = Extract<TraceStep, { readonly what: 'answered' }>;
type RetryStep = Extract<TraceStep, { readonly what: 'retry' }>;

export function formatAttemptResult({
  attempt,
  outcome,
  cause,
  limit,
}: Pick<AnsweredStep, 'attempt' | 'outcome' | 'cause' | 'limit'>): string {
  const after = `after ${humanizeDuration(outcome.took)}`;
  if (outcome.kind === 'error') {
    const why = cause === undefined ? '' : `, ${cause}`;
    return `attempt ${attempt} failed ${after}: ${outcome.reason}${why}; ${formatSendState(outcome, cause)}${formatOtherEndpoints(outcome)}`;
  }
  const hints = formatHints(outcome.status, outcome.hints);
  return `attempt ${attempt} received ${outcome.status} ${after}${hints === '' ? '' : `; ${hints}`}${formatAttributedLimit(limit)}${formatOtherEndpoints(outcome)}`;
}

/** For programs. */
export function attemptFields({
  attempt,
  outcome,
  endpoint,
  cause,
  limit,
}: Omit<AnsweredStep, 'what' | 'at'>): Record<string, unknown> {
  const fields = { attempt, endpoint: endpoint ?? null, tookSeconds: toSeconds(outcome.took) };
  if (outcome.kind === 'error') return { ...fields, error: outcome.reason, cause: cause ?? null, sent: outcome.sent };
  const { retryAfterMs, quota, retryAdvice, reason, lock } = outcome.hints;
  return {
    ...fields,
    status: outcome.status,
    ...(limit === undefined ? {} : { heldAgainst: limit === '' ? null : limit }),
    hints: {
      retryAfterSeconds: secondsOrNull(retryAfterMs),
      quotaRemaining: quota?.remaining ?? null,
      quotaLimit: quota?.limit ?? null,
      quotaResetSeconds: secondsOrNull(quota?.resetIn),
      verdict: retryAdvice ?? null,
      reason: reason ?? null,
      lock,
      throttled: isThrottled(outcome.status, outcome.hints),
    },
  };
}

/** The text and the numbers of a delay. */
export interface FormattedDelay {
  readonly text: string;
  readonly numbers: Readonly<Record<string, unknown>>;
}

/**
 * @param answer the outcome of the previous attempt
 * @param memory of the backoff before this retry
 */
export function formatRetry(
  { retry, attempt, ordinal }: RetryStep,
  policy: RetryPolicy,
  answer: AttemptOutcome | undefined,
  memory: number,
): FormattedDelay {
  const { reason, delay, source } = retry;
  const numbers = { attempt: attempt + 1, reason, source, delaySeconds: toSeconds(delay), charged: retry.usesBudget };
  const begin = `retry in ${humanizeDuration(delay)} (${reason})`;
  if (source === 'hint') {
    const asked = answer?.kind === 'response' ? hintedDelay(answer.hints) : undefined;
    const added =
      asked === undefined
        ? ''
        : `: the upstream asked for ${humanizeDuration(asked)}, jitter added ${humanizeDuration(delay - asked)}`;
    return { text: `${begin}${added}`, numbers: { ...numbers, askedSeconds: secondsOrNull(asked) } };
  }
  if (answer?.kind === 'response' && answer.isTakenOver === true && delay === 0) {
    return { text: `retry at once (${reason}), at another endpoint: this one asked for a wait`, numbers };
  }
  if (retry.isOtherAccount === true) {
    const when = delay === 0 ? 'at once' : `in ${humanizeDuration(delay)}`;
    return { text: `retry ${when} (${reason}) with another account, to which the rejection does not apply`, numbers };
  }
  if (answer?.kind === 'error' && !retry.usesBudget) {
    const where =
      answer.isStaleConnection === true ? 'on a new connection' : 'at another endpoint: this one did not process it';
    return { text: `retry at once (${reason}), ${where}`, numbers };
  }
  const { strategy, min, max } = computeBackOffRange(policy, retry.reason, ordinal, memory);
  const drawn = min === max ? '' : `, drawn from ${humanizeDuration(min)} to ${humanizeDuration(max)}`;
  return {
    text: `${begin}: backoff ${strategy}${drawn}`,
    numbers: { ...numbers, strategy, leastSeconds: toSeconds(min), mostSeconds: toSeconds(max) },
  };
}

/** Why a request was not retried. */
export const RETRY_END_TEXTS: Readonly<Record<Exclude<RetryOutcome, 'success'>, string>> = {
  attempts_exhausted: 'the maximum number of attempts was made',
  budget_exhausted: 'the retry budget of the upstream is spent',
  deadline: 'its token would not have come before the deadline',
  key_expired: 'the upstream would have forgotten its idempotency key by then',
  not_idempotent: 'a write that may not be safe to repeat is not retried',
  body_too_large: 'its body was too large to keep for a retry',
  retry_after_too_long: 'the Retry-After of the upstream exceeds maxRetryAfter',
  upstream_veto: 'the upstream asked not to retry',
  client_gone: 'the client had disconnected',
};

export function formatRetryDenied({
  why,
  attemptTime,
  clientTimeout,
}: Extract<TraceStep, { readonly what: 'denied' }>): string {
  if (why === 'success') return '';
  if (why === 'deadline' && clientTimeout !== undefined) {
    return `${RETRY_END_TEXTS.deadline}: this client disconnects after ${humanizeDuration(clientTimeout)}`;
  }
  if (why !== 'deadline' || attemptTime === 0) return RETRY_END_TEXTS[why];
  return `${RETRY_END_TEXTS.deadline}: a write is not sent less than ${humanizeDuration(attemptTime)} before its deadline`;
}

interface BackOffRange {
  readonly strategy: string;
  readonly min: Millis;
  readonly max: Millis;
}

/** The range a delay was drawn from. A backoff is pure: it is evaluated again with the lowest and the highest random number. */
function computeBackOffRange(
  policy: RetryPolicy,
  reason: RetryStep['retry']['reason'],
  ordinal: number,
  memory: number,
): BackOffRange {
  const backOff = policy.backOffFor[reason] ?? policy.backOff;
  const delay = (chance: number): Millis => backOff.next(ordinal - 1, memory, () => chance)?.delay ?? 0;
  return { strategy: backOff.name, min: delay(0), max: delay(1 - Number.EPSILON / 2) };
}

function formatHints(status: number, hints: Hints): string {
  const { retryAfterMs, quota, retryAdvice, reason, lock, throttled, isFromCache } = hints;
  const parts: string[] = [];
  if (throttled === true && status !== 429) parts.push('which counts as throttled here');
  if (throttled === false && status === 429) parts.push('which does not count as throttled here');
  if (isFromCache === true && status >= 400) parts.push('it comes from a cache and does not affect the rate');
  if (retryAfterMs !== undefined) parts.push(`Retry-After: ${humanizeDuration(retryAfterMs)}`);
  if (quota !== undefined) {
    const of = quota.limit === undefined ? '' : ` of ${quota.limit}`;
    const reset = quota.resetIn === undefined ? '' : `, resets in ${humanizeDuration(quota.resetIn)}`;
    parts.push(`quota: ${quota.remaining}${of} left${reset}`);
  }
  if (reason !== undefined) parts.push(`reason: ${reason}`);
  if (lock) parts.push('a conflict on one object, not a rate limit');
  if (retryAdvice === 'never') parts.push('it asked not to retry');
  if (retryAdvice === 'retry') parts.push('it asked for a retry');
  return parts.join('; ');
}

function formatAttributedLimit(limit: string | undefined): string {
  if (limit === undefined) return '';
  return limit === ''
    ? '; attributed to no limit: the limit that the response or a rule of throttle names does not apply to this request'
    : `; attributed to the limit ${limit}`;
}

/** States only what is known: a connection that closes without a response does not show whether the request was read. */
function formatSendState(outcome: Extract<AttemptOutcome, { kind: 'error' }>, cause: string | undefined): string {
  if (outcome.isStaleConnection === true) {
    return 'the reused connection closed before any part of a response; it may have reached the upstream';
  }
  if (outcome.sent) return 'it may have reached the upstream';
  return cause !== undefined && UNPROCESSED_CAUSES.has(cause) ? 'the upstream did not process it' : 'nothing was sent';
}

/** The request was sent, and the upstream said that it left it unprocessed (RFC 9113 §6.8, §7). */
const UNPROCESSED_CAUSES: ReadonlySet<string> = new Set(['REFUSED_STREAM', 'GOAWAY']);

function formatOtherEndpoints(outcome: AttemptOutcome): string {
  if (outcome.kind === 'response' && outcome.isTakenOver === true) {
    return '; the endpoint is ejected until then, and another takes over: the limit of the upstream is not affected';
  }
  return outcome.otherEndpointsWork === true ? '; other endpoints respond' : '';
}
