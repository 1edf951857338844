import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import { isGatewayError, isLocalFailure, isThrottled } from '../exchange/attempt-outcome.ts';

/**
 * Classifies an outcome for its endpoint. Throttling and a 500 show that the endpoint works. A client that left, or a failure of
 * this process, is no evidence.
 */
export function classifyForEndpoint(outcome: AttemptOutcome): 'works' | 'fails' | 'nothing' {
  if (outcome.kind === 'response') {
    return isGatewayError(outcome.status) && !isThrottled(outcome.status, outcome.hints) ? 'fails' : 'works';
  }
  return isLocalFailure(outcome) || outcome.isStaleConnection === true ? 'nothing' : 'fails';
}
