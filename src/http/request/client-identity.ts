import ipaddr from 'ipaddr.js';
import type { ClientKey } from '../../config/schema/clients-schema.ts';
import { UNIX_PEER } from '../../config/schema/clients-schema.ts';
import { UNKNOWN } from './client-address.ts';
import type { ClientHash } from './client-hash.ts';
import type { Glob } from './glob.ts';
import type { Inbound } from '../server/server-request.ts';

export interface ClassRule {
  readonly name: string;
  readonly weight: number;
  /** Lower-case header names, each with a pattern; all must match. */
  readonly headers: readonly (readonly [string, Glob])[];
  /** Patterns of the client's key, one of which must match; empty when the key does not matter. */
  readonly keys: readonly Glob[];
}

/** A client that metrics tell by name. */
export interface NameRule {
  readonly name: string;
  /** Patterns of its key, one of which must match. */
  readonly keys: readonly Glob[];
}

export interface Client {
  /** A keyed hash: what logs, metrics and stores may know. */
  readonly hash: string;
  /** What it was told apart by: `header:x-api-key`, `bearer`, `path:2`, `ip`. */
  readonly identifiedBy: string;
  /** The hash of its address, where its key is one that nobody has verified. */
  readonly nest: string | undefined;
  readonly weight: number;
  readonly className: string | undefined;
  /** What metrics call it; undefined for most. */
  readonly name: string | undefined;
}

/** @param address the client's own, proxies in front left out */
export type Identify = (request: Inbound, address: string) => Client;

export interface ClientRules {
  readonly classes: readonly ClassRule[];
  readonly names: readonly NameRule[];
}

export function makeIdentify(
  keys: readonly ClientKey[],
  { classes, names }: ClientRules,
  hashes: Pick<ClientHash, 'of'>,
): Identify {
  const hasRules = classes.length > 0 || names.length > 0;
  const readers = keys.map(makeReader);
  const byAddress = makeReader({ kind: 'ip' });
  const hashOf = new Map([...readers, byAddress].map(({ kind }) => [kind, hashes.of((text) => tell(kind, text))]));
  const hashKey = ({ kind }: Reader, value: string): string => hashOf.get(kind)?.(value) ?? '';
  return (request, address) => {
    let reader = byAddress;
    let value: string | undefined;
    for (const each of readers) {
      value = each.read(request, address);
      if (value === undefined || value === '') continue;
      reader = each;
      break;
    }
    value ||= address;
    const key = hasRules && reader.kind === 'ip' ? networkOf(value) : value;
    const found = classes.length === 0 ? undefined : classes.find((rule) => matches(rule, request, key));
    return {
      hash: hashKey(reader, value),
      identifiedBy: reader.kind,
      nest: reader.kind === 'ip' ? undefined : hashKey(byAddress, address),
      weight: found?.weight ?? 1,
      className: found?.name,
      name: names.length === 0 ? undefined : nameOf(names, key),
    };
  };
}

/** One way to tell clients apart. */
interface Reader {
  /** Two of a kind are the same. */
  readonly kind: string;
  /** What tells this one apart; undefined or empty where the request has nothing of the kind. */
  readonly read: (request: Inbound, address: string) => string | undefined;
}

function makeReader(key: ClientKey): Reader {
  switch (key.kind) {
    case 'header': {
      const name = key.name.toLowerCase();
      return {
        kind: `header:${name}`,
        read: ({ headers }) => {
          const value = headers[name];
          return typeof value === 'string' ? value : value?.join(',');
        },
      };
    }
    case 'bearer':
      return { kind: 'bearer', read: ({ headers }) => headers.authorization };
    case 'path':
      return { kind: `path:${key.segment}`, read: ({ path }) => path.split('/')[key.segment] };
    case 'ip':
      return { kind: 'ip', read: (_, address) => address };
  }
}

/** What is hashed. Addresses of one network are one client. */
function tell(kind: string, value: string): string {
  return `${kind}\0${kind === 'ip' ? networkOf(value) : value}`;
}

function nameOf(names: readonly NameRule[], key: string): string | undefined {
  return names.find(({ keys }) => keys.some((pattern) => pattern(key)))?.name;
}

/** The headers that clients are told apart by, in lower case. */
export function headersOf(keys: readonly ClientKey[]): string[] {
  return keys.flatMap((key) => {
    if (key.kind === 'header') return [key.name.toLowerCase()];
    return key.kind === 'bearer' ? ['authorization'] : [];
  });
}

/** A path as it may be told: a segment that tells clients apart is not. */
export function makePathTeller(keys: readonly ClientKey[]): (path: string) => string {
  const segments = keys.flatMap((key) => (key.kind === 'path' ? [key.segment] : []));
  if (segments.length === 0) return (path) => path;
  return (path) => {
    const parts = path.split('/');
    for (const segment of segments) if (parts[segment]) parts[segment] = '*';
    return parts.join('/');
  };
}

/** IPv4 inside IPv6 unwrapped, IPv6 by its /64: one household or host has at least that many addresses. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const bytes = parsed.toByteArray().map((byte, index) => (index < 8 ? byte : 0));
  return `${ipaddr.fromByteArray(bytes).toString()}/64`;
}

/**
 * Whether an address is in one of these blocks ("10.0.0.0/8", "::1").
 * @param onUnixSocket where we listen there, "unix" stands for all who connect
 */
export function makeTrusts(blocks: readonly string[], onUnixSocket: boolean): (address: string) => boolean {
  const trustsUnix = onUnixSocket && blocks.includes(UNIX_PEER);
  const parsed = blocks.filter((block) => block !== UNIX_PEER).map(parseBlock);
  if (parsed.length === 0 && !trustsUnix) return () => false;
  return (text) => {
    if (text === UNKNOWN) return trustsUnix;
    if (!ipaddr.isValid(text)) return false;
    const address = ipaddr.process(text);
    return parsed.some(([block, bits]) => address.kind() === block.kind() && address.match(block, bits));
  };
}

function parseBlock(block: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  const [name = '', length] = block.split('/');
  const address = ipaddr.parse(name);
  const bits = length === undefined ? 8 * address.toByteArray().length : Number(length);
  // As addresses are compared: IPv4 within IPv6 as IPv4.
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= 96) {
    return [address.toIPv4Address(), bits - 96];
  }
  return [address, bits];
}

function matches(rule: ClassRule, request: Inbound, key: string): boolean {
  for (const [name, pattern] of rule.headers) {
    const value = request.headers[name];
    if (value === undefined || !pattern(String(value))) return false;
  }
  return rule.keys.length === 0 || rule.keys.some((pattern) => pattern(key));
}
