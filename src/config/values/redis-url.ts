import ipaddr from 'ipaddr.js';
import { suggestSocket } from './listen-address.ts';
import { suggest } from './suggest.ts';
import { completeHost, partScheme, tidyUrl } from './url-typos.ts';
import type { Reading } from './text-codec.ts';
import { misread, written } from './text-codec.ts';

export interface RedisNode {
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
}

interface Access {
  /** Whether Redis is spoken to by TLS; to Sentinels too. */
  readonly tls: boolean;
  /** Of Redis, not of Sentinels. Undefined: none in the URL. */
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** Where Redis is. */
export type RedisAddress =
  | (Access & { readonly kind: 'single'; readonly nodes: readonly [RedisNode]; readonly db: number })
  /** `nodes` are Sentinels, one or more; `name` is that of the master they watch. */
  | (Access & {
      readonly kind: 'sentinel';
      readonly nodes: readonly RedisNode[];
      readonly name: string;
      readonly db: number;
    })
  /** `nodes` are some of the cluster's, one or more; a cluster has the database 0 alone. */
  | (Access & { readonly kind: 'cluster'; readonly nodes: readonly RedisNode[]; readonly db: 0 });

type Kind = RedisAddress['kind'];

const KINDS: Readonly<Record<Kind, string>> = { single: '', sentinel: '+sentinel', cluster: '+cluster' };
const PORTS: Readonly<Record<Kind, number>> = { single: 6379, sentinel: 26_379, cluster: 6379 };

/** What each scheme means. */
const SCHEMES: ReadonlyMap<string, { readonly kind: Kind; readonly tls: boolean }> = new Map(
  (['single', 'sentinel', 'cluster'] as const).flatMap((kind) =>
    ['redis', 'rediss', 'valkey', 'valkeys'].map(
      (name) => [`${name}${KINDS[kind]}`, { kind, tls: name.endsWith('ss') || name === 'valkeys' }] as const,
    ),
  ),
);

const EXPECTED =
  'a URL such as redis://host:6379, rediss:// for TLS, redis+sentinel://host:26379/mymaster or redis+cluster://host:6379';
const FORM = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(?:([^/?#]*)@)?([^@/?#]*)((?:\/[^@?#]*)?)$/;
const NODE = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?::(\d{1,5}))?$/;
/** "The valid charset is A-z 0-9 and the three characters .-_" (sentinel.conf of Redis). */
const MASTER = /^[A-Za-z0-9._-]+$/;
const DATABASE = /^\d{1,5}$/;

export const RedisUrl = written<RedisAddress>({
  expected: EXPECTED,
  forms: [{ type: 'string', pattern: '^([Rr][Ee][Dd][Ii][Ss]|[Vv][Aa][Ll][Kk][Ee][Yy])[Ss]?(\\+[A-Za-z]+)?://.' }],
  read: readRedisUrl,
  write: writeRedisUrl,
});

/** "redis://user:password@host:6379/0" and its kin. What is not plain in a user or a password is URL-encoded. */
export function readRedisUrl(input: string | number): Reading<RedisAddress> {
  if (typeof input === 'number') return misread(`expected ${EXPECTED}`);
  const [, scheme, credentials, authority, path] = FORM.exec(input) ?? [];
  const known = SCHEMES.get(scheme?.toLowerCase() ?? '');
  if (scheme === undefined || authority === undefined || path === undefined || known === undefined) {
    return misread(describeForm(input), suggestUrl(input));
  }
  const access = readCredentials(credentials);
  if (access === undefined) return misread(ENCODED);
  const { kind, tls } = known;
  const nodes: RedisNode[] = [];
  for (const text of authority.split(',')) {
    const node = readNode(text, PORTS[kind]);
    if (!node.ok) return misread(node.message, suggestUrl(input));
    nodes.push(node.value);
  }
  return locate({ tls, ...access }, kind, nodes, path.split('/').slice(1));
}

/** The inverse of `readRedisUrl`, with every port. */
export function writeRedisUrl(address: RedisAddress): string {
  const { kind, tls, username = '', password, nodes, db } = address;
  const secret = password === undefined ? '' : `:${encodeURIComponent(password)}`;
  const credentials = username === '' && secret === '' ? '' : `${encodeURIComponent(username)}${secret}@`;
  const name = kind === 'sentinel' ? `/${address.name}` : '';
  const hosts = nodes.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`);
  return `${schemeOf(kind, tls)}://${credentials}${hosts.join(',')}${name}${db === 0 ? '' : `/${db}`}`;
}

export function schemeOf(kind: Kind, tls: boolean): string {
  return `redis${tls ? 's' : ''}${KINDS[kind]}`;
}

/** The URL without its password, unless that is a reference: `${…}`. */
export function maskPassword(url: string): string {
  const [, scheme = '', user = '', password = '', rest = ''] =
    /^([^:]*:\/\/)((?:\$\{[^}]*\}|[^:@])*):(.*)@([^@]*)$/s.exec(url) ?? [];
  return password.replace(/\$\{[^}]*\}/g, '') === '' ? url : `${scheme}${user}:***@${rest}`;
}

const ENCODED = 'a "/", "?", "#", "@", ":" or "%" in a user or password has to be URL-encoded; or use the key password';

/** Nothing but a user or a password stands before an "@". */
function describeForm(input: string): string {
  if (isSocket(input)) return `Redis over a Unix socket is not supported: expected ${EXPECTED}`;
  const [, scheme = ''] = /^([^:]*):\/\/[^@]*[/?#].*@/.exec(input) ?? [];
  return SCHEMES.has(scheme.toLowerCase()) ? ENCODED : `expected ${EXPECTED}`;
}

function isSocket(text: string): boolean {
  return suggestSocket(text) !== undefined || /^\w+\+unix:/i.test(text);
}

function readCredentials(text: string | undefined): Pick<Access, 'username' | 'password'> | undefined {
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

function readNode(text: string, usual: number): Reading<RedisNode> {
  const [, name, port = String(usual)] = NODE.exec(text) ?? [];
  if (name === undefined) return misread('expected a host, or host:port, and "," between several of them');
  const host = name.replace(/^\[|\]$/g, '');
  if (host !== name && !ipaddr.IPv6.isValid(host)) return misread('not an IPv6 address');
  if (/^[\d.]+$/.test(host) && !ipaddr.IPv4.isValidFourPartDecimal(host)) return misread('not an IPv4 address');
  if (Number(port) < 1 || Number(port) > 65_535) return misread('a port is from 1 to 65535');
  return { ok: true, value: { host, port: Number(port) } };
}

function locate(
  access: Access,
  kind: Kind,
  nodes: readonly RedisNode[],
  path: readonly string[],
): Reading<RedisAddress> {
  const steps = path.at(-1) === '' ? path.slice(0, -1) : path;
  const [name, ...databases] = kind === 'sentinel' ? steps : ['', ...steps];
  if (name === undefined || (kind === 'sentinel' && !MASTER.test(name))) {
    return misread('the name of the master is wanted after the hosts, such as /mymaster');
  }
  const [database = '0', ...more] = databases;
  if (more.length > 0 || !DATABASE.test(database)) return misread('a database is a number: /0, /1');
  const db = Number(database);
  if (kind === 'sentinel') return { ok: true, value: { kind, ...access, nodes, name, db } };
  if (kind === 'cluster') {
    if (db !== 0) return misread('a cluster has the database 0 alone');
    return { ok: true, value: { kind, ...access, nodes, db: 0 } };
  }
  const [node, ...others] = nodes;
  if (node === undefined || others.length > 0) {
    return misread('one host alone, unless it is redis+sentinel:// or redis+cluster://');
  }
  return { ok: true, value: { kind, ...access, nodes: [node], db } };
}

/** What may have been meant, as it has to be written. Nothing that may hold a password is repeated. */
function suggestUrl(text: string): string | undefined {
  if (text.includes('@') || isSocket(text)) return undefined;
  const plain = tidyUrl(text);
  const { word = '', behind = '', isPort = true, hasColon = false } = partScheme(plain) ?? {};
  const near = SCHEMES.has(word.toLowerCase()) ? word.toLowerCase() : suggest(word.replace('-', '+'), SCHEMES.keys());
  // Of another scheme the host stands behind its slashes, and `redis:6379` is a host that is called so.
  const isScheme = !isPort && (near !== undefined || (hasColon && plain.startsWith(`${word}:/`)));
  const [, named = '', more = ''] = /^\/*([^/?#]*)([^?#]*)/.exec(isScheme ? behind : plain) ?? [];
  const url = `${(isScheme ? near : undefined) ?? 'redis'}://${completeHost(named) ?? named}${more}`;
  return url !== text && readRedisUrl(url).ok ? url : undefined;
}
