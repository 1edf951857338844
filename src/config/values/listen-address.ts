import ipaddr from 'ipaddr.js';
import type { Reading } from './text-codec.ts';
import { misread, written } from './text-codec.ts';

/** Where a server listens. Port 0 is any free port. */
export type Address =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

const EXPECTED = 'host:port, [::]:port or unix:/path';
const HOST = String.raw`(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)`;
const TCP = new RegExp(`^(${HOST}):(\\d{1,5})$`);

export const ListenAddress = written<Address>({
  expected: EXPECTED,
  forms: [{ type: 'string', pattern: `${TCP.source}|^unix:/.` }],
  read: readAddress,
  write: writeAddress,
  holds: (value) => typeof value === 'object' && value !== null && 'kind' in value,
});

/** "127.0.0.1:8080", "localhost:8080", "[::]:8080" or "unix:/run/tidegate.sock". The host of a tcp address is without brackets. */
export function readAddress(input: string | number): Reading<Address> {
  if (typeof input === 'number') return misread(`expected ${EXPECTED}`, suggestHost(String(input)));
  if (input.startsWith('unix:')) return readSocket(input.slice('unix:'.length));
  const [, host, port] = TCP.exec(input) ?? [];
  if (host === undefined) {
    return misread(`expected ${EXPECTED}`, suggestHost(input));
  }
  const address = host.replace(/^\[|\]$/g, '');
  if (address !== host && !ipaddr.IPv6.isValid(address)) return misread('not an IPv6 address');
  if (/^[\d.]+$/.test(host) && !ipaddr.IPv4.isValidFourPartDecimal(host)) return misread('not an IPv4 address');
  if (Number(port) > 65_535) return misread('a port is at most 65535');
  return { ok: true, value: { kind: 'tcp', host: address, port: Number(port) } };
}

export function writeAddress(address: Address): string {
  if (address.kind === 'unix') return `unix:${address.path}`;
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}

/** True when only this machine can connect. The permissions of a Unix socket's directory guard it. */
export function isLoopback(address: Address): boolean {
  if (address.kind === 'unix' || address.host === 'localhost') return true;
  return ipaddr.isValid(address.host) && ipaddr.process(address.host).range() === 'loopback';
}

/** The absolute path of a Unix socket. */
export function readSocket(path: string): Reading<Address> {
  if (!path.startsWith('/') || path === '/') return misread('a Unix socket needs an absolute path');
  // sun_path of sockaddr_un, unix(7): 108 bytes with its final NUL.
  if (Buffer.byteLength(path) > 107) return misread('the path of a Unix socket is at most 107 bytes');
  return { ok: true, value: { kind: 'unix', path } };
}

/** A Unix socket as nginx, Express, Docker or a file URL write it; undefined for anything else. */
export function suggestSocket(text: string): string | undefined {
  const [, path] =
    /^(?:https?:\/*)?unix:\/*(\/[^:]+)(?::.*)?$/is.exec(text) ?? /^file:\/\/(\/[^/].*)$/is.exec(text) ?? [];
  if (path !== undefined) return `unix:${path}`;
  const [, coded] = /^https?\+unix:\/\/(%2F[\w.~%-]+)/i.exec(text) ?? [];
  if (coded !== undefined) return `unix:${coded.replaceAll(/%2F/gi, '/')}`;
  const [, relative] = /^unix:([^/:][^:]*)$/i.exec(text) ?? [];
  if (relative !== undefined) return `unix:/${relative}`;
  return /^\/[^/]/.test(text) ? `unix:${text}` : undefined;
}

function suggestHost(text: string): string | undefined {
  if (/^\d{1,5}$/.test(text)) return `127.0.0.1:${text}`;
  if (/^:\d{1,5}$/.test(text)) return `0.0.0.0${text}`;
  const socket = suggestSocket(text);
  if (socket !== undefined) return socket;
  const [, host, port] = /^(?:https?|tcp):\/\/([^/]+?):(\d{1,5})\/?$/i.exec(text) ?? [];
  if (host !== undefined) return TCP.test(`${host}:${port}`) ? `${host}:${port}` : undefined;
  const cut = text.lastIndexOf(':');
  const bracketed = `[${text.slice(0, cut)}]${text.slice(cut)}`;
  return ipaddr.IPv6.isValid(text.slice(0, cut)) && TCP.test(bracketed) ? bracketed : undefined;
}
