import type { Inbound } from '../server/server-request.ts';
import { normalizeTarget } from './check-router.ts';
import type { Dialect } from './ingress-dialect.ts';

/** The request that is asked about. */
export interface Subject {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Undefined where nobody said. */
  readonly host: string | undefined;
}

/**
 * Finds it in the headers that the ingress of this dialect writes over whatever a client wrote, or in the request itself;
 * no other header is believed. What stands below `path` is the request itself, in any dialect. Returns a sentence where
 * what is told is none, or is told twice.
 */
export function findSubject(request: Inbound, dialect: Dialect, path: string): Subject | string {
  const { headers, verb, target } = request;
  if (request.path !== path) return { method: verb, target: target.slice(path.length), host: headers.host };
  const told = (name: string): string | undefined => {
    const value = headers[name];
    return typeof value === 'string' ? value : value?.join(', ');
  };
  const url = told('x-original-url');
  const uri = told('x-original-uri');
  switch (dialect) {
    case 'http': {
      const forwarded = told('x-forwarded-uri');
      if (forwarded !== undefined) {
        return readSubject(forwarded, told('x-forwarded-method') ?? verb, told('x-forwarded-host') ?? headers.host);
      }
      if (url !== undefined || uri !== undefined) return ASK_AS_NGINX;
      return { method: verb, target: '/', host: headers.host };
    }
    case 'nginx': {
      // The one of which its ingress knows nothing is the client's.
      if (url !== undefined && uri !== undefined) return TOLD_TWICE;
      const original = uri ?? url;
      if (original === undefined) return NOTHING_ORIGINAL;
      return readSubject(original, told('x-original-method') ?? verb, headers.host);
    }
    case 'envoy':
      return { method: verb, target: '/', host: headers.host };
  }
}

const ASK_AS_NGINX = 'X-Forwarded-Uri is missing; X-Original-URI and X-Original-URL are of ?dialect=nginx.';
const TOLD_TWICE = 'X-Original-URI and X-Original-URL: one of them is a client’s.';
const NOTHING_ORIGINAL = 'X-Original-URI is missing: of auth_request nobody else says what is asked about.';

/** @param host where the URI has none of its own */
function readSubject(uri: string, method: string, host: string | undefined): Subject | string {
  const [, authority, local] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(uri) ?? [undefined, undefined, uri];
  const target = local === '' ? '/' : local;
  if (!target?.startsWith('/')) return 'The URI that is asked about is none: it starts with / or with http.';
  if (!METHOD.test(method)) return 'The method that is asked about is none.';
  return { method, target, host: authority ?? host };
}

/** A token (RFC 9110 §5.6.2), and not a novel. */
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/;

/** From here on the request is the one that is asked about: routes, limits and logs see no other. */
export function assume(request: Inbound, { method, target, host }: Subject): void {
  request.verb = method;
  request.target = normalizeTarget(target);
  if (host !== undefined) request.headers.host = host;
}
