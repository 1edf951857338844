import { formatHostPort, parseHostText } from './host.ts';
import { suggestUnixSocket } from './listen-address.ts';
import { suggest } from './suggest.ts';
import { completeHost, splitScheme, cleanUrlText } from './url-typos.ts';
import type { ParseResult } from './text-codec.ts';
import { parseFailure, textCodec } from './text-codec.ts';

export interface RedisNode {
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
}

interface RedisAccess {
  /** TLS to Redis and to Sentinels. */
  readonly tls: boolean;
  /** For Redis, not for Sentinels. Undefined: none in the URL. */
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** Where Redis is. */
export type RedisAddress =
  | (RedisAccess & { readonly kind: 'single'; readonly nodes: readonly [RedisNode]; readonly db: number })
  /** `nodes` are Sentinels, one or more; `name` is that of the master they watch. */
  | (RedisAccess & {
      readonly kind: 'sentinel';
      readonly nodes: readonly RedisNode[];
      readonly name: string;
      readonly db: number;
    })
  /** `nodes` are one or more nodes of the cluster; a cluster has only database 0. */
  | (RedisAccess & { readonly kind: 'cluster'; readonly nodes: readonly RedisNode[]; readonly db: 0 });

type RedisTopology = RedisAddress['kind'];

const SCHEME_SUFFIXES: Readonly<Record<RedisTopology, string>> = {
  single: '',
  sentinel: '+sentinel',
  cluster: '+cluster',
};
const DEFAULT_PORTS: Readonly<Record<RedisTopology, number>> = { single: 6379, sentinel: 26_379, cluster: 6379 };

/** The topology and the transport of each scheme. */
const SCHEMES: ReadonlyMap<string, { readonly kind: RedisTopology; readonly tls: boolean }> = new Map(
  (['single', 'sentinel', 'cluster'] as const).flatMap((kind) =>
    ['redis', 'rediss', 'valkey', 'valkeys'].map(
      (name) => [`${name}${SCHEME_SUFFIXES[kind]}`, { kind, tls: name.endsWith('ss') || name === 'valkeys' }] as const,
    ),
  ),
);

const EXPECTED =
  'a URL such as redis://host:6379, rediss:// for TLS, redis+sentinel://host:26379/mymaster or redis+cluster://host:6379';
const URL_PATTERN = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(?:([^/?#]*)@)?([^@/?#]*)((?:\/[^@?#]*)?)$/;
const NODE_PATTERN = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?::(\d{1,5}))?$/;
/** "The valid charset is A-z 0-9 and the three characters .-_" (sentinel.conf of Redis). */
const MASTER_NAME_PATTERN = /^[A-Za-z0-9._-]+$/;
const DATABASE_PATTERN = /^\d{1,5}$/;

export const RedisUrl = textCodec<RedisAddress>({
  expected: EXPECTED,
  forms: [{ type: 'string', pattern: '^([Rr][Ee][Dd][Ii][Ss]|[Vv][Aa][Ll][Kk][Ee][Yy])[Ss]?(\\+[A-Za-z]+)?://.' }],
  parse: parseRedisUrl,
  format: formatRedisUrl,
});

/** "redis://user:password@host:6379/0" and its variants. Special characters in a user name or a password are URL-encoded. */
export function parseRedisUrl(input: string | number): ParseResult<RedisAddress> {
  if (typeof input === 'number') return parseFailure(`expected ${EXPECTED}`);
  const [, scheme, credentials, authority, path] = URL_PATTERN.exec(input) ?? [];
  const known = SCHEMES.get(scheme?.toLowerCase() ?? '');
  if (scheme === undefined || authority === undefined || path === undefined || known === undefined) {
    return parseFailure(describeMalformedUrl(input), suggestRedisUrl(input));
  }
  const access = parseCredentials(credentials);
  if (access === undefined) return parseFailure(NEEDS_ENCODING);
  const { kind, tls } = known;
  const nodes: RedisNode[] = [];
  for (const text of authority.split(',')) {
    const node = parseNode(text, DEFAULT_PORTS[kind]);
    if (!node.ok) return parseFailure(node.message, suggestRedisUrl(input));
    nodes.push(node.value);
  }
  return buildAddress({ tls, ...access }, kind, nodes, path.split('/').slice(1));
}

/** The inverse of `parseRedisUrl`, with every port. */
export function formatRedisUrl(address: RedisAddress): string {
  const { kind, tls, username = '', password, nodes, db } = address;
  const secret = password === undefined ? '' : `:${encodeURIComponent(password)}`;
  const credentials = username === '' && secret === '' ? '' : `${encodeURIComponent(username)}${secret}@`;
  const name = kind === 'sentinel' ? `/${address.name}` : '';
  const hosts = nodes.map(({ host, port }) => formatHostPort(host, port));
  return `${redisScheme(kind, tls)}://${credentials}${hosts.join(',')}${name}${db === 0 ? '' : `/${db}`}`;
}

export function redisScheme(kind: RedisTopology, tls: boolean): string {
  return `redis${tls ? 's' : ''}${SCHEME_SUFFIXES[kind]}`;
}

/** The URL with its password masked, unless that is a reference: `${…}`. */
export function maskPassword(url: string): string {
  const [, scheme = '', user = '', password = '', rest = ''] =
    /^([^:]*:\/\/)((?:\$\{[^}$]*\}|[^:@])*):(.*)@([^@]*)$/s.exec(url) ?? [];
  return password.replace(/\$\{[^}$]*\}/g, '') === '' ? url : `${scheme}${user}:***@${rest}`;
}

const NEEDS_ENCODING =
  'a "/", "?", "#", "@", ":" or "%" in a user name or password must be URL-encoded; or set state.password';

/** A `/`, `?` or `#` before an "@" is part of a user name or a password that is not URL-encoded. */
function describeMalformedUrl(input: string): string {
  if (isSocket(input)) return `Redis over a Unix socket is not supported: expected ${EXPECTED}`;
  const [, scheme = ''] = /^([^:]*):\/\/[^@/?#]*[/?#].*@/s.exec(input) ?? [];
  return SCHEMES.has(scheme.toLowerCase()) ? NEEDS_ENCODING : `expected ${EXPECTED}`;
}

function isSocket(text: string): boolean {
  return suggestUnixSocket(text) !== undefined || /^\w+\+unix:/i.test(text);
}

function parseCredentials(text: string | undefined): Pick<RedisAccess, 'username' | 'password'> | undefined {
  if (text === undefined) return { username: undefined, password: undefined };
  const colon = text.indexOf(':');
  const [user, secret] = colon < 0 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)];
  try {
    const [username, password] = [decodeURIComponent(user), decodeURIComponent(secret)];
    return { username: username || undefined, password: password || undefined };
  } catch {
    return undefined;
  }
}

