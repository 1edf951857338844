import type { RoutePolicy } from '../../core/exchange/steps.ts';
import { isRepeatable, isSafe, type ReplaySafety, type RequestFacts } from '../../core/exchange/request-facts.ts';
import { parseListField } from '../../core/http-semantics/list-field.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { KeyWatch } from '../../core/exchange/watch-key.ts';
import type { ExchangeDescription } from '../../core/exchange/exchange-observer.ts';
import type { ProxyContext } from './exchange-context.ts';
import type { AccountCredential } from '../../core/accounts/account-credential.ts';
import { filterHeaders } from '../headers/raw-headers.ts';
import { forwardRequestHeaders, viaEntry } from '../headers/forward-headers.ts';
import { toHttp2Headers } from '../upstream/http2/http2-request-head.ts';
import type { IdempotencyKey } from '../idempotency/idempotency-types.ts';
import { mayHaveKeyInBody, keyTtlOf, describeKey } from '../idempotency/idempotency-key.ts';
import { withMintedKey } from '../idempotency/key-header.ts';
import { withUpstreamKeys } from '../idempotency/upstream-key.ts';
import type { Principal } from '../auth/auth-types.ts';
import { clientAddress, socketAddress } from './client-address.ts';
import type { ClientIdentity } from './client-identity.ts';
import { xRequestIdFor } from '../headers/request-id.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import { decrementMaxForwards } from '../headers/max-forwards.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import { traceparentOf } from '../headers/trace-context.ts';
import type { Route, TargetAccounts } from './route.ts';
import type { Snapshot } from './snapshot-types.ts';
import { upstreamPath } from './router.ts';
import type { Upgrade } from '../server/upgrade.ts';

/** A request with its route: everything known before the exchange starts. */
export interface RoutedRequest {
  readonly request: HttpServerRequest;
  readonly response: HttpServerResponse;
  /** Defined if the client asks for a change of protocol. */
  readonly upgrade: Upgrade | undefined;
  readonly route: Route;
  readonly snapshot: Snapshot;
  readonly client: ClientIdentity;
  /** The idempotency key in its headers, or the one that Tidegate generated. */
  readonly key: IdempotencyKey | undefined;
  /** Address of the peer that connected; `unknown` on a Unix socket. */
  readonly peer: string;
  /** A CORS preflight that the upstream answers: no limit applies. */
  readonly isPreflight: boolean;
  readonly requestId: string;
  /** The client's id of the request, or ours. */
  readonly xRequestId: string;
  /** Of a stored write: its outcome depends on what others have done with its key. */
  readonly keyWatch?: KeyWatch;
  /** Set if the upstream of its route, `from`, did not serve it: `route` leads to the fallback. */
  readonly fallback?: { readonly from: string; readonly arrivedAt: Millis } | undefined;
}

/** A request and its route, before its client is identified. */
export type UnidentifiedRequest = Pick<
  RoutedRequest,
  'request' | 'response' | 'upgrade' | 'route' | 'snapshot' | 'isPreflight'
>;

/** Identifies the client of a request. @param requestId unique @param principal its client, if it has proven its name */
export function identifyRequest(
  { request, response, upgrade, route, snapshot, isPreflight }: UnidentifiedRequest,
  requestId: string,
  key: IdempotencyKey | undefined,
  principal?: Principal,
): RoutedRequest {
  const peer = socketAddress(request.socket.remoteAddress);
  const client = snapshot.identifyClient(request, clientAddress(request, peer, snapshot.isTrustedProxy), principal);
  const xRequestId = xRequestIdFor(request, requestId);
  return { request, response, upgrade, route, snapshot, client, key, peer, isPreflight, requestId, xRequestId };
}

/** When the head of a request arrived that the proxy gets now. */
export function arrivalOf({ handoverDelay = 0 }: HttpServerRequest, clock: Clock): Millis {
  return clock.now() - handoverDelay;
}

/** What the exchange needs to know about the request. @param preferredWait of a client that lets the proxy poll */
export function factsOf(routed: RoutedRequest, preferredWait?: Millis): RequestFacts {
  const { request, route, key } = routed;
  const facts = {
    method: request.verb,
    keyed: key !== undefined,
    keyTtl: keyTtlOf(request, route),
    expectsContinue: request.expectsContinue && !needsBodyFirst(routed),
    priorAttempts: priorAttempts(routed),
    replaySafety: replaySafetyOf(routed),
  };
  return preferredWait === undefined ? facts : { ...facts, preferredWait };
}

/** It is read before admission: its signature is verified, a key may be in it, or it identifies a repeat of a key. */
function needsBodyFirst(routed: RoutedRequest): boolean {
  const { request, route } = routed;
  return route.verify !== undefined || mayHaveKeyInBody(request, route) || isCompared(routed);
}

