import ipaddr from 'ipaddr.js';
import { listElements } from '../../core/http-semantics/list-field.ts';
import type { Inbound } from '../server/server-request.ts';

/** Whoever connects to our Unix socket has no address (RFC 7239 §6.2). */
export const UNKNOWN = 'unknown';

/**
 * Whose request this is: walks X-Forwarded-For from the right as long as who added an entry is trusted. What a client
 * writes there itself is never believed.
 */
export function clientAddress(request: Inbound, peer: string, trusts: (address: string) => boolean): string {
  if (!trusts(peer)) return peer;
  const header = request.headers['x-forwarded-for'];
  if (header === undefined) return peer;
  const hops = listElements(String(header));
  let address = peer;
  for (let hop = hops.pop(); hop !== undefined && trusts(address); hop = hops.pop()) {
    const named = bareAddress(hop);
    address = named;
    if (named === UNKNOWN) break; // whoever that was, it is not who connected to us
  }
  return address;
}

/** Some proxies add a port, and brackets for IPv6. */
function bareAddress(text: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(text);
  if (bracketed !== null) return bracketed[1] ?? '';
  return /^[\d.]+:\d+$/.test(text) ? text.slice(0, text.indexOf(':')) : text;
}

/** IPv4 as such, however the socket tells it; `unknown` on a Unix socket. */
export function addressOf(remoteAddress: string | undefined): string {
  if (remoteAddress === undefined || remoteAddress === '') return UNKNOWN;
  return remoteAddress.startsWith('::ffff:') ? ipaddr.process(remoteAddress).toString() : remoteAddress;
}
