import ipaddr from 'ipaddr.js';
import { parseListField } from '../../core/http-semantics/list-field.ts';
import type { HttpServerRequest } from '../server/server-request.ts';

/** The address of a peer on a Unix socket (RFC 7239 §6.2). */
export const UNKNOWN_ADDRESS = 'unknown';

/**
 * The client's address: walks X-Forwarded-For from the right as long as the hop that added an entry is trusted. Entries that the
 * client wrote itself are ignored.
 */
export function clientAddress(
  request: HttpServerRequest,
  peer: string,
  isTrustedProxy: (address: string) => boolean,
): string {
  if (!isTrustedProxy(peer)) return peer;
  const header = request.headers['x-forwarded-for'];
  if (header === undefined) return peer;
  const hops = parseListField(String(header));
  let address = peer;
  for (let hop = hops.pop(); hop !== undefined && isTrustedProxy(address); hop = hops.pop()) {
    const hopAddress = stripPort(hop);
    address = hopAddress;
    if (hopAddress === UNKNOWN_ADDRESS) break; // not the Unix socket of this process
  }
  return address;
}

/** Some proxies add a port, and brackets for IPv6. */
function stripPort(text: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(text);
  if (bracketed !== null) return bracketed[1] ?? '';
  return /^[\d.]+:\d+$/.test(text) ? text.slice(0, text.indexOf(':')) : text;
}

/** The peer's address, IPv4-mapped IPv6 as IPv4; `unknown` on a Unix socket. */
export function socketAddress(remoteAddress: string | undefined): string {
  if (remoteAddress === undefined || remoteAddress === '') return UNKNOWN_ADDRESS;
  return remoteAddress.startsWith('::ffff:') ? ipaddr.process(remoteAddress).toString() : remoteAddress;
}
