/** What observers and the log learn about a request, and its end. */
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { ExchangeDriver } from '../../core/exchange/exchange-driver.ts';
import type { LastAttempt } from '../../core/exchange/exchange-observer.ts';
import { nameAttributedLimit } from '../../core/limits/attributed-limit.ts';
import { clientTraceOf } from '../headers/trace-context.ts';
import type { IdempotencyKey } from '../idempotency/idempotency-types.ts';
import type { ExchangeTimings } from '../response/make-request-record.ts';
import type { UpstreamCall } from '../upstream/upstream-call.ts';
import type { ExchangeContext } from './exchange-context.ts';
import type { RequestBody } from './request-body.ts';
import type { RequestHandler } from './request-handler.ts';
import type { Route } from './route.ts';
import type { RoutedRequest } from './routed-request.ts';

/** The request is over, and nothing of it is in progress. */
export type OnHandlerDone = (handler: RequestHandler, record: RequestRecord) => void;

export function announceArrival({ listen }: ExchangeContext, route: Route, key: IdempotencyKey | undefined): void {
  listen({ type: 'arrived', route: route.name });
  if (key?.from === 'minted') listen({ type: 'key', upstream: route.target.name, event: 'minted' });
}

export function lastAttemptOf(
  { outcome, ticket, attributedLimit }: Pick<ExchangeDriver<never>, 'outcome' | 'ticket' | 'attributedLimit'>,
  { endpoint, failure }: UpstreamCall,
): LastAttempt {
  const limit =
    outcome?.kind === 'response' ? nameAttributedLimit(ticket.limitRefs, attributedLimit, outcome) : undefined;
  const account = ticket.sentWith;
  return {
    endpoint: endpoint?.label,
    origin: endpoint?.origin,
    outcome,
    cause: failure?.cause,
    account,
    limit,
    costs: ticket.costs?.costs,
  };
}

/** The timings of a finished exchange. */
export function timingsOf(
  {
    startedAt: since,
    driver: { queued, slept, wouldHave },
    trace,
  }: Pick<RequestHandler, 'startedAt' | 'driver' | 'trace'>,
  { request }: RoutedRequest,
  { attemptCount: attempts, failure, endpoint, forwardedBytes }: UpstreamCall,
  body: RequestBody | undefined,
): ExchangeTimings {
  const { traceId, spanId } = trace ?? clientTraceOf(request);
  return {
    since,
    attempts,
    queued,
    slept,
    wouldHave,
    failure,
    traceId,
    spanId,
    endpoint: endpoint?.label,
    bytesIn: body?.receivedBytes ?? 0,
    bytesForwarded: forwardedBytes,
  };
}

/** Closes what a request has opened, and detaches its handler from request and response. */
export function releaseRequest(
  { request, response }: RoutedRequest,
  opened: readonly ({ close(): void } | undefined)[],
  body: { release(): void } | undefined,
  onClose: () => void,
): void {
  for (const each of opened) each?.close();
  body?.release();
  // Node keeps request and response for a while: what they refer to would be copied by each scavenge until then.
  response.off('close', onClose);
  request.bodyListener = undefined;
}
