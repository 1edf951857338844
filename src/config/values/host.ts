/** Hosts in addresses and URLs: names, IPv4, and IPv6 in brackets. */
import ipaddr from 'ipaddr.js';
import type { ParseResult } from './parse-result.ts';
import { parseFailure } from './parse-result.ts';

/**
 * A host as Node expects it: IPv6 without brackets. Rejects only what looks like an IP address and is not one.
 * @param written a name or an IPv4 address, or an IPv6 address in brackets
 */
export function parseHostText(written: string): ParseResult<string> {
  const host = written.replace(/^\[|\]$/g, '');
  if (host !== written && !ipaddr.IPv6.isValid(host)) return parseFailure('not an IPv6 address');
  if (/^[\d.]+$/.test(host) && !ipaddr.IPv4.isValidFourPartDecimal(host)) return parseFailure('not an IPv4 address');
  return { ok: true, value: host };
}

/** `host:port`, with brackets around IPv6. */
export function formatHostPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** `::1:8080` as `[::1]:8080`; undefined if what precedes the last colon is not an IPv6 address. */
export function addMissingBrackets(text: string): string | undefined {
  const colon = text.lastIndexOf(':');
  return ipaddr.IPv6.isValid(text.slice(0, colon)) ? `[${text.slice(0, colon)}]${text.slice(colon)}` : undefined;
}
