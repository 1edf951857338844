import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import { classifyWrite } from '../../core/idempotency/write-outcome.ts';
import type { LatencyEstimates } from '../../core/retry/latency-estimates.ts';
import type { AttemptOrder } from '../upstream/attempt-order.ts';
import { factsOf, isSafeRequest, policyFor, type RoutedRequest } from '../request/routed-request.ts';

/** Records what the outcome of an attempt says about a write, and how long the upstream took to respond. */
export function recordWriteOutcome(
  outcome: AttemptOutcome,
  routed: RoutedRequest,
  order: AttemptOrder | undefined,
  answerTimes: LatencyEstimates,
): void {
  const { name, target } = routed.route;
  if (isSafeRequest(routed)) {
    if (target.learnsFromLatency) answerTimes.of(name, false).onReadEnd(outcome);
    return;
  }
  const request = { ...factsOf(routed), keyed: order?.claim !== undefined };
  const meaning = classifyWrite(request, outcome, policyFor(routed).retry.notProcessed);
  order?.claim?.recordOutcome(meaning);
  // A streamed body was sent at the client's pace, so the time is not the upstream's alone.
  if (outcome.kind === 'error' || outcome.isReplayed === true || order?.body?.isStreamed === true) return;
  if (meaning === 'answered') answerTimes.of(name, true).onAnswer(outcome.took);
}
