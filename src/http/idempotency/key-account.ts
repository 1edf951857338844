import type { IncomingHttpHeaders } from 'node:http';
import { isListedInConnection } from '../headers/forward-headers.ts';
import type { HttpServerRequest } from '../server/server-request.ts';

/** Where a request names its account. Header names are in lower case. */
export type KeyAccountSource =
  | { readonly kind: 'header'; readonly header: string }
  | { readonly kind: 'jwt'; readonly header: string; readonly claims: readonly string[] };

/**
 * The account that a request names, as part of the name of its write. Requests that name none share one account, and are
 * distinguished by other evidence.
 */
export function keyAccountOf(sources: readonly KeyAccountSource[], { headers, rawHeaders }: AccountHeaders): string {
  const accounts = sources.flatMap((source) => {
    const value = headers[source.header];
    // A header for this hop only does not reach the upstream. Sources without a value add nothing, so that one can be added later.
    if (value === undefined || isListedInConnection(rawHeaders, source.header)) return [];
    const account = readSource(source, String(value));
    return account === '' ? [] : [`${source.header}=${account}`];
  });
  return accounts.toSorted().join('\n'); // independent of the configured order
}

/** Beyond this, the accounts of a request with repeated headers are not enumerated. */
const MAX_READINGS = 256;

/**
 * The accounts that a request may name whose headers are repeated: an upstream may read any line of a header, or all of them as
 * one list. Undefined if there are too many.
 */
export function possibleAccountsOf(
  sources: readonly KeyAccountSource[],
  { headers, rawHeaders }: AccountHeaders,
): readonly string[] | undefined {
  let readings: readonly IncomingHttpHeaders[] = [headers];
  for (const header of new Set(sources.map((source) => source.header))) {
    const lines = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === header);
    if (lines.length < 2) continue;
    const values = [...new Set([...lines, lines.join(', ')])];
    if (readings.length * values.length > MAX_READINGS) return undefined;
    readings = readings.flatMap((reading) => values.map((value) => ({ ...reading, [header]: value })));
  }
  return readings.map((reading) => keyAccountOf(sources, { headers: reading, rawHeaders }));
}

type AccountHeaders = Pick<HttpServerRequest, 'headers' | 'rawHeaders'>;

function readSource(source: KeyAccountSource, value: string): string {
  if (source.kind === 'header' || value === '') return value;
  const claims = readClaims(value);
  const claim = source.claims.map((name) => claims?.[name]).find(isPresent);
  if (claim !== undefined) return JSON.stringify(claim, inOrder);
  // A bearer token without these claims may be refreshed at any time, so it names no account; other headers count as they are.
  return source.header === 'authorization' ? '' : value;
}

/** A claim that is null or empty names nobody: two tenants must not share it. */
function isPresent(claim: unknown): boolean {
  return claim !== undefined && claim !== null && claim !== '';
}

/** The order of the members of an object has no meaning (RFC 8259 §1). */
function inOrder(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** The claims of a JWT (RFC 7519). It is not verified: it only names an account, and the upstream decides whether it is valid. */
function readClaims(value: string): Readonly<Record<string, unknown>> | undefined {
  const payload = value.replace(/^bearer +/i, '').split('.')[1];
  if (payload === undefined || payload === '') return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString(), exactNumber);
    return typeof claims === 'object' && claims !== null ? { ...claims } : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps the text of a number that JavaScript would round, so that two accounts do not become one. */
function exactNumber(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' && !Number.isSafeInteger(value) ? (context?.source ?? value) : value;
}
