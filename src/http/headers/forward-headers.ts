/** What happens to headers on their way through. Names keep their case, duplicates and order stay (RFC 9110 §7.6). */
import { appendToList, listElements } from '../../core/http-semantics/list-field.ts';
import { HOP_BY_HOP, WRITTEN_ANEW } from '../../core/http-semantics/managed-headers.ts';

const FRAMING: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'content-length', 'trailer']);

export interface Hop {
  /** `1.1 tidegate-<instance>`, with the version that the client spoke. */
  readonly via: string;
  readonly requestId: string;
  /** The address of who connected to us. */
  readonly peer: string;
  /** Whether what the peer says of clients before it is believed. */
  readonly peerIsTrusted: boolean;
  readonly proto: 'http' | 'https';
  /** Also write `Forwarded` (RFC 7239). */
  readonly forwarded: boolean;
  /** What is sent as Host. */
  readonly host: string;
  /** The host that the client asked for; undefined where it named none. */
  readonly clientHost: string | undefined;
  /** HTTP/2 is offered to the upstream, where `TE: trailers` is legal on its own (RFC 9113 §8.2.2). */
  readonly http2: boolean;
  /** What `Max-Forwards` becomes; undefined: it stays as it is. */
  readonly maxForwards: number | undefined;
}

/** The headers of a request as they go to the upstream: flat, name and value in turn. */
export function requestHeaders(raw: readonly string[], hop: Hop): string[] {
  const listed = listedInConnection(raw);
  const out = ['Host', hop.host];
  let via = '';
  let clientsBefore = '';
  let forwardedBefore = '';
  let protoBefore: string | undefined;
  let hostBefore: string | undefined;
  let inboundHost = hop.clientHost ?? hop.host;
  let takesTrailers = false;
  let saysMaxForwards = false;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const value = raw[i + 1] ?? '';
    const lower = name.toLowerCase();
    if (WRITTEN_ANEW.has(lower)) {
      if (lower === 'host') inboundHost = value;
      else if (lower === 'via') via = appendToList(via, value);
      else if (!hop.peerIsTrusted) continue;
      else if (lower === 'x-forwarded-for') clientsBefore = appendToList(clientsBefore, value);
      else if (lower === 'forwarded') forwardedBefore = appendToList(forwardedBefore, value);
      else if (lower === 'x-forwarded-proto') protoBefore = value;
      else if (lower === 'x-forwarded-host') hostBefore = value;
      continue;
    }
    if (HOP_BY_HOP.has(lower) || listed?.has(lower) === true) {
      // Over HTTP/1.1 it needs `Connection: TE` beside it (RFC 9110 §10.1.4), and undici 8.13.1 writes no option of ours there.
      if (lower === 'te' && hop.http2 && !takesTrailers && hasTrailersElement(value)) {
        takesTrailers = true; // once: over HTTP/2 it has no other value
        out.push('TE', 'trailers');
      }
      continue;
    }
    if (hop.maxForwards !== undefined && lower === 'max-forwards') {
      if (!saysMaxForwards) out.push(name, String(hop.maxForwards));
      saysMaxForwards = true;
      continue;
    }
    if (isOfProxies(lower, hop.peerIsTrusted)) continue;
    out.push(name, value);
  }
  out.push('Via', appendToList(via, hop.via), 'X-Request-Id', hop.requestId);
  out.push('X-Forwarded-For', appendToList(clientsBefore, hop.peer));
  out.push('X-Forwarded-Proto', protoBefore ?? hop.proto, 'X-Forwarded-Host', hostBefore ?? inboundHost);
  if (hop.forwarded) out.push('Forwarded', appendToList(forwardedBefore, forwardedElement(hop, inboundHost)));
  return out;
}

export interface Answered {
  /** `1.1 tidegate-<instance>`, with the version that the upstream spoke. */
  readonly via: string;
  readonly requestId: string;
  /** The client's own id, or ours. */
  readonly xRequestId: string;
  readonly attempts: number;
  /** Where it was asked for more than once because it was not ready. */
  readonly polls?: number | undefined;
  readonly unknown: boolean;
  /** The idempotency key that the request was given here. */
  readonly mintedKey?: string | undefined;
  /** The connection ends with this response. */
  readonly close: boolean;
}

