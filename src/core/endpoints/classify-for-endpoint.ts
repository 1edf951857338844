import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import type { Millis } from '../scalars.ts';
import { isGatewayError, isLocalFailure, isThrottled } from '../exchange/attempt-outcome.ts';

/**
 * Classifies an outcome for its endpoint. Throttling and a 500 show that the endpoint works. A client that left, a failure of
 * this process, or a 502 to 504 from a cache is no evidence. Any other response from a cache shows that the endpoint responds.
 */
export function classifyForEndpoint(outcome: AttemptOutcome): 'works' | 'fails' | 'nothing' {
  if (outcome.kind === 'response') {
    const { status, hints } = outcome;
    if (!isGatewayError(status) || isThrottled(status, hints)) return 'works';
    return hints.isFromCache === true ? 'nothing' : 'fails';
  }
  return isLocalFailure(outcome) || outcome.isStaleConnection === true ? 'nothing' : 'fails';
}

/**
 * Returns the wait that the endpoint asks for: by a rejection or a 503 with Retry-After. Undefined for other responses, for one
 * that comes from a cache or is a stored one, and for errors.
 */
export function requestedWait(outcome: AttemptOutcome): Millis | undefined {
  if (outcome.kind === 'error' || outcome.isReplayed === true) return undefined;
  const { status, hints } = outcome;
  if (hints.isFromCache === true || !(isThrottled(status, hints) || (status === 503 && !hints.lock))) return undefined;
  return hints.retryAfterMs === 0 ? undefined : hints.retryAfterMs;
}
