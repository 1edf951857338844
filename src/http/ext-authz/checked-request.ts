import type { HttpServerRequest } from '../server/server-request.ts';
import { normalizeTarget } from './check-router.ts';
import type { IngressDialect } from './ingress-dialect.ts';

/** The request that a check is about. */
export interface CheckedRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Undefined if the ingress did not send it. */
  readonly host: string | undefined;
}

/**
 * Reads the checked request from the headers that an ingress of this dialect always overwrites, or from the check itself; other
 * headers are ignored. Below `path` the check itself is the request, in any dialect. Returns a sentence if the request is
 * missing, invalid or ambiguous.
 */
export function findCheckedRequest(
  request: HttpServerRequest,
  dialect: IngressDialect,
  path: string,
): CheckedRequest | string {
  const { headers, verb, target } = request;
  if (request.path !== path) return { method: verb, target: target.slice(path.length), host: headers.host };
  const header = (name: string): string | undefined => {
    const value = headers[name];
    return typeof value === 'string' ? value : value?.join(', ');
  };
  const url = header('x-original-url');
  const uri = header('x-original-uri');
  switch (dialect) {
    case 'http': {
      const forwarded = header('x-forwarded-uri');
      if (forwarded !== undefined) {
        return parseCheckedRequest(
          forwarded,
          header('x-forwarded-method') ?? verb,
          header('x-forwarded-host') ?? headers.host,
        );
      }
      if (url !== undefined || uri !== undefined) return USE_NGINX_DIALECT;
      return { method: verb, target: '/', host: headers.host };
    }
    case 'nginx':
    case 'x-accel': {
      // The ingress sets one of them; the client sent the other.
      if (url !== undefined && uri !== undefined) return BOTH_ORIGINAL_HEADERS;
      const original = uri ?? url;
      if (original === undefined) return NO_ORIGINAL_URI;
      return parseCheckedRequest(original, header('x-original-method') ?? verb, headers.host);
    }
    case 'envoy':
      return { method: verb, target: '/', host: headers.host };
  }
}

const USE_NGINX_DIALECT = 'X-Forwarded-Uri is missing. X-Original-URI and X-Original-URL need ?dialect=nginx.';
const BOTH_ORIGINAL_HEADERS =
  'X-Original-URI and X-Original-URL are both present: one of them is from the client. Let the ingress set one and remove the other.';
const NO_ORIGINAL_URI = 'X-Original-URI is missing: set it to the request URI in the location of auth_request.';

/** @param host used if the URI has none */
function parseCheckedRequest(uri: string, method: string, host: string | undefined): CheckedRequest | string {
  const [, authority, local] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(uri) ?? [undefined, undefined, uri];
  const target = local === '' ? '/' : local;
  if (!target?.startsWith('/')) return 'The URI of the checked request is invalid: it must start with / or http.';
  if (!METHOD_TOKEN.test(method)) return 'The method of the checked request is invalid.';
  return { method, target, host: authority ?? host };
}

/** A token (RFC 9110 §5.6.2) of at most 32 characters. */
const METHOD_TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/;

/** Turns the check into the checked request, for routes, limits and logs. */
export function assumeRequest(request: HttpServerRequest, { method, target, host }: CheckedRequest): void {
  request.verb = method;
  request.target = normalizeTarget(target);
  if (host !== undefined) request.headers.host = host;
}
