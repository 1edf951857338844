import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import { classifyWrite } from '../../core/idempotency/write-outcome.ts';
import { factsOf, policyFor, type RoutedRequest } from '../request/routed-request.ts';
import type { WriteAttempt } from './judge-write.ts';

/** @param outcome of the last attempt; undefined if none was made. Each stored write has a key */
export function describeWriteAttempt(routed: RoutedRequest, outcome: AttemptOutcome | undefined): WriteAttempt {
  const wasAnswered = routed.keyWatch?.record?.isAnswered === true;
  if (outcome === undefined) return { meaning: undefined, isLocked: false, wasAnswered };
  const request = { ...factsOf(routed), keyed: true };
  return {
    wasAnswered,
    meaning: classifyWrite(request, outcome, policyFor(routed).retry.notProcessed),
    isLocked: outcome.kind === 'response' && outcome.hints.lock,
  };
}
