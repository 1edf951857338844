/** Idempotency keys of requests: where they stand, and which are minted here. */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { listElements } from '../../core/http-semantics/list-field.ts';
import { normalizeEscapes } from '../../core/http-semantics/path-pattern.ts';
import { readJsonField } from '../../core/http-semantics/json-field.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { isSafeMethod } from '../../core/exchange/attempt-outcome.ts';
import type { AccountPart } from './key-account.ts';
import { nameAccount } from './key-account.ts';
import type { Arrival } from '../request/routed-request.ts';
import type { RequestBody } from '../request/request-body.ts';
import { isListedInConnection } from '../headers/forward-headers.ts';
import type { Inbound } from '../server/server-request.ts';
import { isPlainJson } from '../headers/media-type.ts';
import type { Route } from '../request/snapshot-types.ts';
import { bareHost, upstreamPath } from '../request/router.ts';

/** How an upstream recognises a write that it has seen before. */
export interface Idempotency {
  /** The header with the key, as it is written and in lower case; undefined where it knows none. */
  readonly header: { readonly name: string; readonly lower: string } | undefined;
  /** The names that lead to the key in a JSON body; undefined where none is looked for. */
  readonly jsonField: readonly string[] | undefined;
  /** What names the account that a key belongs to. */
  readonly account: readonly AccountPart[];
  /** The headers of these, in lower case. */
  readonly accountHeaders: ReadonlySet<string>;
  /** The header by which the upstream marks a stored answer, in lower case; undefined where it does not. */
  readonly replayedHeader: string | undefined;
  /** Whether a key is minted for a POST or PATCH that has none. Only where there is a header for it. */
  readonly generates: boolean;
  /** What becomes of a request whose key is under way with another. */
  readonly concurrent: 'wait' | 'refuse' | 'pass';
  /** How long a key is remembered; undefined where that is not known. */
  readonly ttlOf: ((method: string, path: string) => Millis | undefined) | undefined;
}

export interface IdempotencyKey {
  readonly value: string;
  readonly from: 'header' | 'body' | 'minted';
}

/**
 * The key that a request has, or gets, before its body is read. A header that stands more than once is no key: which of its lines
 * the upstream reads, nobody knows. A name with an underscore for a dash is the same to upstreams behind CGI and its heirs.
 */
export function keyAtArrival(request: Inbound, { target }: Pick<Route, 'target'>): IdempotencyKey | undefined {
  const { header, generates } = target.idempotency;
  if (header === undefined) return undefined;
  // What is for this hop alone does not reach the upstream, which then knows of none.
  const isOfHop = isListedInConnection(request.rawHeaders, header.lower);
  const lines = linesOf(request.rawHeaders, header.lower).filter(({ isExact }) => !(isExact && isOfHop));
  const [line] = lines;
  if (lines.length === 1 && line?.isExact === true && line.value !== '') return { value: line.value, from: 'header' };
  const isMintable = request.verb === 'POST' || request.verb === 'PATCH';
  if (!generates || !isMintable || lines.some(({ value, isExact }) => value !== '' || !isExact)) return undefined;
  return { value: randomUUID(), from: 'minted' };
}

interface Line {
  readonly value: string;
  /** Its name has no underscore for a dash. */
  readonly isExact: boolean;
}

function linesOf(rawHeaders: readonly string[], lower: string): Line[] {
  const lines: Line[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length !== lower.length) continue;
    const own = name.toLowerCase();
    if (own !== lower && own.replaceAll('_', '-') !== lower.replaceAll('_', '-')) continue;
    lines.push({ value: (rawHeaders[i + 1] ?? '').trim(), isExact: own === lower });
  }
  return lines;
}

/** Its headers with a minted key in place of an empty one. */
export function withMintedKey(
  headers: string[],
  { name, lower }: { name: string; lower: string },
  key: string,
): string[] {
  const others = headers.filter((_, i) => headers[i - (i % 2)]?.toLowerCase() !== lower);
  others.push(name, key);
  return others;
}

/** Whether the key, if there is one, stands in its body: then that is read before anything is decided. */
export function hasKeyInBody(request: Inbound, route: Route): boolean {
  const { verb, headers, hasBody } = request;
  if (route.target.idempotency.jsonField === undefined || !hasBody || isSafeMethod(verb)) return false;
  if (Number(headers['content-length'] ?? 0) > route.replayLimit) return false;
  return (
    isReadable(headers) &&
    !isRepeated(request, 'content-type') &&
    !isListedInConnection(request.rawHeaders, 'content-type')
  );
}

/** @param body kept whole; undefined where there is none */
export function keyInBody(
  { request, route }: Pick<Arrival, 'request' | 'route'>,
  body: Pick<RequestBody, 'payload'> | undefined,
): IdempotencyKey | undefined {
  const { jsonField } = route.target.idempotency;
  if (jsonField === undefined || body === undefined || !hasKeyInBody(request, route)) return undefined;
  const bytes = body.payload();
  const value = Buffer.isBuffer(bytes) ? readJsonField(bytes, jsonField) : undefined;
  return value === undefined ? undefined : { value, from: 'body' };
}

/** How long the upstream remembers a key of this request; undefined where that is not known, and for what has no effect. */
export function keyTtlOf(request: Inbound, route: Route): Millis | undefined {
  const { ttlOf } = route.target.idempotency;
  if (ttlOf === undefined || isSafeMethod(request.verb)) return undefined;
  return ttlOf(request.verb, upstreamPath(request.target, route));
}

/** Which write this is: two of one name and credential take effect once. It holds secrets: not to be kept beyond the request. */
export function nameWrite({ request, route }: Pick<Arrival, 'request' | 'route'>, key: string): string {
  const { name, idempotency } = route.target;
  const account = nameAccount(idempotency.account, request);
  // With `preserveHost` the upstream sees the client's Host, and two hosts are two resources.
  const host = route.target.preserveHost ? bareHost(request.headers.host ?? '') : '';
  return [name, account, host, request.verb, normalizeEscapes(upstreamPath(request.target, route)), key].join('\0');
}

/**
 * What its client authenticates by, or else who it is. Evidence alone: it may change while the write stays the same, as tokens
 * are refreshed and requests are signed one by one.
 */
export function credentialOf({ request, route, client }: Arrival): Credential {
  const header = route.target.credentialHeader;
  const value = request.headers[header];
  if (value === undefined) return { kind: 'client', header, value: client.hash };
  return { kind: 'header', header, value: String(value) };
}

export interface Credential {
  readonly kind: 'header' | 'client';
  /** Where it was looked for, in lower case. */
  readonly header: string;
  readonly value: string;
}

/** Where it stands; of one that was minted here, what it is. */
export function tellKey(key: IdempotencyKey | undefined, { target }: Pick<Route, 'target'>): string | undefined {
  const { header, jsonField } = target.idempotency;
  switch (key?.from) {
    case 'header':
      return `in ${header?.name}`;
    case 'body':
      return `in ${jsonField?.join('.')} of its body`;
    case 'minted':
      return `minted here: ${key.value}`;
    case undefined:
      return undefined;
  }
}

function isReadable(headers: IncomingHttpHeaders): boolean {
  const codings = listElements(headers['content-encoding']?.toLowerCase());
  return codings.every((coding) => coding === 'identity') && isPlainJson(headers['content-type'] ?? '');
}

function isRepeated({ rawHeaders }: Inbound, header: string): boolean {
  return rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === header).length > 1;
}
