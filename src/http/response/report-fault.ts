import type { IdempotencyKey } from '../idempotency/idempotency-types.ts';
import { findUnresolvedByOthers } from '../idempotency/unresolved-key-check.ts';
import type { RequestBody } from '../request/request-body.ts';
import type { ForwardingParts } from './forward-verdict.ts';
import { asUnknownOutcome } from './problem-details.ts';
import type { Problem } from './problem.ts';

/** Responds with a problem of the request itself. @param unknown an attempt of its own may have taken effect */
export function reportFault(
  problem: Problem,
  unknown: boolean,
  { call, response, routed, context, keyClaim }: Omit<ForwardingParts, 'driver'>,
  key: IdempotencyKey | undefined,
  body: RequestBody | undefined,
): void {
  const respond = (answer: Problem): void => response.respondWith(answer, call.attemptCount);
  if (unknown) return respond(asUnknownOutcome(problem, 'this_request'));
  findUnresolvedByOthers(context, routed, key, body, keyClaim, (isUnresolved) =>
    respond(isUnresolved ? asUnknownOutcome(problem, 'earlier_request') : problem),
  );
}
