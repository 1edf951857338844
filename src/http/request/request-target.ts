import { isIPv6 } from 'node:net';
import type { HttpServerRequest } from '../server/server-request.ts';

/** The target of OPTIONS for a server as a whole (RFC 9112 §3.2.4). */
export const ASTERISK = '*';

/**
 * RFC 3986 §3.2.2 without the comma, because two Hosts that an earlier hop has joined contain one; and without percent-encoding,
 * which no name in use needs and routes would not decode.
 */
const HOST_PATTERN = /^(?:\[([0-9A-Fa-f:.]+)\]|[\w.~!$&'()*+;=-]*)(?::\d{0,5})?$/;

/** A name or an address, with an optional port. An IPv6 address is in brackets and has no zone: zones are local. */
export function isHost(text: string): boolean {
  const found = HOST_PATTERN.exec(text);
  return found !== null && (found[1] === undefined || isIPv6(found[1]));
}

/** Why a target is invalid, to follow `The request has`; undefined if it is valid. Rewrites an absolute form for our own host. */
export function findTargetDefect(request: HttpServerRequest): string | undefined {
  // Over HTTP/1.1 Node's parser has refused such a target; over HTTP/2 Node does not check.
  const isUnescaped = request.httpVersion === '2.0' && OUTSIDE_ASCII.test(request.target);
  if (isUnescaped) return 'a character in its target that is not allowed in a URI';
  if (!request.target.startsWith('/')) {
    const isAsterisk = request.target === ASTERISK;
    if (isAsterisk) return request.verb === 'OPTIONS' ? undefined : 'the target *, which only OPTIONS may have';
    const local = stripOwnOrigin(request);
    if (local === undefined) return 'an absolute target for another host';
    request.target = local;
    if (local === ASTERISK) return undefined;
  }
  const defect = findPathDefect(request.path);
  if (defect !== undefined) return defect;
  return request.target.includes('#') ? 'a fragment in the target' : undefined;
}

/** Why servers may read a path as another one, to follow `The request has`; undefined if they do not. @param path begins with a slash */
export function findPathDefect(path: string): string | undefined {
  if (path.startsWith('//')) return 'a path that starts with two slashes';
  if (path.includes('\\')) return 'a backslash in the path';
  const isEncoded = path.includes('%');
  if (isEncoded && /%5c/i.test(path)) return 'a backslash in the path';
  if (isEncoded && path.includes('%00')) return 'a null byte in the path';
  if ((isEncoded || path.includes('/.')) && DOT_SEGMENT.test(path)) return 'a dot segment in the path';
  return undefined;
}

/** Not visible ASCII: RFC 3986 §2 requires it to be escaped. */
const OUTSIDE_ASCII = /[^!-~]/;

/** `.` and `..`, however their dots and the slashes around them are encoded. */
const DOT_SEGMENT = /(?:\/|%2f)(?:\.|%2e){1,2}(?=\/|%2f|;|$)/i;

/**
 * RFC 9112 §3.2.2: a server must accept the absolute form. Only for our own host, because this is a reverse proxy. OPTIONS
 * without path and query is about the server as a whole (§3.2.4).
 */
function stripOwnOrigin({ target, verb, headers }: HttpServerRequest): string | undefined {
  const [, scheme = '', authority = '', pathAndQuery = ''] = /^(https?):\/\/([^/?#]+)(.*)$/i.exec(target) ?? [];
  if (authority === '' || authority.startsWith(':') || !isHost(authority)) return undefined;
  headers.host ??= authority; // HTTP/1.0 needs no Host, and the target names one
  if (!isSameAuthority(authority, headers.host, scheme.toLowerCase())) return undefined;
  if (pathAndQuery === '') return verb === 'OPTIONS' ? ASTERISK : '/';
  return pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}`;
}

/** Host names are case-insensitive, and the default port may be omitted (RFC 9110 §4.2.3). */
export function isSameAuthority(one: string, other: string, scheme: string): boolean {
  return one === other || normalizeAuthority(one, scheme) === normalizeAuthority(other, scheme);
}

function normalizeAuthority(authority: string, scheme: string): string {
  const [, host = authority, port = ''] = /^(.*?)(?::(\d*))?$/.exec(authority) ?? [];
  const usual = scheme === 'https' ? 443 : 80;
  return `${host.toLowerCase()}:${port === '' ? usual : Number(port)}`;
}
