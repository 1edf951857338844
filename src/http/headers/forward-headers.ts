/** Rewrites headers for the next hop (RFC 9110 §7.6). Case, order and duplicates are kept. */
import { appendToListField, parseListField } from '../../core/http-semantics/list-field.ts';
import { HOP_BY_HOP_HEADERS, REWRITTEN_HEADERS } from '../../core/http-semantics/managed-headers.ts';
import { filterHeaders } from './raw-headers.ts';

const FRAMING_HEADERS: ReadonlySet<string> = new Set([...HOP_BY_HOP_HEADERS, 'content-length', 'trailer']);

export interface RequestForwarding {
  /** `1.1 tidegate-<instance>`, with the HTTP version of the client. */
  readonly via: string;
  readonly requestId: string;
  /** Address of the peer that connected. */
  readonly peer: string;
  /** Whether the peer's X-Forwarded-* and Forwarded headers are kept. */
  readonly peerIsTrusted: boolean;
  readonly proto: 'http' | 'https';
  /** Also write `Forwarded` (RFC 7239). */
  readonly forwarded: boolean;
  /** The Host to send. */
  readonly host: string;
  /** The client's Host; undefined if it sent none. */
  readonly clientHost: string | undefined;
  /** HTTP/2 is offered to the upstream, where `TE: trailers` is legal on its own (RFC 9113 §8.2.2). */
  readonly http2: boolean;
  /** The new `Max-Forwards`; undefined: unchanged. */
  readonly maxForwards: number | undefined;
}

/** The request headers to send to the upstream: names and values in turn. */
export function forwardRequestHeaders(raw: readonly string[], forwarding: RequestForwarding): string[] {
  const listed = listedInConnection(raw);
  const out = ['Host', forwarding.host];
  let via = '';
  let clientsBefore = '';
  let forwardedBefore = '';
  let protoBefore: string | undefined;
  let hostBefore: string | undefined;
  let inboundHost = forwarding.clientHost ?? forwarding.host;
  let takesTrailers = false;
  let hasMaxForwards = false;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const value = raw[i + 1] ?? '';
    const lower = name.toLowerCase();
    if (REWRITTEN_HEADERS.has(lower)) {
      if (lower === 'host') inboundHost = value;
      else if (lower === 'via') via = appendToListField(via, value);
      else if (!forwarding.peerIsTrusted) continue;
      else if (lower === 'x-forwarded-for') clientsBefore = appendToListField(clientsBefore, value);
      else if (lower === 'forwarded') forwardedBefore = appendToListField(forwardedBefore, value);
      else if (lower === 'x-forwarded-proto') protoBefore = value;
      else if (lower === 'x-forwarded-host') hostBefore = value;
      continue;
    }
    if (HOP_BY_HOP_HEADERS.has(lower) || listed?.has(lower) === true) {
      // Over HTTP/1.1 `TE` requires `Connection: TE` (RFC 9110 §10.1.4), which undici 8.13.1 cannot be made to write.
      if (lower === 'te' && forwarding.http2 && !takesTrailers && hasTrailersElement(value)) {
        takesTrailers = true; // once; HTTP/2 allows no other value
        out.push('TE', 'trailers');
      }
      continue;
    }
    if (forwarding.maxForwards !== undefined && lower === 'max-forwards') {
      if (!hasMaxForwards) out.push(name, String(forwarding.maxForwards));
      hasMaxForwards = true;
      continue;
    }
    if (isProxyOnly(lower, forwarding.peerIsTrusted)) continue;
    out.push(name, value);
  }
  out.push('Via', appendToListField(via, forwarding.via), 'X-Request-Id', forwarding.requestId);
  out.push('X-Forwarded-For', appendToListField(clientsBefore, forwarding.peer));
  out.push('X-Forwarded-Proto', protoBefore ?? forwarding.proto, 'X-Forwarded-Host', hostBefore ?? inboundHost);
  if (forwarding.forwarded) {
    out.push('Forwarded', appendToListField(forwardedBefore, forwardedElement(forwarding, inboundHost)));
  }
  return out;
}

export interface ResponseForwarding {
  /** `1.1 tidegate-<instance>`, with the HTTP version of the upstream. */
  readonly via: string;
  readonly requestId: string;
  /** The client's id, or ours. */
  readonly xRequestId: string;
  readonly attempts: number;
  /** How many times the result was polled for, if more than once. */
  readonly polls?: number | undefined;
  readonly unknown: boolean;
  /** The idempotency key that Tidegate generated. */
  readonly mintedKey?: string | undefined;
  /** The connection ends with this response. */
  readonly close: boolean;
}

