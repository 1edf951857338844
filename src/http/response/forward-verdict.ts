import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { Random } from '../../core/scalars.ts';
import type { ExchangeDriver } from '../../core/exchange/exchange-driver.ts';
import { isEventStream } from '../headers/forward-headers.ts';
import { setRetryAfter } from '../headers/retry-after-header.ts';
import type { UpstreamCall } from '../upstream/upstream-call.ts';
import type { ClientPolling } from './client-polling.ts';
import type { ResponseHead } from './response-head.ts';
import type { ClientResponse } from './client-response.ts';

export type ForwardedVerdict = Extract<ExchangeVerdict, { readonly kind: 'forward' }>;

/** The head in hand with the headers that say when to retry or poll; undefined if there is none. @param outcome of the last attempt */
export function headForClient(
  upstreamCall: UpstreamCall,
  { polls, retryAfterMs }: ForwardedVerdict,
  outcome: AttemptOutcome | undefined,
  polling: ClientPolling | undefined,
  random: Random,
): ResponseHead | undefined {
  const head = upstreamCall.takeHead();
  const withPolling = head === undefined ? undefined : (polling?.withPollingHeaders(head, outcome, polls) ?? head);
  return withPolling && setRetryAfter(withPolling, retryAfterMs, random);
}

/** Writes the head, and starts forwarding the body. Returns whether the client receives the response. */
export function forwardHead(
  head: ResponseHead,
  { attempts, unknown }: ForwardedVerdict,
  response: ClientResponse,
  upstreamCall: UpstreamCall,
  driver: Pick<ExchangeDriver<never>, 'onResponseEnd'>,
): boolean {
  if (!response.forward(head, attempts, unknown)) {
    upstreamCall.cancel();
    driver.onResponseEnd();
    return false;
  }
  const mayIdle = isEventStream(head.headers);
  upstreamCall.forward(mayIdle);
  if (mayIdle) driver.onResponseEnd();
  return true;
}
