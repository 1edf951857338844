/** Idempotency keys of requests: where they stand, and which are minted here. */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { listElements } from '../policy/list-field.ts';
import { readJsonField } from '../policy/read-json-field.ts';
import type { Millis } from '../policy/types.ts';
import { isSafeMethod } from '../policy/types.ts';
import type { Arrival } from './arrival.ts';
import type { RequestBody } from './body.ts';
import { isListedInConnection } from './headers.ts';
import type { Inbound } from './inbound.ts';
import type { Route } from './plan.ts';
import { upstreamPath } from './router.ts';

/** How an upstream recognises a write that it has seen before. */
export interface Idempotency {
  /** The header with the key, as it is written and in lower case; undefined where it knows none. */
  readonly header: { readonly name: string; readonly lower: string } | undefined;
  /** The names that lead to the key in a JSON body; undefined where none is looked for. */
  readonly jsonField: readonly string[] | undefined;
  /** The header by which the upstream marks a stored answer, in lower case; absent where it does not. */
  readonly replayedHeader?: string | undefined;
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

/** The key that a request has, or gets, before its body is read. */
export function keyAtArrival(request: Inbound, { target }: Pick<Route, 'target'>): IdempotencyKey | undefined {
  const { header, generates } = target.idempotency;
  if (header === undefined) return undefined;
  const value = request.headers[header.lower] ?? '';
  // One that is for this hop alone does not reach the upstream, which then knows of none.
  if (value !== '' && !isListedInConnection(request.rawHeaders, header.lower)) {
    return { value: String(value), from: 'header' };
  }
  if (!generates || !isMintable(request, header.lower)) return undefined;
  return { value: randomUUID(), from: 'minted' };
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
  return isPlainJson(headers) && !isRepeated(request, 'content-type');
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

/** What tells a write from others. It holds secrets: not to be kept beyond the request. */
export interface WriteName {
  /** Of the upstream, the account, what is asked for, and the key. */
  readonly name: string;
  /** What the client authenticates by; empty where it does not. Evidence alone: it may change while the write stays the same. */
  readonly credential: string;
}

/** Which write this is: two of one name take effect once. */
export function nameWrite({ request, route }: Pick<Arrival, 'request' | 'route'>, key: string): WriteName {
  const { name, credentialHeader } = route.target;
  return {
    name: [name, request.verb, upstreamPath(request.target, route), key].join('\0'),
    credential: String(request.headers[credentialHeader] ?? ''),
  };
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

/** One with an underscore for a dash is the same to upstreams behind CGI and its heirs: its client has a key. */
function isMintable({ verb, rawHeaders }: Inbound, header: string): boolean {
  if (verb !== 'POST' && verb !== 'PATCH') return false;
  return !rawHeaders.some(
    (name, i) => i % 2 === 0 && name.includes('_') && name.toLowerCase().replaceAll('_', '-') === header,
  );
}

function isPlainJson(headers: IncomingHttpHeaders): boolean {
  const codings = listElements(headers['content-encoding']?.toLowerCase());
  const type = headers['content-type'] ?? '';
  return (
    codings.every((coding) => coding === 'identity') &&
    /^application\/(?:[\w.!#$&^+-]+\+)?json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i.test(type)
  );
}

function isRepeated({ rawHeaders }: Inbound, header: string): boolean {
  return rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === header).length > 1;
}
