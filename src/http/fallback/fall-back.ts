/** A request that its upstream cannot serve is sent to another upstream instead (`fallback`). */
import type { FallbackReason } from '../../core/events/event-labels.ts';
import { FALLBACK_REASONS } from '../../core/events/event-labels.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import { findDisguisedPath } from '../auth/disguised-path.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import { RequestHandler } from '../request/request-handler.ts';
import { isTraceWithCredential } from '../request/choose-handling.ts';
import type { Route } from '../request/route.ts';
import { findRepeatedHeader } from '../request/validate-request.ts';
import { isSafeRequest, type RoutedRequest } from '../request/routed-request.ts';

/** Sends the request to another upstream, if it may. Returns whether it did: then its handler is over, without a response. */
export type FallBack = (routed: RoutedRequest, handler: RequestHandler, verdict: ExchangeVerdict) => boolean;

/**
 * Returns the function that ends the handler of a request that was not processed, and starts another for the other upstream of its
 * route: an exchange of its own, with that upstream's limits, retries and timeouts, counted from the arrival of the request.
 * @param onDone called with each handler that is over
 */
export function makeFallBack(
  context: ExchangeContext,
  start: (handler: RequestHandler) => void,
  onDone: (handler: RequestHandler) => void,
): FallBack {
  return (routed, handler, verdict) => {
    const { fallback } = routed.route;
    if (fallback === undefined || !mayGoElsewhere(routed)) return false;
    const why = fallbackReason(verdict);
    if (why === undefined) return false;
    const from = routed.route.target.name;
    const to = fallback.target.name;
    handler.release();
    onDone(handler);
    context.listen({ type: 'fallback', upstream: from, to, why });
    const origin = { from, arrivedAt: handler.startedAt };
    const successor = new RequestHandler(context, { ...routed, route: fallback, fallback: origin }, onDone);
    successor.steps = handler.steps;
    successor.trace = handler.trace;
    context.observer?.onStep(successor, { what: 'fallback', at: context.clock.now(), from, to, why });
    start(successor);
    return true;
  };
}

/**
 * A safe request (RFC 9110 §9.2.1) without a body, whose client is still there. Its body would have been read for one upstream; a change
 * of protocol belongs to one.
 */
function mayGoElsewhere(routed: RoutedRequest): boolean {
  const { request, response, route, upgrade, isPreflight } = routed;
  if (request.hasBody || upgrade !== undefined || isPreflight) return false;
  if (response.destroyed) return false;
  if (route.fallback !== undefined && isRefusedThere(routed, route.fallback)) return false;
  return isSafeRequest(routed);
}

/**
 * Its sender is ambiguous for the other upstream, its response would show a credential, or its path is another spelling of one that is guarded there: as `chooseHandling`
 * refuses it for the first.
 */
function isRefusedThere({ request, snapshot: { router } }: RoutedRequest, route: Route): boolean {
  const hasRepeatedIdentity = findRepeatedHeader(request, route.target.identityHeaders) !== undefined;
  if (hasRepeatedIdentity || isTraceWithCredential(request, route)) return true;
  return findDisguisedPath(request, route, router) !== undefined;
}

/** Why the upstream did not process the request; undefined if it did or may have, or if it is not the upstream's doing. */
function fallbackReason(verdict: ExchangeVerdict): FallbackReason | undefined {
  if (verdict.polls !== undefined) return undefined; // its result is at the upstream that was polled
  if (verdict.kind === 'fail') return verdict.reason === 'connect' ? 'connect' : undefined;
  return verdict.kind === 'refuse' ? FALLBACK_REASONS.find((reason) => reason === verdict.why) : undefined;
}
