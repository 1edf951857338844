import ipaddr from 'ipaddr.js';
import type { ClientKey } from '../../config/schema/clients-schema.ts';
import { UNIX_PEER } from '../../config/schema/clients-schema.ts';
import type { KeyOwner } from '../../core/idempotency/key-owner.ts';
import { normalizeEscapes } from '../../core/http-semantics/path-pattern.ts';
import { UNKNOWN_ADDRESS } from './client-address.ts';
import type { ClientHasher, HashFunction } from './client-hash.ts';
import type { Glob } from './glob.ts';
import type { Principal } from '../auth/auth-types.ts';
import type { HttpServerRequest } from '../server/server-request.ts';

export interface ClientClassRule {
  readonly name: string;
  readonly weight: number;
  /** Lower-case header names, each with a pattern; all must match. */
  readonly headers: readonly (readonly [string, Glob])[];
  /** Patterns of the client's key, one of which must match; empty: any key. */
  readonly keys: readonly Glob[];
}

/** A client with a name in metrics. */
export interface ClientNameRule {
  readonly name: string;
  /** Patterns of the client's key, one of which must match. */
  readonly keys: readonly Glob[];
}

export interface ClientIdentity {
  /** A keyed hash, for logs, metrics and stores. */
  readonly hash: string;
  /** The source of its key: `header:x-api-key`, `bearer`, `path:2`, `ip`; or what proves its name: `api_key`, `jwt`, `certificate`. */
  readonly identifiedBy: string;
  /** The hash of its address, if its key is unverified: clients of one address share one part of the rate. Undefined for `ip`. */
  readonly addressGroup: string | undefined;
  readonly weight: number;
  readonly className: string | undefined;
  /** It has proven its name (`clients.auth`). Absent if it has not. */
  readonly isProven?: true;
  /** Its name in metrics and logs: the one in `clients.names`, or the one that it has proven; undefined for others. */
  readonly name: string | undefined;
  /** What names the client for as long as it uses a key; undefined if only its address or a token identifies it. */
  readonly keyOwner: KeyOwner | undefined;
}

/** Whether the hash of the client is that of the name that it has for its keys, and not that of a token or an address beside it. */
export function isIdentifiedByName({ isProven, identifiedBy, keyOwner }: ClientIdentity): boolean {
  return isProven === true || keyOwner?.kind === identifiedBy;
}

/** Whose connections are counted together: all clients of its address, or the client alone. */
export function addressGroupOf({ addressGroup, hash }: Pick<ClientIdentity, 'addressGroup' | 'hash'>): string {
  return addressGroup ?? hash;
}

/** @param address the client's own, not that of a proxy in front @param principal the client, if it has proven its name */
export type IdentifyClient = (request: HttpServerRequest, address: string, principal?: Principal) => ClientIdentity;

/** How clients are named for as long as they use an idempotency key: see `KeyOwner`. */
export interface KeyOwnerRule {
  /** The keys that are names; the first one that a request has applies. */
  readonly keys: readonly ClientKey[];
  /** The kind of proven names. */
  readonly proven: string;
}

export interface ClientRules {
  readonly classes: readonly ClientClassRule[];
  readonly names: readonly ClientNameRule[];
  readonly owners: KeyOwnerRule;
}

export function makeClientIdentifier(
  keys: readonly ClientKey[],
  { classes, names, owners }: ClientRules,
  hasher: Pick<ClientHasher, 'cachedHash'>,
  hashAddress: HashFunction = makeAddressHash(hasher),
): IdentifyClient {
  const hasRules = classes.length > 0 || names.length > 0;
  const readers = keys.map(makeKeyReader);
  const lasting = owners.keys.map(makeKeyReader);
  const byAddress = makeKeyReader({ kind: 'ip' });
  const hashOf = new Map(
    readers.map(({ kind }) => [kind, hasher.cachedHash((text) => hashInput(kind, text))] as const),
  );
  hashOf.set(byAddress.kind, hashAddress);
  const hashKey = ({ kind }: KeyReader, value: string): string => hashOf.get(kind)?.(value) ?? '';
  const hashName = hasher.cachedHash((name) => hashInput('name', name));
  const identifyPrincipal = (request: HttpServerRequest, { name, provenBy }: Principal): ClientIdentity => {
    const matchedClass = classes.find((rule) => matchesClass(rule, request, name));
    return {
      hash: hashName(name),
      identifiedBy: provenBy,
      addressGroup: undefined, // the name is proven: clients of one address do not share their part of the rate
      weight: matchedClass?.weight ?? 1,
      className: matchedClass?.name,
      isProven: true,
      name: configuredName(names, name) ?? name,
      keyOwner: { name: `name\0${name}`, kind: owners.proven },
    };
  };
  return (request, address, principal) => {
    if (principal !== undefined) return identifyPrincipal(request, principal);
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
    const matchedClass = classes.length === 0 ? undefined : classes.find((rule) => matchesClass(rule, request, key));
    return {
      hash: hashKey(reader, value),
      identifiedBy: reader.kind,
      addressGroup: reader.kind === 'ip' ? undefined : hashKey(byAddress, address),
      weight: matchedClass?.weight ?? 1,
      className: matchedClass?.name,
      name: names.length === 0 ? undefined : configuredName(names, key),
      keyOwner: lastingNameOf(lasting, request, address),
    };
  };
}

