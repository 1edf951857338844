import type { Millis } from '../../../core/scalars.ts';
import { parseMaxWait, WAIT_EXPECTED } from '../check-options.ts';
import type { RouteChoice } from '../ext-authz-options.ts';
import type { RequestDescription } from './described-request.ts';
import type { EnvoyCheckRequest, EnvoyHeader } from './envoy-messages.ts';

/** A check of one request. */
export interface DescribedCheck {
  readonly request: RequestDescription;
  readonly choice: RouteChoice;
  /** Maximum time in the queue; Infinity: the upstream's queue settings decide. */
  readonly maxWait: Millis;
}

/** The header that has the identity of the client's certificate, whatever the client sent by this name. */
const PRINCIPAL_HEADER = 'tidegate-principal';

/** Reads a CheckRequest. Returns a sentence if it describes no HTTP request, or if the settings of its route in Envoy are invalid. */
export function describeCheck({ attributes = {} }: EnvoyCheckRequest): DescribedCheck | string {
  const { source, request, contextExtensions = {} } = attributes;
  const http = request?.http;
  if (http === undefined) return 'attributes.request.http is missing: only the HTTP filter of Envoy is supported.';
  const maxWait = parseMaxWait(contextExtensions['tidegate-wait']);
  if (maxWait === undefined) return `context_extensions: tidegate-${WAIT_EXPECTED}`;
  const raw = http.headerMap?.headers ?? [];
  const headers = raw.length > 0 ? raw.flatMap(headerPair) : Object.entries(http.headers ?? {}).flat();
  const principal = source?.principal ?? '';
  const own = withoutHeader(headers, PRINCIPAL_HEADER);
  if (principal !== '') own.push(PRINCIPAL_HEADER, principal);
  return {
    request: {
      method: http.method ?? '',
      target: http.path ?? '',
      host: http.host ?? '',
      headers: own,
      address: source?.address?.socketAddress?.address || undefined,
    },
    choice: chooseRoute(contextExtensions['tidegate-route'], contextExtensions['tidegate-upstream']),
    maxWait,
  };
}

/** A name of a route comes before that of an upstream. */
export function chooseRoute(route: string | undefined, upstream: string | undefined): RouteChoice {
  if (route !== undefined) return { by: 'route', name: route };
  return upstream === undefined ? { by: 'request' } : { by: 'upstream', name: upstream };
}

function headerPair({ key = '', value = '', rawValue }: EnvoyHeader): [string, string] {
  return [key, rawValue === undefined || rawValue.length === 0 ? value : rawValue.toString('latin1')];
}

function withoutHeader(headers: readonly string[], name: string): string[] {
  return headers.filter((_, i) => headers[i - (i % 2)]?.toLowerCase() !== name);
}
