import { hash } from 'node:crypto';
import { HOP_BY_HOP_HEADERS } from '../../core/http-semantics/managed-headers.ts';
import type { RoutedRequest } from '../request/routed-request.ts';

/**
 * Headers that may differ between equal reads, in lower case: they name the request, its trace, or the proxies before this one. Those of
 * a single connection may differ too.
 */
export const NEUTRAL_HEADERS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP_HEADERS,
  'via',
  'x-forwarded-for',
  'x-real-ip',
  'x-request-id',
  'traceparent',
  'tracestate',
]);

/**
 * A digest that is equal for reads that are equal: of one route, with one target, and with the same headers, credentials included, except neutral ones.
 * @returns undefined for a request that is never sent together with another one: with a body or an upgrade
 */
export function readKeyOf(routed: RoutedRequest): string | undefined {
  const { request, route, client, upgrade } = routed;
  if (request.hasBody || upgrade !== undefined) return undefined;
  const owner = isOfOneClient(routed) ? client.hash : '';
  const fields: string[] = [];
  const { rawHeaders } = request;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    if (!NEUTRAL_HEADERS.has(name)) fields.push(`${name}:${rawHeaders[i + 1] ?? ''}`);
  }
  // In the order of their names. Several lines of one name stay in theirs, which may have a meaning.
  fields.sort((a, b) => compare(a.slice(0, a.indexOf(':')), b.slice(0, b.indexOf(':'))));
  const parts = [route.name, route.target.name, owner, request.verb, request.target, ...fields];
  return hash('sha256', JSON.stringify(parts), 'base64');
}

/** Whether equal reads are of one client: it has proven its name, or the account depends on it, or the configuration says so. */
function isOfOneClient({ route, client }: RoutedRequest): boolean {
  return route.coalescing === 'client' || route.stickyAccount === true || client.isProven === true;
}

/** Whether equal reads are of one user, because they are of one client, or have the same credential in a standard header. */
export function isOfOneUser(routed: RoutedRequest): boolean {
  const { authorization, cookie } = routed.request.headers;
  return authorization !== undefined || cookie !== undefined || isOfOneClient(routed);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
