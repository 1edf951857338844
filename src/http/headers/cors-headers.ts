/** CORS headers: which pages of other origins may send requests and read responses (https://fetch.spec.whatwg.org/#http-cors-protocol). */
import type { HttpServerRequest } from '../server/server-request.ts';
import { withoutHeader } from './raw-headers.ts';

/** The CORS policy of a route whose preflights the proxy answers. */
export interface CorsPolicy {
  /** Undefined: all. */
  readonly origins: ReadonlySet<string> | undefined;
  /** `https://*.example.com`, split at the `*`. */
  readonly wildcards: readonly (readonly [string, string])[];
  /** Value of Access-Control-Allow-Methods; undefined: the requested method. */
  readonly methods: string | undefined;
  /** Value of Access-Control-Allow-Headers; undefined: the requested headers. */
  readonly headers: string | undefined;
  /** Value of Access-Control-Expose-Headers, Tidegate's own headers included. */
  readonly exposed: string;
  readonly credentials: boolean;
  /** Whole seconds. */
  readonly maxAge: number;
}

/** Headers of Tidegate that a page may read, whatever the upstream exposes. */
export const EXPOSED_HEADERS = [
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'Proxy-Status',
  'X-Request-Id',
  'Tidegate-Request-Id',
  'Tidegate-Attempts',
  'Tidegate-Polls',
  'Tidegate-Outcome',
  'Tidegate-Idempotency-Key',
];

const OWN_EXPOSED_HEADERS = EXPOSED_HEADERS.join(', ');

/** The method that a CORS preflight asks for; undefined if the request is no preflight. */
export function preflightMethod({ verb, headers }: HttpServerRequest): string | undefined {
  if (verb !== 'OPTIONS' || headers.origin === undefined) return undefined;
  const method = headers['access-control-request-method'];
  return typeof method === 'string' ? method : undefined;
}

/** The headers of the response to a preflight. Without a permission in them the browser does not send the request. */
export function preflightHeaders(policy: CorsPolicy, { headers }: HttpServerRequest): string[] {
  // Always, because what is allowed may depend on what was requested.
  const out = ['Vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers'];
  if (!addAllowOrigin(policy, headers.origin, out)) return out;
  const requested = {
    method: headers['access-control-request-method'],
    headers: headers['access-control-request-headers'],
  };
  const methods = policy.methods ?? requested.method;
  const names = policy.headers ?? requested.headers;
  if (methods !== undefined) out.push('Access-Control-Allow-Methods', methods);
  if (names !== undefined && names.length > 0) out.push('Access-Control-Allow-Headers', names);
  out.push('Access-Control-Max-Age', String(policy.maxAge));
  return out;
}

/** The CORS headers of the proxy's own responses. */
export function corsHeaders(policy: CorsPolicy, origin: string | undefined): string[] {
  const out = policy.origins === undefined ? [] : ['Vary', 'Origin'];
  if (addAllowOrigin(policy, origin, out)) out.push('Access-Control-Expose-Headers', policy.exposed);
  return out;
}

const VARIES_BY_ORIGIN = /(?:^|,)[\t ]*(?:\*|origin)[\t ]*(?:,|$)/i;

/**
 * Adds CORS headers to an upstream's response. If the upstream sent Access-Control-Allow-Origin itself, that stays, and only
 * Tidegate's own headers are exposed in addition.
 * @param flat names and values in turn
 */
export function addCorsHeaders(flat: string[], policy: CorsPolicy, origin: string | undefined): string[] {
  let isDecided = false;
  let variesByOrigin = policy.origins === undefined;
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const name = flat[i]?.toLowerCase();
    if (name === 'access-control-allow-origin') isDecided = true;
    else if (name === 'vary' && VARIES_BY_ORIGIN.test(flat[i + 1] ?? '')) variesByOrigin = true;
  }
  const out = isDecided ? [...flat] : withoutHeader(flat, 'access-control-allow-credentials');
  // Also if the upstream decides: the other responses of the route depend on the origin, and a cache keeps one rule for a target.
  if (!variesByOrigin) out.push('Vary', 'Origin');
  if (isDecided) out.push('Access-Control-Expose-Headers', OWN_EXPOSED_HEADERS);
  else if (addAllowOrigin(policy, origin, out)) out.push('Access-Control-Expose-Headers', policy.exposed);
  return out;
}

/** Adds the permission for an origin. Returns false if it has none. */
function addAllowOrigin(
  { origins, wildcards, credentials }: CorsPolicy,
  origin: string | undefined,
  out: string[],
): boolean {
  if (origins === undefined) out.push('Access-Control-Allow-Origin', '*');
  else if (
    origin !== undefined &&
    (origins.has(origin) || wildcards.some((wildcard) => matchesWildcard(wildcard, origin)))
  ) {
    out.push('Access-Control-Allow-Origin', origin);
  } else return false;
  if (credentials) out.push('Access-Control-Allow-Credentials', 'true');
  return true;
}

/** The `*` matches one or several labels of a host name. */
function matchesWildcard([before, after]: readonly [string, string], origin: string): boolean {
  if (!origin.startsWith(before) || !origin.endsWith(after)) return false;
  return /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(origin.slice(before.length, -after.length));
}
