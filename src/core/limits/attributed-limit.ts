import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import type { Limit } from './limit.ts';
import type { LimitRef } from './limit-ref.ts';
import { formatLimitRef } from './limit-ref.ts';

/**
 * The name of the limit that a rejection counts against, for a request with several limits. Returns '' if the response
 * names a limit that does not apply to the request. Returns undefined if the response is no rejection of a rate, or if the
 * request has only the one limit.
 * @param attributedLimit what `Gate.onOutcome` returned for the response
 */
export function nameAttributedLimit(
  limitRefs: readonly LimitRef[],
  attributedLimit: Limit | undefined,
  { status, hints }: Extract<AttemptOutcome, { readonly kind: 'response' }>,
): string | undefined {
  if (attributedLimit !== undefined) {
    return limitRefs.length === 1 ? undefined : formatLimitRef(attributedLimit.ref) || 'the upstream’s own';
  }
  const isRejected = (status === 429 || hints.throttled === true) && !hints.lock;
  return isRejected && hints.limit !== undefined ? '' : undefined;
}
