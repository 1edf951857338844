import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { ExchangeDriver } from '../../core/exchange/exchange-driver.ts';
import type { KeyClaim } from '../../core/idempotency/key-store.ts';
import { classifyWrite } from '../../core/idempotency/write-outcome.ts';
import type { JoinedRead } from '../coalescing/joined-read.ts';
import { headOfShared } from '../coalescing/share-response.ts';
import { ReplayingKeyClaim } from '../idempotency/replaying-key-claim.ts';
import type { ResponseCapture } from '../idempotency/response-capture.ts';
import { readResponseCosts } from '../cost/response-costs.ts';
import { isEventStream } from '../headers/forward-headers.ts';
import { setRetryAfter } from '../headers/retry-after-header.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import { factsOf, isSafeRequest, policyFor, type RoutedRequest } from '../request/routed-request.ts';
import type { UpstreamCall } from '../upstream/upstream-call.ts';
import type { ClientPolling } from './client-polling.ts';
import { keptHead } from './kept-head.ts';
import type { ResponseHead } from './response-head.ts';
import type { ClientResponse } from './client-response.ts';

export type ForwardedVerdict = Extract<ExchangeVerdict, { readonly kind: 'forward' }>;
type KeptVerdict = Extract<ExchangeVerdict, { readonly kind: 'replay' | 'share' }>;

export interface ForwardingParts {
  readonly call: UpstreamCall;
  readonly response: ClientResponse;
  readonly driver: Pick<ExchangeDriver<never>, 'onResponseEnd' | 'outcome' | 'ticket'>;
  readonly keyClaim: KeyClaim | undefined;
  readonly read: JoinedRead | undefined;
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
  const { call, response, driver, isClosed, onClose } = parts;
  const head = headForClient(parts, verdict);
  if (head === undefined || isClosed) {
    call.discard(head && captureFor(head, verdict, parts));
    driver.onResponseEnd();
    return false;
  }
  if (head.status !== 101) return forwardHead(head, verdict, parts);
  const upstream = call.takeUpgradedSocket();
  driver.onResponseEnd();
  if (upstream !== undefined) response.openTunnel(head, verdict.attempts, upstream, onClose);
  return true;
}

/** Sends the response that is kept for the write, or that of an equal read. @returns whether the client receives it */
export function sendKept({ response, routed, keyClaim, read }: ForwardingParts, verdict: KeptVerdict): boolean {
  const { request, route } = routed;
  if (verdict.kind === 'share') {
    const shared = read?.response;
    return shared !== undefined && response.sendWhole(headOfShared(shared, request.verb), shared.body, 'fail');
  }
  const kept = keyClaim instanceof ReplayingKeyClaim ? keyClaim.keptResponse : undefined;
  if (kept === undefined) return false;
  return response.sendWhole(keptHead(kept, route.target.idempotency), kept.body, verdict.unknown ? 'unknown' : 'fail');
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
function forwardHead(head: ResponseHead, verdict: ForwardedVerdict, parts: ForwardingParts): boolean {
  const { call, response, driver, routed, context } = parts;
  const unwritable = verdict.unknown || mayBeDone(routed, driver.outcome) ? 'unknown' : 'fail';
  if (!response.forward(head, verdict.attempts, verdict.unknown, unwritable)) {
    call.cancel();
    driver.onResponseEnd();
    return false;
  }
  const tap = readResponseCosts(context, routed, driver.ticket, head);
  call.forward(isEventStream(head.headers), { capture: captureFor(head, verdict, parts), tap });
  return true;
}

/** A client that never sees the response cannot know what became of its write: unless the response is a rejection. */
function mayBeDone(routed: RoutedRequest, outcome: AttemptOutcome | undefined): boolean {
  if (outcome === undefined || isSafeRequest(routed)) return false;
  const meaning = classifyWrite(factsOf(routed), outcome, policyFor(routed).retry.notProcessed);
  return meaning === 'answered' || meaning === 'may_have_taken_effect';
}

/** Collects the body for repeats of a write, or for equal reads; undefined if it is not kept, like that of an event stream. */
function captureFor(
  head: ResponseHead,
  { unknown }: ForwardedVerdict,
  { keyClaim, read, driver }: ForwardingParts,
): ResponseCapture | undefined {
  if (read !== undefined) return read.capture(head, driver.outcome);
  if (!(keyClaim instanceof ReplayingKeyClaim) || unknown) return undefined;
  return isEventStream(head.headers) ? undefined : keyClaim.capture(head);
}