/** The body is compared with that of an earlier request with the key. */
function isCompared({ route, key }: RoutedRequest): boolean {
  return key !== undefined && route.target.idempotency.keepResponsesFor !== undefined;
}

/** By its method, or by what the upstream's paths are known to do. */
export function isSafeRequest(routed: Pick<RoutedRequest, 'request' | 'route'>): boolean {
  return isSafe({ method: routed.request.verb, replaySafety: replaySafetyOf(routed) });
}

/** What the configuration says of its path. */
export function replaySafetyOf({ request, route }: Pick<RoutedRequest, 'request' | 'route'>): ReplaySafety | undefined {
  return route.replaySafetyOf?.(request.verb, upstreamPath(request.target, route));
}

/** The description for observers. */
export function describeExchange(
  routed: RoutedRequest,
  scheme: 'http' | 'https',
  key = routed.key,
): ExchangeDescription {
  const { request, route, client, snapshot, requestId } = routed;
  const { tracestate } = request.headers;
  return {
    id: requestId,
    method: request.verb,
    path: snapshot.redactPath(request.path),
    route: route.name,
    routePath: route.path,
    upstream: route.target.name,
    client: client.hash,
    identifiedBy: client.identifiedBy,
    scheme,
    version: request.httpVersion,
    traceparent: traceparentOf(request),
    tracestate: typeof tracestate === 'string' ? tracestate : tracestate?.join(','),
    retryPolicy: policyFor(routed).retry,
    replaySafety: replaySafetyOf(routed),
    key: describeKey(key, route),
  };
}

export function policyFor({ client, route }: RoutedRequest): RoutePolicy {
  return (client.className === undefined ? undefined : route.policyByClass.get(client.className)) ?? route.policy;
}

/**
 * The request headers as sent to the upstream, equal for all attempts at one endpoint with one account.
 * @param authority of the endpoint
 * @param through the credential of the account, which replaces all headers of accounts, and the key in place of the client's
 */
export function upstreamHeaders(
  routed: RoutedRequest,
  authority: string,
  { via, proto }: Pick<ProxyContext, 'via' | 'proto'>,
  {
    credential,
    upstreamKey,
  }: { readonly credential: AccountCredential | undefined; readonly upstreamKey: string | undefined },
): string[] {
  const { request, upgrade, peer, xRequestId, route, snapshot, key } = routed;
  const { target } = route;
  const forwarded = forwardRequestHeaders(request.rawHeaders, {
    via: viaEntry(request.httpVersion, via),
    requestId: xRequestId,
    peer,
    peerIsTrusted: snapshot.isTrustedProxy(peer),
    proto,
    forwarded: snapshot.addsForwarded,
    host: target.preserveHost ? (request.headers.host ?? authority) : authority,
    clientHost: request.headers.host,
    http2: target.http2 && upgrade === undefined, // upgrades use HTTP/1.1
    maxForwards: decrementMaxForwards(request),
  });
  if (request.addedHeaders !== undefined) forwarded.push(...request.addedHeaders);
  const { header } = target.idempotency;
  const keyed =
    key?.from === 'minted' && header !== undefined ? withMintedKey(forwarded, header, key.value) : forwarded;
  const ownHeaders = withUpstreamKeys(keyed, routed, upstreamKey);
  const headers =
    target.accounts === undefined ? ownHeaders : withoutAccountHeaders(ownHeaders, target.accounts, credential);
  credential?.appendTo(headers);
  return target.http2 ? toHttp2Headers(headers) : headers;
}

/** Underscores count as hyphens, because upstreams that follow CGI take both names for one. */
function withoutAccountHeaders(
  headers: readonly string[],
  accounts: TargetAccounts,
  credential: AccountCredential | undefined,
): string[] {
  // A reload may have changed the header of the account since the request arrived.
  const current = credential?.headerLower.replaceAll('_', '-');
  return filterHeaders(headers, (name) => {
    const folded = name.replaceAll('_', '-');
    return folded !== current && !accounts.headers.has(folded);
  });
}

/** Earlier attempts, from X-Envoy-Attempt-Count, which counts from 1. Only a trusted proxy's header counts. */
function priorAttempts({ request, snapshot, peer }: RoutedRequest): number {
  const attemptCount = request.headers['x-envoy-attempt-count'];
  if (attemptCount === undefined || !snapshot.isTrustedProxy(peer)) return 0;
  // Several proxies in a row make a list of it; the highest count decides.
  const counts = parseListField(String(attemptCount)).map(Number).filter(Number.isSafeInteger);
  return Math.max(0, ...counts.map((count) => count - 1));
}

/** @param hasKey it has an idempotency key, in a header or in its body: see `isRepeatable` */
export function isRepeatableAnywhere(routed: RoutedRequest, facts: RequestFacts, hasKey: boolean): boolean {
  return isRepeatable(facts, hasKey && policyFor(routed).retry.sharesKeys === true);
}
