import type { HttpServerRequest } from '../server/server-request.ts';

/** The largest value forwarded (RFC 9110 §7.6.2 allows a proxy to bound it). */
const MAX_VALUE = Number.MAX_SAFE_INTEGER;

/**
 * How many more times an OPTIONS or TRACE may be forwarded (RFC 9110 §7.6.2): the least of several lines, so that a loop ends.
 * Undefined for other methods, and if the field is missing or a line is not a number: then it is forwarded unchanged.
 */
export function readMaxForwards({
  verb,
  rawHeaders,
}: Pick<HttpServerRequest, 'verb' | 'rawHeaders'>): number | undefined {
  if (verb !== 'OPTIONS' && verb !== 'TRACE') return undefined;
  let least: number | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== 'max-forwards') continue;
    const value = rawHeaders[i + 1] ?? '';
    if (!/^[0-9]+$/.test(value)) return undefined;
    least = Math.min(least ?? MAX_VALUE, Number(value));
  }
  return least;
}

/** The value to forward; undefined: the field is forwarded unchanged. */
export function decrementMaxForwards(request: Pick<HttpServerRequest, 'verb' | 'rawHeaders'>): number | undefined {
  const received = readMaxForwards(request);
  return received === undefined ? undefined : Math.max(0, received - 1);
}

/** The response of the final recipient of a request. */
export interface FinalRecipientResponse {
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: string;
}

/**
 * The response to a request that may not be forwarded: empty for OPTIONS, the request itself for TRACE (RFC 9110 §9.3.8).
 * @param identities headers that identify clients, in lower case; left out, like all that may be secret
 */
export function finalRecipientResponse(
  request: HttpServerRequest,
  identities: ReadonlySet<string>,
): FinalRecipientResponse {
  if (request.verb === 'OPTIONS') return { headers: [], body: '' };
  const { verb, target, httpVersion, rawHeaders } = request;
  const lines = [`${verb} ${target} HTTP/${httpVersion}`];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (SECRET_HEADER.test(name) || identities.has(name.toLowerCase())) continue;
    lines.push(`${name}: ${rawHeaders[i + 1] ?? ''}`);
  }
  return { headers: ['Content-Type', 'message/http'], body: `${lines.join('\r\n')}\r\n\r\n` };
}

/** A script that may not read a cookie must not read it from a TRACE response. */
const SECRET_HEADER = /auth|cookie|credential|key|passw|secret|session|signature|token/i;
