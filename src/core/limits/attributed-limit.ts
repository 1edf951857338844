import type { GateUpstream } from '../admission/gate-store.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import type { Hints } from '../hints/hints.ts';
import type { Limit } from './limit.ts';
import type { LimitRef } from './limit-ref.ts';
import { formatLimitRef, isClassLimitRef } from './limit-ref.ts';

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

/** A quota without a name counts requests: of a limit of units, it says nothing if there is one of requests. */
export function requestQuotaRef({ limitRefs, costs }: Ticket): LimitRef | undefined {
  const ofUpstream = (ref: LimitRef): boolean => !isClassLimitRef(ref);
  const ofRequests = limitRefs.findLast((ref) => ofUpstream(ref) && costs?.find(ref.nested) === undefined);
  return ofRequests ?? limitRefs.findLast(ofUpstream);
}

/**
 * Returns the limit that a response is about: the innermost of those it names, else the innermost of all. Returns
 * undefined if it names a limit of the upstream that does not apply to this request, because the configuration does not match
 * all requests of that limit or has no such limit: no other limit is to be cut for it.
 */
export function attributedLimitRef(
  { limitRefs }: Ticket,
  named: Hints['limit'],
  upstream: GateUpstream,
): LimitRef | undefined {
  if (named !== undefined) {
    const names = (typeof named === 'string' ? [named] : named).filter((nested) => !isClassLimitRef({ nested }));
    const ref = limitRefs.findLast(({ nested }) => names.includes(nested));
    const isUnknown = typeof named !== 'string' && named.length === 0;
    if (ref !== undefined || isUnknown || names.some((name) => upstream.hasNestedLimit?.(name) === true)) return ref;
  }
  return limitRefs.findLast((ref) => !isClassLimitRef(ref));
}
