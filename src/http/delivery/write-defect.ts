import { keyFromHeaders, keyInBody } from '../idempotency/idempotency-key.ts';
import { replaySafetyOf } from '../request/routed-request.ts';
import type { Route } from '../request/route.ts';
import type { DeliveryRequest } from './delivery-request.ts';
import type { AttemptJudgement } from './judge-attempt.ts';

/**
 * Why a stored write may not be sent by the configuration in effect, which may have changed since it was accepted: without its key, or on
 * a path that is never repeated, each attempt could take effect. It ends as unknown, because an attempt that a kill has cut off is not
 * recorded. Undefined if it may be sent.
 */
export function findWriteDefect(route: Route, request: DeliveryRequest, body: Buffer): AttemptJudgement | undefined {
  if (replaySafetyOf({ request, route }) === 'never') return endedBecause('unknown_not_repeatable');
  const isKeyed =
    keyFromHeaders(request, route)?.from === 'header' ||
    keyInBody({ request, route }, { payload: () => body }) !== undefined;
  return isKeyed ? undefined : endedBecause('unknown_key_missing');
}

function endedBecause(reason: string): AttemptJudgement {
  return { kind: 'failed', reason, retryAfterMs: undefined, isUnknown: true, isFinal: true };
}
