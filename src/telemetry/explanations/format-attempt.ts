/** What an attempt came to, what the upstream said about pacing, and why it was sent again. */
import { hintedDelay } from '../../core/retry/choose-retry.ts';
import type { Hints, Millis, Outcome, RetryEnd, RetryPolicy } from '../../core/exchange/attempt-outcome.ts';
import { isThrottled } from '../../core/exchange/attempt-outcome.ts';
import type { Step } from '../../core/exchange/exchange-observer.ts';
import { secondsOrNull } from './format-decision.ts';
import { tellDuration, toSeconds } from './format-values.ts';

type Answered = Extract<Step, { readonly what: 'answered' }>;
type Retried = Extract<Step, { readonly what: 'retry' }>;

export function tellAnswered({
  attempt,
  outcome,
  cause,
  limit,
}: Pick<Answered, 'attempt' | 'outcome' | 'cause' | 'limit'>): string {
  const after = `after ${tellDuration(outcome.took)}`;
  if (outcome.kind === 'error') {
    const why = cause === undefined ? '' : `, ${cause}`;
    return `attempt ${attempt} failed ${after}: ${outcome.reason}${why}; ${tellSent(outcome)}${tellAlone(outcome)}`;
  }
  const hints = tellHints(outcome.status, outcome.hints);
  return `attempt ${attempt} was answered with ${outcome.status} ${after}${hints === '' ? '' : `; ${hints}`}${tellHeldAgainst(limit)}${tellAlone(outcome)}`;
}

/** For programs. */
export function numbersOfAttempt({
  attempt,
  outcome,
  endpoint,
  cause,
  limit,
}: Omit<Answered, 'what' | 'at'>): Record<string, unknown> {
  const told = { attempt, endpoint: endpoint ?? null, tookSeconds: toSeconds(outcome.took) };
  if (outcome.kind === 'error') return { ...told, error: outcome.reason, cause: cause ?? null, sent: outcome.sent };
  const { retryAfter, quota, verdict, reason, lock } = outcome.hints;
  return {
    ...told,
    status: outcome.status,
    ...(limit === undefined ? {} : { heldAgainst: limit === '' ? null : limit }),
    hints: {
      retryAfterSeconds: secondsOrNull(retryAfter),
      quotaRemaining: quota?.remaining ?? null,
      quotaLimit: quota?.limit ?? null,
      quotaResetSeconds: secondsOrNull(quota?.resetIn),
      verdict: verdict ?? null,
      reason: reason ?? null,
      lock,
      throttled: isThrottled(outcome.status, outcome.hints),
    },
  };
}

/** How a delay came about: before chance had its part in it, and after. */
export interface Delay {
  readonly text: string;
  readonly numbers: Readonly<Record<string, unknown>>;
}

/**
 * @param answer what the attempt before it came to
 * @param memory that the back-off had then
 */
export function tellRetry(
  { retry, attempt, ordinal }: Retried,
  policy: RetryPolicy,
  answer: Outcome | undefined,
  memory: number,
): Delay {
  const { reason, delay, source } = retry;
  const numbers = { attempt: attempt + 1, reason, source, delaySeconds: toSeconds(delay), charged: retry.charged };
  const begin = `to be sent again in ${tellDuration(delay)} (${reason})`;
  if (source === 'hint') {
    const asked = answer?.kind === 'response' ? hintedDelay(answer.hints) : undefined;
    const added =
      asked === undefined
        ? ''
        : `: the upstream asked for ${tellDuration(asked)}, chance added ${tellDuration(delay - asked)}`;
    return { text: `${begin}${added}`, numbers: { ...numbers, askedSeconds: secondsOrNull(asked) } };
  }
  if (answer?.kind === 'error' && delay === 0) {
    return {
      text: `to be sent again at once (${reason}): the upstream had not seen it, or another endpoint may do better`,
      numbers,
    };
  }
  const { strategy, least, most } = drawnFrom(policy, retry.reason, ordinal, memory);
  const drawn = least === most ? '' : `, drawn from ${tellDuration(least)} to ${tellDuration(most)}`;
  return {
    text: `${begin}: the back-off ${strategy}${drawn}`,
    numbers: { ...numbers, strategy, leastSeconds: toSeconds(least), mostSeconds: toSeconds(most) },
  };
}

