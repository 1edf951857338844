/** Whether a request is valid, before anything else is known about it. */
import type { Problem } from '../response/problem.ts';
import { requestProblem } from '../response/problem-details.ts';
import { Http1ServerRequest } from '../server/http1-server-request.ts';
import { MALFORMED_REQUEST } from '../server/parse-error-problem.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import { KNOWN_METHODS } from '../server/server-request.ts';
import { findTargetDefect, isHost } from './request-target.ts';

export interface InvalidRequest {
  readonly problem: Problem;
  /** It is uncertain where the request ends, so nothing that follows it on its connection can be trusted. */
  readonly isFramingInDoubt: boolean;
}

/** Why a request cannot be forwarded; undefined if it can. Rewrites an absolute-form target for our own host. */
export function findInvalidRequest(request: HttpServerRequest): InvalidRequest | undefined {
  if (isOtherProtocol(request)) return { problem: MALFORMED_REQUEST, isFramingInDoubt: true };
  if (!isSupportedVersion(request)) return { problem: UNSUPPORTED_VERSION, isFramingInDoubt: true };
  if (request.rawHeaders.length > 2 * MAX_HEADERS) return { problem: TOO_MANY_HEADERS, isFramingInDoubt: false };
  const length = Number(request.headers['content-length'] ?? 0);
  if (length > Number.MAX_SAFE_INTEGER) return { problem: BODY_TOO_LARGE, isFramingInDoubt: false };
  const framingDefect = findHostDefect(request) ?? findFramingDefect(request);
  const defect = framingDefect ?? findTargetDefect(request);
  if (defect === undefined) return undefined;
  const problem = requestProblem(400, 'Bad request', `The request has ${defect}.`, 'bad_request');
  return { problem, isFramingInDoubt: framingDefect !== undefined };
}

/** llhttp accepts 0.9 and 2.0 in a request line; real HTTP/2 does not use llhttp. */
function isSupportedVersion(request: HttpServerRequest): boolean {
  const { httpVersion } = request;
  return httpVersion === '1.1' || httpVersion === '1.0' || !(request instanceof Http1ServerRequest);
}

/**
 * llhttp parses RTSP/1.0 and ICE/1.0 too, without reporting it. RTSP has methods of its own; ICE has only SOURCE, which
 * HTTP/1.0 does not have. A GET, POST or OPTIONS of RTSP looks like one of HTTP, and is handled as one.
 */
function isOtherProtocol(request: HttpServerRequest): boolean {
  if (!(request instanceof Http1ServerRequest)) return false;
  return !KNOWN_METHODS.has(request.verb) || (request.verb === 'SOURCE' && request.httpVersion !== '1.1');
}

export const UNSUPPORTED_VERSION = requestProblem(
  505,
  'Version not supported',
  'Use HTTP/1.1 or HTTP/1.0, or HTTP/2 negotiated by ALPN.',
  'http_version',
);

/** More than twice the default of other servers (Envoy and Apache: 100). */
const MAX_HEADERS = 256;
const TOO_MANY_HEADERS = requestProblem(
  431,
  'Headers too large',
  `The request has more than ${MAX_HEADERS} headers.`,
  'headers_too_large',
);
/** A larger Content-Length is not exact as a number: undici 8 would send another length than the client's. */
const BODY_TOO_LARGE = requestProblem(
  413,
  'Content too large',
  'Content-Length is not a possible length of a body.',
  'body_too_large',
);

/** The first of these headers that occurs more than once; undefined if none does. @param names in lower case */
export function findRepeatedHeader({ rawHeaders }: HttpServerRequest, names: ReadonlySet<string>): string | undefined {
  for (const name of names) if (countHeader(rawHeaders, name) > 1) return name;
  return undefined;
}

function countHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const each = rawHeaders[i] ?? '';
    if (each.length === name.length && each.toLowerCase() === name) count += 1;
  }
  return count;
}

function findHostDefect({ rawHeaders, headers, httpVersion }: HttpServerRequest): string | undefined {
  const hosts = countHeader(rawHeaders, 'host');
  if (hosts > 1) return 'more than one Host';
  if (hosts === 0 && httpVersion !== '1.0') return 'no Host';
  return isHost(headers.host ?? '') ? undefined : 'an invalid Host';
}

function findFramingDefect({ headers, httpVersion }: HttpServerRequest): string | undefined {
  // Servers that read names as CGI does treat these as the real headers.
  if (headers['transfer_encoding'] !== undefined || headers['content_length'] !== undefined) {
    return 'an underscore instead of a hyphen in Content-Length or Transfer-Encoding';
  }
  // llhttp refuses these already; request smuggling is worth a second check.
  if (headers['content-length'] !== undefined && headers['transfer-encoding'] !== undefined) {
    return 'Content-Length together with Transfer-Encoding';
  }
  // RFC 9112 §6.1: HTTP/1.0 has no chunked coding, and an earlier hop may end the body elsewhere.
  if (headers['transfer-encoding'] !== undefined && httpVersion === '1.0') return 'a chunked body in HTTP/1.0';
  // Only chunked is decoded here: a body in another coding would be forwarded without its label (RFC 9112 §6.1).
  const coding = headers['transfer-encoding']?.toLowerCase() ?? 'chunked';
  return coding === 'chunked' ? undefined : 'a transfer coding other than chunked';
}
