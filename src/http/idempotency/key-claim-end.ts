import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { KeyClaimEnd } from '../../core/idempotency/key-store.ts';
import { classifyWrite, isFinalAnswer } from '../../core/idempotency/write-outcome.ts';
import { isNamedByKey } from '../../core/exchange/request-facts.ts';
import { factsOf, policyFor, type RoutedRequest } from '../request/routed-request.ts';

/** Whether a write with a key is finished although its client disconnects. */
export function finishesAlone({ route }: Pick<RoutedRequest, 'route'>): boolean {
  return route.policy.retry.onClientGone === 'finish';
}

/**
 * Derives the end of a claim from the end of its exchange.
 * @param isDelivered the response reaches the client
 */
export function keyClaimEnd(
  routed: RoutedRequest,
  verdict: ExchangeVerdict,
  outcome: AttemptOutcome | undefined,
  isDelivered: boolean,
): KeyClaimEnd {
  const policy = policyFor(routed).retry;
  if (verdict.kind === 'gone' && verdict.unknown) return { kind: 'unknown' };
  if (verdict.kind === 'replay') return { kind: 'answered', isFinal: true, isDelivered };
  if (verdict.kind !== 'forward' || outcome === undefined) return { kind: 'other' };
  const request = { ...factsOf(routed), keyed: true };
  if (classifyWrite(request, outcome, policy.notProcessed) !== 'answered') return { kind: 'other' };
  const knowOwnKeysOnly = routed.route.target.endpoints.all.length > 1 && policy.sharesKeys !== true;
  const mayUseOtherEndpoints = knowOwnKeysOnly && !isNamedByKey(request);
  return { kind: 'answered', isFinal: isFinalAnswer(outcome, mayUseOtherEndpoints), isDelivered };
}