/** One source of client keys. */
interface KeyReader {
  /** Equal kinds read the same. */
  readonly kind: string;
  /** The client's key; undefined or empty if the request has none of this kind. */
  readonly read: (request: HttpServerRequest, address: string) => string | undefined;
}

function makeKeyReader(key: ClientKey): KeyReader {
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

/** The first name that the request has, whatever identifies its client: a token in front of it in the list may change. */
function lastingNameOf(
  readers: readonly KeyReader[],
  request: HttpServerRequest,
  address: string,
): KeyOwner | undefined {
  for (const { kind, read } of readers) {
    const value = read(request, address);
    if (value === undefined || value === '') continue;
    // Equal paths name one client, as they name one write.
    return { name: `${kind}\0${kind.startsWith('path') ? normalizeEscapes(value) : value}`, kind };
  }
  return undefined;
}

/** A hash of addresses, equal for the addresses of one network. */
export function makeAddressHash(hasher: Pick<ClientHasher, 'cachedHash'>): HashFunction {
  return hasher.cachedHash((address) => hashInput('ip', address));
}

/** The input of a client's hash. Addresses of one network are one client. */
function hashInput(kind: string, value: string): string {
  return `${kind}\0${kind === 'ip' ? networkOf(value) : value}`;
}

function configuredName(names: readonly ClientNameRule[], key: string): string | undefined {
  return names.find(({ keys }) => keys.some((pattern) => pattern(key)))?.name;
}

/** The headers that identify clients, in lower case. */
export function identityHeaders(keys: readonly ClientKey[]): string[] {
  return keys.flatMap((key) => {
    if (key.kind === 'header') return [key.name.toLowerCase()];
    return key.kind === 'bearer' ? ['authorization'] : [];
  });
}

/** Replaces path segments that identify clients by `*`. */
export function makePathRedactor(keys: readonly ClientKey[]): (path: string) => string {
  const segments = keys.flatMap((key) => (key.kind === 'path' ? [key.segment] : []));
  if (segments.length === 0) return (path) => path;
  return (path) => {
    const parts = path.split('/');
    for (const segment of segments) if (parts[segment]) parts[segment] = '*';
    return parts.join('/');
  };
}

/** IPv4-mapped IPv6 as IPv4; IPv6 as its /64, because one household or host has at least a /64. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const bytes = parsed.toByteArray().map((byte, index) => (index < 8 ? byte : 0));
  return `${ipaddr.fromByteArray(bytes).toString()}/64`;
}

/**
 * Checks whether an address is in one of these blocks ("10.0.0.0/8", "::1").
 * @param onUnixSocket the listener is a Unix socket, so the block "unix" means every peer
 */
export function makeTrustCheck(blocks: readonly string[], onUnixSocket: boolean): (address: string) => boolean {
  const trustsUnix = onUnixSocket && blocks.includes(UNIX_PEER);
  const parsed = blocks.filter((block) => block !== UNIX_PEER).map(parseBlock);
  if (parsed.length === 0 && !trustsUnix) return () => false;
  return (text) => {
    if (text === UNKNOWN_ADDRESS) return trustsUnix;
    if (!ipaddr.isValid(text)) return false;
    const address = ipaddr.process(text);
    return parsed.some(([block, bits]) => address.kind() === block.kind() && address.match(block, bits));
  };
}

function parseBlock(block: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  const [name = '', length] = block.split('/');
  const address = ipaddr.parse(name);
  const bits = length === undefined ? 8 * address.toByteArray().length : Number(length);
  // Addresses are compared as IPv4 too if they are IPv4-mapped IPv6.
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= 96) {
    return [address.toIPv4Address(), bits - 96];
  }
  return [address, bits];
}

function matchesClass(rule: ClientClassRule, request: HttpServerRequest, key: string): boolean {
  for (const [name, pattern] of rule.headers) {
    const value = request.headers[name];
    if (value === undefined || !pattern(String(value))) return false;
  }
  return rule.keys.length === 0 || rule.keys.some((pattern) => pattern(key));
}
