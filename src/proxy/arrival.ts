import type { Plan } from '../exchange.ts';
import type { LimitRef } from '../policy/limit-ref.ts';
import type { RequestFacts } from '../policy/types.ts';
import type { Description } from '../policy/watch.ts';
import type { ProxyContext } from './context.ts';
import { isListedInConnection, requestHeaders } from './headers.ts';
import type { Hash } from './client-hash.ts';
import { http2Headers } from './http2-request.ts';
import type { Client } from './identity.ts';
import type { Inbound } from './inbound.ts';
import type { Outbound } from './outbound.ts';
import { traceparentOf } from './trace-context.ts';
import type { Route, Snapshot } from './plan.ts';
import type { Upgrade } from './upgrade.ts';

/** A request that was routed: everything that is known of it before anything is decided. */
export interface Arrival {
  readonly request: Inbound;
  readonly response: Outbound;
  /** It asks to change to another protocol. */
  readonly upgrade: Upgrade | undefined;
  readonly route: Route;
  readonly snapshot: Snapshot;
  readonly client: Client;
  /** The address of who connected to us; `unknown` on a Unix socket. */
  readonly peer: string;
  readonly requestId: string;
  /** The client's own id for the request, or ours. */
  readonly xRequestId: string;
}

/** What the policy has to know of it. */
export function factsOf(arrival: Arrival): RequestFacts {
  const { request, route } = arrival;
  const { idempotencyHeader } = route.target;
  return {
    method: request.verb,
    keyed: idempotencyHeader !== undefined && isKeyed(request, idempotencyHeader),
    expectsContinue: request.expectsContinue,
    priorAttempts: priorAttempts(arrival),
  };
}

/** What those who watch it are told of it. */
export function describeArrival(arrival: Arrival, scheme: 'http' | 'https'): Description {
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
  };
}

/** A key that is for this hop alone does not reach the upstream, which then knows of none. */
function isKeyed({ headers, rawHeaders }: Inbound, header: string): boolean {
  return (headers[header] ?? '') !== '' && !isListedInConnection(rawHeaders, header);
}

export function planOf({ client, route }: Arrival): Plan {
  return (client.className === undefined ? undefined : route.planOfClass.get(client.className)) ?? route.plan;
}

/** The limits it stands under, outermost first. */
export function limitsOf({ request, route, client }: Arrival, hash: Hash): LimitRef[] {
  const { name, scope, credentialHeader } = route.target;
  switch (scope) {
    case 'upstream':
      return [{ upstream: name, scope, key: '' }];
    case 'client':
      return [{ upstream: name, scope, key: client.hash }];
    case 'credential':
      return [{ upstream: name, scope, key: hash(String(request.headers[credentialHeader] ?? '')) }];
  }
}

/** Its headers as the upstream gets them, the same at each attempt at one endpoint. @param authority of the endpoint */
export function outboundHeaders(
  arrival: Arrival,
  authority: string,
  { via, proto }: Pick<ProxyContext, 'via' | 'proto'>,
): string[] {
  const { request, peer, xRequestId, route, snapshot } = arrival;
  const { target } = route;
  const headers = requestHeaders(request.rawHeaders, {
    via: request.httpVersion === '2.0' ? via.replace('1.1', '2.0') : via,
    requestId: xRequestId,
    peer,
    peerIsTrusted: snapshot.trusts(peer),
    proto,
    forwarded: snapshot.forwarded,
    host: target.preserveHost ? (request.headers.host ?? authority) : authority,
  });
  return target.http2 ? http2Headers(headers) : headers;
}

/** Envoy counts from 1. Only a proxy of ours in front is believed. */
function priorAttempts({ request, snapshot, peer }: Arrival): number {
  const told = request.headers['x-envoy-attempt-count'];
  if (told === undefined || !snapshot.trusts(peer)) return 0;
  // Repeated by proxies one after the other, it is a list; the one that has tried most often decides.
  const counts = String(told).split(',').map(Number).filter(Number.isSafeInteger);
  return Math.max(0, ...counts.map((count) => count - 1));
}
