import { isListedInConnection } from '../headers/forward-headers.ts';
import type { Inbound } from '../server/server-request.ts';

/** Where a request names its account; header names in lower case. */
export type AccountPart =
  | { readonly kind: 'header'; readonly header: string }
  | { readonly kind: 'jwt'; readonly header: string; readonly claims: readonly string[] };

/**
 * The account that a request names, as part of the name of its write: two of one name are one account. Where nothing is named,
 * all requests are of one, and other evidence tells them apart.
 */
export function nameAccount(parts: readonly AccountPart[], { headers, rawHeaders }: AccountHeaders): string {
  const named = parts.flatMap((part) => {
    const value = headers[part.header];
    // What is for this hop alone names nothing to the upstream. Parts that name nothing leave no trace: one may be added.
    if (value === undefined || isListedInConnection(rawHeaders, part.header)) return [];
    const account = read(part, String(value));
    return account === '' ? [] : [`${part.header}=${account}`];
  });
  return named.toSorted().join('\n'); // in whatever order they are configured
}

type AccountHeaders = Pick<Inbound, 'headers' | 'rawHeaders'>;

function read(part: AccountPart, value: string): string {
  if (part.kind === 'header' || value === '') return value;
  const claims = readClaims(value);
  const found = part.claims.map((name) => claims?.[name]).find((claim) => claim !== undefined);
  if (found !== undefined) return JSON.stringify(found);
  // A bearer token that names nothing may be replaced; an assertion of another header stays as it is.
  return part.header === 'authorization' ? '' : value;
}

/** Of a JWT (RFC 7519), which is not verified: it only names, and the upstream decides whether it holds. */
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

/** Of a number that JavaScript would round, its text: two accounts are not to become one. */
function exactNumber(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' && !Number.isSafeInteger(value) ? (context?.source ?? value) : value;
}
