/** What browsers have to be told before a page of another origin may ask, and read the answer (https://fetch.spec.whatwg.org/#http-cors-protocol). */
import type { Inbound } from '../server/server-request.ts';

/** Who may ask from a browser, of a route whose preflights are answered here. */
export interface CorsPolicy {
  /** Undefined: all. */
  readonly origins: ReadonlySet<string> | undefined;
  /** `https://*.example.com` as what comes before and after the `*`. */
  readonly wildcards: readonly (readonly [string, string])[];
  /** As Access-Control-Allow-Methods has them; undefined: what is asked for. */
  readonly methods: string | undefined;
  /** As Access-Control-Allow-Headers has them; undefined: what is asked for. */
  readonly headers: string | undefined;
  /** As Access-Control-Expose-Headers has them, ours among them. */
  readonly exposed: string;
  readonly credentials: boolean;
  /** Whole seconds. */
  readonly maxAge: number;
}

/** What of ours a page may read, whatever the upstream exposes. */
export const EXPOSED = [
  'Retry-After',
  'RateLimit',
  'Proxy-Status',
  'X-Request-Id',
  'Tidegate-Request-Id',
  'Tidegate-Attempts',
  'Tidegate-Polls',
  'Tidegate-Outcome',
  'Tidegate-Idempotency-Key',
];

const OURS_EXPOSED = EXPOSED.join(', ');

/** The method that a browser asks about before it uses it; undefined where this is no preflight. */
export function preflightMethod({ verb, headers }: Inbound): string | undefined {
  if (verb !== 'OPTIONS' || headers.origin === undefined) return undefined;
  const method = headers['access-control-request-method'];
  return typeof method === 'string' ? method : undefined;
}

/** The headers of our answer to a preflight. Without permission in them, a browser does not go on. */
export function preflightHeaders(policy: CorsPolicy, { headers }: Inbound): string[] {
  // Also where all get the same answer: what is allowed may follow what was asked for.
  const out = ['Vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers'];
  if (!allow(policy, headers.origin, out)) return out;
  const asked = {
    method: headers['access-control-request-method'],
    headers: headers['access-control-request-headers'],
  };
  const methods = policy.methods ?? asked.method;
  const names = policy.headers ?? asked.headers;
  if (methods !== undefined) out.push('Access-Control-Allow-Methods', methods);
  if (names !== undefined && names.length > 0) out.push('Access-Control-Allow-Headers', names);
  out.push('Access-Control-Max-Age', String(policy.maxAge));
  return out;
}

/** What an answer of our own has, so that the page may read it. */
export function corsHeaders(policy: CorsPolicy, origin: string | undefined): string[] {
  const out = policy.origins === undefined ? [] : ['Vary', 'Origin'];
  if (allow(policy, origin, out)) out.push('Access-Control-Expose-Headers', policy.exposed);
  return out;
}

/**
 * The upstream's headers, so that the page may read the answer. Where the upstream has decided that itself, by
 * Access-Control-Allow-Origin, its word stands, and only what we add is exposed beside.
 * @param flat names and values in turn
 */
export function withCors(flat: string[], policy: CorsPolicy, origin: string | undefined): string[] {
  let decided = false;
  let varies = policy.origins === undefined;
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const name = flat[i]?.toLowerCase();
    if (name === 'access-control-allow-origin') decided = true;
    else if (name === 'vary' && /(?:^|,)\s*(?:\*|origin)\s*(?:,|$)/i.test(flat[i + 1] ?? '')) varies = true;
  }
  if (decided) return [...flat, 'Access-Control-Expose-Headers', OURS_EXPOSED];
  const out = flat.filter((_, i) => flat[i - (i % 2)]?.toLowerCase() !== 'access-control-allow-credentials');
  if (!varies) out.push('Vary', 'Origin');
  if (allow(policy, origin, out)) out.push('Access-Control-Expose-Headers', policy.exposed);
  return out;
}

/** Adds the permission of an origin, if it has one. */
function allow({ origins, wildcards, credentials }: CorsPolicy, origin: string | undefined, out: string[]): boolean {
  if (origins === undefined) out.push('Access-Control-Allow-Origin', '*');
  else if (origin !== undefined && (origins.has(origin) || wildcards.some((wildcard) => fits(wildcard, origin)))) {
    out.push('Access-Control-Allow-Origin', origin);
  } else return false;
  if (credentials) out.push('Access-Control-Allow-Credentials', 'true');
  return true;
}

/** The `*` stands for one label of a host, or several. */
function fits([before, after]: readonly [string, string], origin: string): boolean {
  if (!origin.startsWith(before) || !origin.endsWith(after)) return false;
  return /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(origin.slice(before.length, -after.length));
}
