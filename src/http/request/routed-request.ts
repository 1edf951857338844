import type { Plan } from '../../core/exchange/steps.ts';
import type { RequestFacts } from '../../core/exchange/attempt-outcome.ts';
import { listElements } from '../../core/http-semantics/list-field.ts';
import type { Description } from '../../core/exchange/exchange-observer.ts';
import type { ProxyContext } from './exchange-context.ts';
import { requestHeaders, viaOver } from '../headers/forward-headers.ts';
import { http2Headers } from '../upstream/http2-request-head.ts';
import type { IdempotencyKey } from '../idempotency/idempotency-key.ts';
import { hasKeyInBody, keyTtlOf, tellKey, withMintedKey } from '../idempotency/idempotency-key.ts';
import type { Client } from './client-identity.ts';
import type { Inbound } from '../server/server-request.ts';
import { maxForwardsLeft } from '../headers/max-forwards.ts';
import type { Outbound } from '../server/server-response.ts';
import { traceparentOf } from '../headers/trace-context.ts';
import type { Route, Snapshot } from './snapshot-types.ts';
import { upstreamPath } from './router.ts';
import type { Upgrade } from '../server/upgrade.ts';

/** A request that was routed: everything that is known of it before anything is decided. */
export interface Arrival {
  readonly request: Inbound;
  readonly response: Outbound;
  /** It asks to change to another protocol. */
  readonly upgrade: Upgrade | undefined;
  readonly route: Route;
  readonly snapshot: Snapshot;
  readonly client: Client;
  /** Its idempotency key, as far as its headers say, or the one that it was given. */
  readonly key: IdempotencyKey | undefined;
  /** The address of who connected to us; `unknown` on a Unix socket. */
  readonly peer: string;
  /** A browser asks before it asks, and the upstream answers that: no limit concerns it. */
  readonly isPreflight?: boolean;
  readonly requestId: string;
  /** The client's own id for the request, or ours. */
  readonly xRequestId: string;
}

/** What the policy has to know of it. */
export function factsOf(arrival: Arrival): RequestFacts {
  const { request, route, key } = arrival;
  return {
    method: request.verb,
    keyed: key !== undefined,
    keyTtl: keyTtlOf(request, route),
    // A key is known before anything is decided, also where that costs an upload.
    expectsContinue: request.expectsContinue && !hasKeyInBody(request, route),
    priorAttempts: priorAttempts(arrival),
    nature: route.tellNature?.(request.verb, upstreamPath(request.target, route)),
  };
}

/** What those who watch it are told of it. */
export function describeArrival(arrival: Arrival, scheme: 'http' | 'https', key = arrival.key): Description {
  const { request, route, client, snapshot, requestId } = arrival;
  const { tracestate } = request.headers;
  return {
    id: requestId,
    method: request.verb,
    path: snapshot.tellPath(request.path),
    route: route.name,
    routePath: route.path,
    upstream: route.target.name,
    client: client.hash,
    identifiedBy: client.identifiedBy,
    scheme,
    version: request.httpVersion,
    traceparent: traceparentOf(request),
    tracestate: typeof tracestate === 'string' ? tracestate : tracestate?.join(','),
    retryPolicy: planOf(arrival).retry,
    key: tellKey(key, route),
  };
}

export function planOf({ client, route }: Arrival): Plan {
  return (client.className === undefined ? undefined : route.planOfClass.get(client.className)) ?? route.plan;
}

/** Its headers as the upstream gets them, the same at each attempt at one endpoint. @param authority of the endpoint */
export function outboundHeaders(
  arrival: Arrival,
  authority: string,
  { via, proto }: Pick<ProxyContext, 'via' | 'proto'>,
): string[] {
  const { request, upgrade, peer, xRequestId, route, snapshot, key } = arrival;
  const { target } = route;
  const came = requestHeaders(request.rawHeaders, {
    via: viaOver(request.httpVersion, via),
    requestId: xRequestId,
    peer,
    peerIsTrusted: snapshot.trusts(peer),
    proto,
    forwarded: snapshot.forwarded,
    host: target.preserveHost ? (request.headers.host ?? authority) : authority,
    clientHost: request.headers.host,
    http2: target.http2 && upgrade === undefined, // which is asked for over HTTP/1.1
    maxForwards: maxForwardsLeft(request),
  });
  const { header } = target.idempotency;
  const headers = key?.from === 'minted' && header !== undefined ? withMintedKey(came, header, key.value) : came;
  return target.http2 ? http2Headers(headers) : headers;
}

/** Envoy counts from 1. Only a proxy of ours in front is believed. */
function priorAttempts({ request, snapshot, peer }: Arrival): number {
  const told = request.headers['x-envoy-attempt-count'];
  if (told === undefined || !snapshot.trusts(peer)) return 0;
  // Repeated by proxies one after the other, it is a list; the one that has tried most often decides.
  const counts = listElements(String(told)).map(Number).filter(Number.isSafeInteger);
  return Math.max(0, ...counts.map((count) => count - 1));
}