/** The response headers to send to the client. Values are latin1, as received. */
export function forwardResponseHeaders(raw: readonly string[], forwarding: ResponseForwarding): string[] {
  const listed = listedInConnection(raw);
  const out: string[] = [];
  let via = '';
  let hasRequestId = false;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const value = raw[i + 1] ?? '';
    const lower = name.toLowerCase();
    if (HOP_BY_HOP_HEADERS.has(lower) || listed?.has(lower) === true) continue;
    if (lower === 'via') {
      via = appendToListField(via, value);
      continue;
    }
    if (lower.startsWith('tidegate-')) {
      // From another Tidegate behind this one: an unknown outcome is kept, the other headers are replaced by ours.
      if (lower === 'tidegate-outcome' && value === 'unknown' && !forwarding.unknown) out.push(name, value);
      continue;
    }
    if (lower === 'x-request-id') hasRequestId = true;
    out.push(name, value);
  }
  out.push('Via', appendToListField(via, forwarding.via));
  if (!hasRequestId) out.push('X-Request-Id', forwarding.xRequestId);
  out.push('Tidegate-Request-Id', forwarding.requestId, 'Tidegate-Attempts', String(forwarding.attempts));
  if (forwarding.polls !== undefined) out.push('Tidegate-Polls', String(forwarding.polls));
  if (forwarding.unknown) out.push('Tidegate-Outcome', 'unknown');
  if (forwarding.mintedKey !== undefined) out.push('Tidegate-Idempotency-Key', forwarding.mintedKey);
  if (forwarding.close) out.push('Connection', 'close');
  return out;
}

/** Whether a response has this header, and does not list it in Connection. @param name in lower case */
export function hasForwardedHeader(raw: readonly string[], name: string): boolean {
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const each = raw[i] ?? '';
    if (each.length === name.length && each.toLowerCase() === name) return listedInConnection(raw)?.has(name) !== true;
  }
  return false;
}

/**
 * The headers of an interim response, or trailers, to send to the client. Framing headers are not allowed there (RFC 9110 §6.5.1,
 * §15.2), and headers in Tidegate's name are removed, because Tidegate sends its own in the final head only.
 */
export function forwardInterimHeaders(raw: readonly string[]): string[] {
  const listed = listedInConnection(raw);
  return filterHeaders(raw, (name) => {
    if (FRAMING_HEADERS.has(name) || listed?.has(name) === true) return false;
    return !name.startsWith('tidegate-') && name !== 'via' && name !== 'proxy-status';
  });
}

/**
 * Whether this process has forwarded the request before, over any HTTP version. A chain of different processes is allowed.
 * @param own `1.1 tidegate-<instance>`
 */
export function isLoop(via: string | undefined, own: string): boolean {
  if (via === undefined) return false;
  const name = own.slice(own.indexOf(' ') + 1);
  return via.includes(name) && parseListField(via).some((element) => element.split(/[\t ]+/)[1] === name);
}

/**
 * An entry of Via: the version of the received message (RFC 9110 §7.6.3), and this process.
 * @param own `1.1 tidegate-<instance>`
 * @param version `1.0`, `1.1` or `2.0`
 */
export function viaEntry(version: string, own: string): string {
  return version === '1.1' ? own : version + own.slice(own.indexOf(' '));
}

/** Whether Connection lists a header, so that it is for this hop only. @param name in lower case */
export function isListedInConnection(raw: readonly string[], name: string): boolean {
  return listedInConnection(raw)?.has(name) === true;
}

/**
 * Whether only proxies may send this header. Underscores count as hyphens, because upstreams that follow CGI take both names for
 * one.
 */
function isProxyOnly(lower: string, peerIsTrusted: boolean): boolean {
  const name = lower.includes('_') ? lower.replaceAll('_', '-') : lower;
  if (name.startsWith('tidegate-')) return true;
  return (!peerIsTrusted && name.startsWith('x-envoy-')) || (name !== lower && name.startsWith('x-forwarded-'));
}

function listedInConnection(raw: readonly string[]): ReadonlySet<string> | undefined {
  let listed: Set<string> | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    if (isCommonConnection(raw[i + 1] ?? '')) continue;
    for (const header of parseListField((raw[i + 1] ?? '').toLowerCase())) {
      if (header === 'close' || header === 'keep-alive') continue;
      // These decide where a message ends and which host is meant: a peer must not have them dropped.
      if (header === 'content-length' || header === 'host') continue;
      listed ??= new Set();
      listed.add(header);
    }
  }
  return listed;
}

function hasTrailersElement(te: string): boolean {
  return parseListField(te).some((coding) => /^trailers[\t ]*(?:;|$)/i.test(coding));
}

/** The usual values, which list no header. */
function isCommonConnection(connection: string): boolean {
  return connection === 'keep-alive' || connection === 'close';
}

function forwardedElement(hop: RequestForwarding, host: string): string {
  const node = hop.peer.includes(':') ? `"[${hop.peer}]"` : hop.peer;
  return `for=${node};host="${host.replaceAll(/["\\]/g, '')}";proto=${hop.proto}`;
}

/** Whether a response is a stream of server-sent events. (`ServerResponse.getHeader` of Node 24 ignores headers given as a list.) */
export function isEventStream(headers: readonly string[]): boolean {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length !== 12 || name.toLowerCase() !== 'content-type') continue;
    return /^[\t ]*text\/event-stream[\t ]*(?:;|$)/i.test(headers[i + 1] ?? '');
  }
  return false;
}
