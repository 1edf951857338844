import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { ExchangeDriver } from '../../core/exchange/exchange-driver.ts';
import type { KeyClaim } from '../../core/idempotency/key-store.ts';
import { classifyWrite } from '../../core/idempotency/write-outcome.ts';
import { ReplayingKeyClaim } from '../idempotency/replaying-key-claim.ts';
import type { ResponseCapture } from '../idempotency/response-capture.ts';
import { readResponseCosts } from '../cost/response-costs.ts';
import { isEventStream } from '../headers/forward-headers.ts';
import { setRetryAfter } from '../headers/retry-after-header.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import { factsOf, isSafeRequest, policyFor, type RoutedRequest } from '../request/routed-request.ts';
import type { UpstreamCall } from '../upstream/upstream-call.ts';
import type { ClientPolling } from './client-polling.ts';
import type { ResponseHead } from './response-head.ts';
import type { ClientResponse } from './client-response.ts';

export type ForwardedVerdict = Extract<ExchangeVerdict, { readonly kind: 'forward' }>;

export interface ForwardingParts {
  readonly call: UpstreamCall;
  readonly response: ClientResponse;
  readonly driver: Pick<ExchangeDriver<never>, 'onResponseEnd' | 'outcome' | 'ticket'>;
  readonly claim: KeyClaim | undefined;
  readonly routed: RoutedRequest;
  readonly polling: ClientPolling | undefined;
  readonly context: ExchangeContext;
  /** The client has disconnected. */
  readonly isClosed: boolean;
  /** Called when both sides of a changed protocol are closed. */
  readonly onClose: () => void;
}

/** Forwards the response in hand. @returns whether the client receives it */
export function forwardResponse(parts: ForwardingParts, verdict: ForwardedVerdict): boolean {
  const { call, response, driver, claim, isClosed, onClose } = parts;
  const head = headForClient(parts, verdict);
  if (head === undefined || isClosed) {
    call.discard(head && captureFor(head, verdict, claim));
    driver.onResponseEnd();
    return false;
  }
  if (head.status !== 101) return forwardHead(head, verdict, parts);
  const upstream = call.takeUpgradedSocket();
  driver.onResponseEnd();
  if (upstream !== undefined) response.openTunnel(head, verdict.attempts, upstream, onClose);
  return true;
}

/** Sends the response that is kept for the write. @param unknown see `ExchangeVerdict`. @returns whether the client receives it */
export function replayKept(response: ClientResponse, claim: KeyClaim | undefined, unknown: boolean): boolean {
  const kept = claim instanceof ReplayingKeyClaim ? claim.keptResponse : undefined;
  return kept !== undefined && response.replay(kept, unknown);
}

/** The head in hand with the headers that say when to retry or poll; undefined if there is none. */
function headForClient(
  { call, driver: { outcome }, polling, context }: ForwardingParts,
  { polls, retryAfterMs }: ForwardedVerdict,
): ResponseHead | undefined {
  const head = call.takeHead();
  const withPolling = head === undefined ? undefined : (polling?.withPollingHeaders(head, outcome, polls) ?? head);
  return withPolling && setRetryAfter(withPolling, retryAfterMs, context.random);
}

/** Writes the head, and starts forwarding the body. @returns whether the client receives the response */
function forwardHead(
  head: ResponseHead,
  verdict: ForwardedVerdict,
  { call, response, driver, claim, routed, context }: ForwardingParts,
): boolean {
  const unwritable = verdict.unknown || mayBeDone(routed, driver.outcome) ? 'unknown' : 'fail';
  if (!response.forward(head, verdict.attempts, verdict.unknown, unwritable)) {
    call.cancel();
    driver.onResponseEnd();
    return false;
  }
  const tap = readResponseCosts(context, routed, driver.ticket, head);
  call.forward(isEventStream(head.headers), { capture: captureFor(head, verdict, claim), tap });
  return true;
}

/** A client that never sees the response cannot know what became of its write: unless the response is a rejection. */
function mayBeDone(routed: RoutedRequest, outcome: AttemptOutcome | undefined): boolean {
  if (outcome === undefined || isSafeRequest(routed)) return false;
  const meaning = classifyWrite(factsOf(routed), outcome, policyFor(routed).retry.notProcessed);
  return meaning === 'answered' || meaning === 'may_have_taken_effect';
}

/** Collects the body for repeats of the request; undefined if it is not kept, like that of an event stream. */
function captureFor(
  head: ResponseHead,
  { unknown }: ForwardedVerdict,
  claim: KeyClaim | undefined,
): ResponseCapture | undefined {
  if (!(claim instanceof ReplayingKeyClaim) || unknown) return undefined;
  return isEventStream(head.headers) ? undefined : claim.capture(head);
}
