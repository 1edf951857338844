import ipaddr from 'ipaddr.js';
import { addMissingBrackets, formatHostPort, parseHostText } from './host.ts';
import type { ParseResult } from './text-codec.ts';
import { parseFailure, textCodec } from './text-codec.ts';

/** Where a server listens. Port 0 is any free port. */
export type Address =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

const EXPECTED = 'host:port, [::]:port or unix:/path';
const PORT_RANGE = 'a port is at most 65535';
const HOST = String.raw`(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)`;
const TCP = new RegExp(`^(${HOST}):(\\d{1,5})$`);

export const ListenAddress = textCodec<Address>({
  expected: EXPECTED,
  forms: [{ type: 'string', pattern: `${TCP.source}|^unix:/.` }],
  parse: parseListenAddress,
  format: formatListenAddress,
  isValue: (value) => typeof value === 'object' && value !== null && 'kind' in value,
});

/** "127.0.0.1:8080", "localhost:8080", "[::]:8080" or "unix:/run/tidegate.sock". The host of a tcp address is without brackets. */
export function parseListenAddress(input: string | number): ParseResult<Address> {
  const port = /^:?(\d{1,9})$/.exec(String(input))?.[1];
  if (Number(port) > 65_535) return parseFailure(PORT_RANGE);
  if (typeof input === 'number') return parseFailure(`expected ${EXPECTED}`, suggestHost(String(input)));
  if (input.startsWith('unix:')) return parseUnixSocketPath(input.slice('unix:'.length));
  const [, host, portOfHost] = TCP.exec(input) ?? [];
  if (host === undefined) {
    return parseFailure(`expected ${EXPECTED}`, suggestHost(input));
  }
  const parsed = parseHostText(host);
  if (!parsed.ok) return parsed;
  if (Number(portOfHost) > 65_535) return parseFailure(PORT_RANGE);
  return { ok: true, value: { kind: 'tcp', host: parsed.value, port: Number(portOfHost) } };
}

/** The address of a flag as a configuration states it. A port alone is one of the loopback interface: "9901" is 127.0.0.1:9901. */
export function completeAddress(text: string): string {
  return /^\d+$/.test(text) ? `127.0.0.1:${text}` : text;
}

export function formatListenAddress(address: Address): string {
  if (address.kind === 'unix') return `unix:${address.path}`;
  return formatHostPort(address.host, address.port);
}

/** True if only this machine can connect. A Unix socket is guarded by the permissions of its directory. */
export function isLoopback(address: Address): boolean {
  if (address.kind === 'unix' || address.host === 'localhost') return true;
  return ipaddr.isValid(address.host) && ipaddr.process(address.host).range() === 'loopback';
}

/** The absolute path of a Unix socket. */
export function parseUnixSocketPath(path: string): ParseResult<Address> {
  if (!path.startsWith('/') || path === '/') return parseFailure('a Unix socket needs an absolute path');
  // sun_path of sockaddr_un, unix(7): 108 bytes with its final NUL.
  if (Buffer.byteLength(path) > 107) return parseFailure('the path of a Unix socket is at most 107 bytes');
  return { ok: true, value: { kind: 'unix', path } };
}

/** The `unix:/path` form of a Unix socket as nginx, Express, Docker or a file URL write it; undefined for anything else. */
export function suggestUnixSocket(text: string): string | undefined {
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
  const socket = suggestUnixSocket(text);
  if (socket !== undefined) return socket;
  const [, host, port] = /^(?:https?|tcp):\/\/([^/]+?):(\d{1,5})\/?$/i.exec(text) ?? [];
  if (host !== undefined) return TCP.test(`${host}:${port}`) ? `${host}:${port}` : undefined;
  const bracketed = addMissingBrackets(text);
  return bracketed !== undefined && TCP.test(bracketed) ? bracketed : undefined;
}
