import { isIPv6 } from 'node:net';
import type { Inbound } from '../server/server-request.ts';

/** The target that is about a server as a whole, of OPTIONS alone (RFC 9112 §3.2.4). */
export const ASTERISK = '*';

/**
 * RFC 3986 §3.2.2, without the comma: that is how two Hosts look when a hop before has joined them; and names
 * without encoding: none in use needs it, and routes would not see through it.
 */
const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|[\w.~!$&'()*+;=-]*)(?::\d{0,5})?$/;

/** A name or an address, and a port. In brackets stands an IPv6 address: no zone, which means something on its own machine only. */
export function isHost(text: string): boolean {
  const found = HOST.exec(text);
  return found !== null && (found[1] === undefined || isIPv6(found[1]));
}

/** What is wrong with a target; undefined where nothing is. An absolute form for our own host is replaced by what it means. */
export function findTargetFault(request: Inbound): string | undefined {
  // Over HTTP/1.1 the parser has refused such a target. Nothing of Node's looks at it over HTTP/2.
  const isUnescaped = request.httpVersion === '2.0' && OUTSIDE_ASCII.test(request.target);
  if (isUnescaped) return 'a character in its target that no URI has';
  if (!request.target.startsWith('/')) {
    if (request.target === ASTERISK) return request.verb === 'OPTIONS' ? undefined : 'a target that only OPTIONS has';
    const local = stripOwnOrigin(request);
    if (local === undefined) return 'a target for another host';
    request.target = local;
    if (local === ASTERISK) return undefined;
  }
  const { path } = request;
  if (path.startsWith('//')) return 'a path that starts with two slashes';
  if (path.includes('\\')) return 'a backslash in the path';
  const isEncoded = path.includes('%');
  if (isEncoded && /%5c/i.test(path)) return 'a backslash in the path';
  if (isEncoded && path.includes('%00')) return 'a null byte in the path';
  if ((isEncoded || path.includes('/.')) && DOT_SEGMENT.test(path)) return 'a dot segment in the path';
  if (request.target.includes('#')) return 'a fragment in the target';
  return undefined;
}

/** What is no visible ASCII: RFC 3986 §2 has all of it escaped. */
const OUTSIDE_ASCII = /[^!-~]/;

/** `.` and `..`, however their dots and the slashes around them are encoded. */
const DOT_SEGMENT = /(?:\/|%2f)(?:\.|%2e){1,2}(?=\/|%2f|;|$)/i;

/**
 * RFC 9112 §3.2.2: a proxy must take the absolute form. Ours alone: this is no forward proxy. OPTIONS without a path and a
 * query is about the server as a whole (§3.2.4).
 */
function stripOwnOrigin({ target, verb, headers }: Inbound): string | undefined {
  const [, scheme = '', authority = '', rest = ''] = /^(https?):\/\/([^/?#]+)(.*)$/i.exec(target) ?? [];
  if (authority === '' || authority.startsWith(':') || !isHost(authority)) return undefined;
  headers.host ??= authority; // HTTP/1.0 needs no Host, and the target has one
  if (!isSameAuthority(authority, headers.host, scheme.toLowerCase())) return undefined;
  if (rest === '') return verb === 'OPTIONS' ? ASTERISK : '/';
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Names differ in no case, and the port of the scheme need not be written (RFC 9110 §4.2.3). */
export function isSameAuthority(one: string, other: string, scheme: string): boolean {
  return one === other || normalizeAuthority(one, scheme) === normalizeAuthority(other, scheme);
}

function normalizeAuthority(authority: string, scheme: string): string {
  const [, host = authority, port = ''] = /^(.*?)(?::(\d*))?$/.exec(authority) ?? [];
  const usual = scheme === 'https' ? 443 : 80;
  return `${host.toLowerCase()}:${port === '' ? usual : Number(port)}`;
}