/** Why it was not sent again. */
export const RETRY_ENDS: Readonly<Record<Exclude<RetryEnd, 'success'>, string>> = {
  attempts_exhausted: 'as many attempts were made as may be',
  budget_exhausted: 'the retry budget of the upstream is spent',
  deadline: 'its turn would not have come in time',
  key_expired: 'the upstream would not remember its idempotency key by then',
  not_idempotent: 'a write that is not known to be safe to repeat is not sent twice',
  body_too_large: 'its body was too large to be kept for another attempt',
  retry_after_too_long: 'the upstream asks for a longer wait than is granted',
  upstream_veto: 'the upstream asked for no other attempt',
  client_gone: 'the client had gone',
};

export function tellDenied({ why, attemptTime }: Extract<Step, { readonly what: 'denied' }>): string {
  if (why === 'success') return '';
  if (why !== 'deadline' || attemptTime === 0) return RETRY_ENDS[why];
  return `${RETRY_ENDS.deadline}: a write is not sent less than ${tellDuration(attemptTime)} before its deadline`;
}

interface Drawn {
  readonly strategy: string;
  readonly least: Millis;
  readonly most: Millis;
}

/** A back-off is pure: asked again with the least and the most that chance can be, it says between what it drew. */
function drawnFrom(policy: RetryPolicy, reason: Retried['retry']['reason'], ordinal: number, memory: number): Drawn {
  const backOff = policy.backOffFor[reason] ?? policy.backOff;
  const delay = (chance: number): Millis => backOff.next(ordinal - 1, memory, () => chance)?.delay ?? 0;
  return { strategy: backOff.name, least: delay(0), most: delay(1 - Number.EPSILON / 2) };
}

function tellHints(status: number, hints: Hints): string {
  const { retryAfter, quota, verdict, reason, lock, throttled, isCached } = hints;
  const parts: string[] = [];
  if (throttled === true && status !== 429) parts.push('which is a refusal for its rate here');
  if (throttled === false && status === 429) parts.push('which says nothing of the rate here');
  if (isCached === true && status >= 400) parts.push('it comes from a cache and says nothing of the rate now');
  if (retryAfter !== undefined) parts.push(`Retry-After: ${tellDuration(retryAfter)}`);
  if (quota !== undefined) {
    const of = quota.limit === undefined ? '' : ` of ${quota.limit}`;
    const reset = quota.resetIn === undefined ? '' : `, whole again in ${tellDuration(quota.resetIn)}`;
    parts.push(`its quota: ${quota.remaining}${of} left${reset}`);
  }
  if (reason !== undefined) parts.push(`its reason: ${reason}`);
  if (lock) parts.push('it is about one object, not about the rate');
  if (verdict === 'never') parts.push('it asked for no other attempt');
  if (verdict === 'retry') parts.push('it asked for another attempt');
  return parts.join('; ');
}

function tellHeldAgainst(limit: string | undefined): string {
  if (limit === undefined) return '';
  return limit === ''
    ? '; held against no limit: by the configuration it does not stand under the one that is named'
    : `; held against the limit ${limit}`;
}

function tellSent(outcome: Extract<Outcome, { kind: 'error' }>): string {
  if (outcome.stale === true) return 'the upstream was closing an idle connection';
  return outcome.sent ? 'it may have reached the upstream' : 'nothing was sent';
}

function tellAlone({ othersWork }: Outcome): string {
  return othersWork === true ? '; other endpoints work' : '';
}