/** The headers of the upstream's answer as they go to the client. Values are latin1, as they came. */
export function responseHeaders(raw: readonly string[], answered: Answered): string[] {
  const listed = listedInConnection(raw);
  const out: string[] = [];
  let via = '';
  let hasRequestId = false;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const value = raw[i + 1] ?? '';
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || listed?.has(lower) === true) continue;
    if (lower === 'via') {
      via = appendToList(via, value);
      continue;
    }
    if (lower.startsWith('tidegate-')) {
      // Another of us behind this one: its word that a write may have happened stays, of the rest ours is the last.
      if (lower === 'tidegate-outcome' && value === 'unknown' && !answered.unknown) out.push(name, value);
      continue;
    }
    if (lower === 'x-request-id') hasRequestId = true;
    out.push(name, value);
  }
  out.push('Via', appendToList(via, answered.via));
  if (!hasRequestId) out.push('X-Request-Id', answered.xRequestId);
  out.push('Tidegate-Request-Id', answered.requestId, 'Tidegate-Attempts', String(answered.attempts));
  if (answered.polls !== undefined) out.push('Tidegate-Polls', String(answered.polls));
  if (answered.unknown) out.push('Tidegate-Outcome', 'unknown');
  if (answered.mintedKey !== undefined) out.push('Tidegate-Idempotency-Key', answered.mintedKey);
  if (answered.close) out.push('Connection', 'close');
  return out;
}

/** Whether an answer has this field, and it is not hop by hop. @param name in lower case */
export function isForwarded(raw: readonly string[], name: string): boolean {
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const each = raw[i] ?? '';
    if (each.length === name.length && each.toLowerCase() === name) return listedInConnection(raw)?.has(name) !== true;
  }
  return false;
}

/**
 * Headers of an interim answer, and trailers, as they go to the client. What frames a message has no business there
 * (RFC 9110 §6.5.1, §15.2), and an upstream none to speak in our name: what we say is said in the final head alone.
 */
export function besideHead(raw: readonly string[]): string[] {
  const listed = listedInConnection(raw);
  return raw.filter((_, i) => {
    const name = raw[i - (i % 2)]?.toLowerCase() ?? '';
    if (FRAMING.has(name) || listed?.has(name) === true) return false;
    return !name.startsWith('tidegate-') && name !== 'via' && name !== 'proxy-status';
  });
}

/**
 * True when our own instance has forwarded this request before, over whatever version. A chain of different instances is legal.
 * @param own `1.1 tidegate-<instance>`
 */
export function isLoop(via: string | undefined, own: string): boolean {
  if (via === undefined) return false;
  const name = own.slice(own.indexOf(' ') + 1);
  return via.includes(name) && listElements(via).some((element) => element.split(/[\t ]+/)[1] === name);
}

/**
 * An entry of Via: the version of the message that was received (RFC 9110 §7.6.3), and who passed it on.
 * @param own `1.1 tidegate-<instance>`
 * @param version `1.0`, `1.1` or `2.0`
 */
export function viaOver(version: string, own: string): string {
  return version === '1.1' ? own : version + own.slice(own.indexOf(' '));
}

/** An id that goes into headers and logs: visible ASCII, and not a novel. */
export function isUsableRequestId(id: string | undefined): id is string {
  return id !== undefined && /^[\x21-\x7e]{1,128}$/.test(id);
}

/** Whether a header, in lower case, is meant for this hop alone. */
export function isListedInConnection(raw: readonly string[], name: string): boolean {
  return listedInConnection(raw)?.has(name) === true;
}

/**
 * What only proxies may say to each other. An underscore is taken for a dash, as upstreams behind CGI and its heirs take
 * it: to them both names are one.
 */
function isOfProxies(lower: string, peerIsTrusted: boolean): boolean {
  const name = lower.includes('_') ? lower.replaceAll('_', '-') : lower;
  if (name.startsWith('tidegate-')) return true;
  return (!peerIsTrusted && name.startsWith('x-envoy-')) || (name !== lower && name.startsWith('x-forwarded-'));
}

function listedInConnection(raw: readonly string[]): ReadonlySet<string> | undefined {
  let listed: Set<string> | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    if (isUsual(raw[i + 1] ?? '')) continue;
    for (const header of listElements((raw[i + 1] ?? '').toLowerCase())) {
      if (header === 'close' || header === 'keep-alive') continue;
      // These decide where a message ends and who is served: a peer cannot have them dropped.
      if (header === 'content-length' || header === 'host') continue;
      listed ??= new Set();
      listed.add(header);
    }
  }
  return listed;
}

function hasTrailersElement(te: string): boolean {
  return listElements(te).some((coding) => /^trailers[\t ]*(?:;|$)/i.test(coding));
}

/** As nearly all say: nothing is listed, and nothing has to be made of it. */
function isUsual(connection: string): boolean {
  return connection === 'keep-alive' || connection === 'close';
}

function forwardedElement(hop: Hop, host: string): string {
  const node = hop.peer.includes(':') ? `"[${hop.peer}]"` : hop.peer;
  return `for=${node};host="${host.replaceAll(/["\\]/g, '')}";proto=${hop.proto}`;
}

/** Server-sent events. ServerResponse.getHeader does not know what writeHead was given as a list (Node 24). */
export function isEventStream(headers: readonly string[]): boolean {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length !== 12 || name.toLowerCase() !== 'content-type') continue;
    return /^\s*text\/event-stream\s*(?:;|$)/i.test(headers[i + 1] ?? '');
  }
  return false;
}