function parseNode(text: string, defaultPort: number): ParseResult<RedisNode> {
  const [, name, port = String(defaultPort)] = NODE_PATTERN.exec(text) ?? [];
  if (name === undefined) return parseFailure('expected host or host:port, several of them separated by ","');
  const host = parseHostText(name);
  if (!host.ok) return host;
  if (Number(port) < 1 || Number(port) > 65_535) return parseFailure('a port is from 1 to 65535');
  return { ok: true, value: { host: host.value, port: Number(port) } };
}

function buildAddress(
  access: RedisAccess,
  kind: RedisTopology,
  nodes: readonly RedisNode[],
  path: readonly string[],
): ParseResult<RedisAddress> {
  const steps = path.at(-1) === '' ? path.slice(0, -1) : path;
  const [name, ...databases] = kind === 'sentinel' ? steps : ['', ...steps];
  if (name === undefined || (kind === 'sentinel' && !MASTER_NAME_PATTERN.test(name))) {
    return parseFailure('expected the name of the master after the hosts, such as /mymaster');
  }
  const [database = '0', ...more] = databases;
  if (more.length > 0 || !DATABASE_PATTERN.test(database)) return parseFailure('a database is a number: /0, /1');
  const db = Number(database);
  if (kind === 'sentinel') return { ok: true, value: { kind, ...access, nodes, name, db } };
  if (kind === 'cluster') {
    if (db !== 0) return parseFailure('a cluster has only database 0');
    return { ok: true, value: { kind, ...access, nodes, db: 0 } };
  }
  const [node, ...others] = nodes;
  if (node === undefined || others.length > 0) {
    return parseFailure('expected one host; several need redis+sentinel:// or redis+cluster://');
  }
  return { ok: true, value: { kind, ...access, nodes: [node], db } };
}

/** A likely correction. Never repeats text that may contain a password. */
function suggestRedisUrl(text: string): string | undefined {
  if (text.includes('@') || isSocket(text)) return undefined;
  const plain = cleanUrlText(text);
  const { scheme = '', rest = '', isPort = true, hasColon = false } = splitScheme(plain) ?? {};
  const near = SCHEMES.has(scheme.toLowerCase())
    ? scheme.toLowerCase()
    : suggest(scheme.replace('-', '+'), SCHEMES.keys());
  // With an unknown scheme, the host follows the slashes; `redis:6379` is a host named redis.
  const isScheme = !isPort && (near !== undefined || (hasColon && plain.startsWith(`${scheme}:/`)));
  const [, named = '', more = ''] = /^\/*([^/?#]*)([^?#]*)/.exec(isScheme ? rest : plain) ?? [];
  const url = `${(isScheme ? near : undefined) ?? 'redis'}://${completeHost(named) ?? named}${more}`;
  return url !== text && parseRedisUrl(url).ok ? url : undefined;
}
