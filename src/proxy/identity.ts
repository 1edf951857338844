import { createHmac } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import type { ClientKey } from '../config/clients-schema.ts';
import { UNIX_PEER } from '../config/clients-schema.ts';
import { UNKNOWN } from './address.ts';
import type { Inbound } from './inbound.ts';

export interface ClassRule {
  readonly name: string;
  readonly weight: number;
  /** Lower-case header names, each with a pattern; all must match. */
  readonly headers: readonly (readonly [string, RegExp])[];
  /** Patterns of the client's key, one of which must match; empty when the key does not matter. */
  readonly keys: readonly RegExp[];
}

export interface Client {
  /** A keyed hash: what logs, metrics and stores may know. */
  readonly hash: string;
  /** The hash of its address, where its key is one that nobody has verified. */
  readonly nest: string | undefined;
  readonly weight: number;
  readonly className: string | undefined;
}

/** @param address the client's own, proxies in front left out */
export type Identify = (request: Inbound, address: string) => Client;

/** Hashes are worth keeping: an HMAC costs more than the rest of a decision. */
const HASHES_KEPT = 10_000;
/** Longer ones are hashed anew each time: what is kept has a bound in bytes too. */
const LONGEST_KEPT = 256;

export function makeIdentify(keys: readonly ClientKey[], classes: readonly ClassRule[], hash: Hash): Identify {
  return (request, address) => {
    const key = readKey(keys, request, address);
    const found = classes.find((rule) => matches(rule, request, key.value));
    return {
      hash: hash(`${key.kind}\0${key.value}`),
      nest: key.kind === 'ip' ? undefined : hash(`ip\0${networkOf(address)}`),
      weight: found?.weight ?? 1,
      className: found?.name,
    };
  };
}

export type Hash = (text: string) => string;

/** A keyed hash of 64 bits in hex: enough to tell clients apart, and nothing to guess a key by. */
export function makeHash(secret: string | Buffer): Hash {
  const kept = new Map<string, string>();
  return (text) => {
    const known = kept.get(text);
    if (known !== undefined) return known;
    const hash = createHmac('sha256', secret).update(text).digest('hex').slice(0, 16);
    if (text.length > LONGEST_KEPT) return hash;
    if (kept.size >= HASHES_KEPT) kept.clear();
    kept.set(text, hash);
    return hash;
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
  const ofAddresses = blocks.filter((block) => block !== UNIX_PEER);
  const parsed = ofAddresses.map((block) => {
    if (block.includes('/')) return ipaddr.parseCIDR(block);
    const address = ipaddr.parse(block);
    return [address, address.kind() === 'ipv4' ? 32 : 128] as [ipaddr.IPv4 | ipaddr.IPv6, number];
  });
  if (parsed.length === 0 && !trustsUnix) return () => false;
  return (text) => {
    if (text === UNKNOWN) return trustsUnix;
    if (!ipaddr.isValid(text)) return false;
    const address = ipaddr.process(text);
    return parsed.some(([block, bits]) => address.kind() === block.kind() && address.match(block, bits));
  };
}

/** `*` stands for anything. */
export function globPattern(glob: string): RegExp {
  const parts = glob.split('*').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

function readKey(keys: readonly ClientKey[], request: Inbound, address: string): { kind: string; value: string } {
  for (const key of keys) {
    switch (key.kind) {
      case 'header': {
        const name = key.name.toLowerCase();
        const value = request.headers[name];
        if (value !== undefined && value !== '') return { kind: `header:${name}`, value: String(value) };
        break;
      }
      case 'bearer': {
        const { authorization } = request.headers;
        if (authorization !== undefined && authorization !== '') return { kind: 'bearer', value: authorization };
        break;
      }
      case 'path': {
        const value = request.path.split('/')[key.segment];
        if (value !== undefined && value !== '') return { kind: `path:${key.segment}`, value };
        break;
      }
      case 'ip':
        return { kind: 'ip', value: networkOf(address) };
    }
  }
  return { kind: 'ip', value: networkOf(address) };
}

function matches(rule: ClassRule, request: Inbound, key: string): boolean {
  for (const [name, pattern] of rule.headers) {
    const value = request.headers[name];
    if (value === undefined || !pattern.test(String(value))) return false;
  }
  return rule.keys.length === 0 || rule.keys.some((pattern) => pattern.test(key));
}
