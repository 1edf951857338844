/** Finds the idempotency key of a request, or generates one, and names the write that it identifies. */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { parseListField } from '../../core/http-semantics/list-field.ts';
import { normalizeEscapes } from '../../core/http-semantics/path-pattern.ts';
import { readJsonField } from '../../core/http-semantics/json-field.ts';
import { NO_OWNER } from '../../core/idempotency/key-owner.ts';
import type { Millis } from '../../core/scalars.ts';
import { isSafeMethod } from '../../core/http-semantics/methods.ts';
import { keyAccountOf } from './key-account.ts';
import { addressGroupOf, type ClientIdentity } from '../request/client-identity.ts';
import type { RequestBody } from '../request/request-body.ts';
import { isListedInConnection } from '../headers/forward-headers.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import { isPlainJsonType } from '../headers/media-type.ts';
import { keyLinesOf, NO_LINES, textOfKey } from './key-header.ts';
import { derivesKeys, type KeyScopeOfRequest } from './upstream-key.ts';
import type { Route } from '../request/route.ts';
import { normalizeHost, upstreamPath } from '../request/router.ts';
import type { IdempotencyKey, IdempotencySettings, WriteCredential } from './idempotency-types.ts';
import type { WriteNameParts } from './write-digests.ts';

/** A request and its route. */
export interface RequestOnRoute {
  readonly request: HttpServerRequest;
  readonly route: Route;
}

interface RequestOfClient {
  readonly request: Pick<HttpServerRequest, 'headers'> & KeyScopeOfRequest['request'];
  readonly route: KeyScopeOfRequest['route'] & { readonly target: Pick<Route['target'], 'credentialHeader'> };
  readonly client: Pick<ClientIdentity, 'identifiedBy' | 'hash' | 'addressGroup' | 'keyOwner'>;
}

/**
 * The key in the headers of a request, or a generated one. A repeated header is not a key, because it is unknown which
 * of its lines the upstream reads. A name with underscores counts as the same header, as it does for upstreams that
 * follow CGI.
 */
export function keyFromHeaders(
  request: Pick<HttpServerRequest, 'verb' | 'rawHeaders'>,
  { target }: { readonly target: { readonly idempotency: Pick<IdempotencySettings, 'header' | 'generates'> } },
): IdempotencyKey | undefined {
  const { header, generates } = target.idempotency;
  if (header === undefined) return undefined;
  const present = keyLinesOf(request.rawHeaders, header.lower);
  if (present === NO_LINES && !generates) return undefined; // as most requests
  // A header for this hop only does not reach the upstream.
  const isHopByHop = isListedInConnection(request.rawHeaders, header.lower);
  const lines = present.filter(({ isExact }) => !(isExact && isHopByHop));
  const [line] = lines;
  if (lines.length === 1 && line?.isExact === true && line.value !== '') {
    return { value: textOfKey(line.value), from: 'header' };
  }
  const isMintable = request.verb === 'POST' || request.verb === 'PATCH';
  if (!generates || !isMintable || lines.some(({ value, isExact }) => value !== '' || !isExact)) return undefined;
  return { value: randomUUID(), from: 'minted' };
}

/**
 * The lines of a write's key header that are no key for Tidegate, because they are repeated or have an underscore, as one text. The
 * upstream may read any of them as the key. Undefined if there are none.
 */
export function ambiguousKeyOf({ request, route }: RequestOnRoute): string | undefined {
  const { header } = route.target.idempotency;
  if (header === undefined || isSafeMethod(request.verb)) return undefined;
  const lines = keyLinesOf(request.rawHeaders, header.lower);
  return lines === NO_LINES ? undefined : lines.map(({ value }) => value).join(', ');
}

/** Whether the body may contain the key: then it is read before admission. */
export function mayHaveKeyInBody(request: HttpServerRequest, route: Route): boolean {
  if (route.target.idempotency.jsonField === undefined) return false;
  const { verb, headers, hasBody } = request;
  if (!hasBody || isSafeMethod(verb)) return false;
  if (Number(headers['content-length'] ?? 0) > route.replayLimit) return false;
  return (
    isPlainJsonBody(headers) &&
    !hasRepeatedHeader(request, 'content-type') &&
    !isListedInConnection(request.rawHeaders, 'content-type')
  );
}

/** The key in the body; undefined if there is none. @param body undefined if the request has none, or it is not kept */
export function keyInBody(
  { request, route }: RequestOnRoute,
  body: Pick<RequestBody, 'payload'> | undefined,
): IdempotencyKey | undefined {
  const { jsonField } = route.target.idempotency;
  if (jsonField === undefined || body === undefined || !mayHaveKeyInBody(request, route)) return undefined;
  const bytes = body.payload();
  const value = Buffer.isBuffer(bytes) ? readJsonField(bytes, jsonField) : undefined;
  return value === undefined ? undefined : { value, from: 'body' };
}

/** How long the upstream remembers a key of this request; undefined if not known, and for safe methods. */
export function keyTtlOf(request: HttpServerRequest, route: Route): Millis | undefined {
  const { ttlOf } = route.target.idempotency;
  if (ttlOf === undefined || isSafeMethod(request.verb)) return undefined;
  return ttlOf(request.verb, upstreamPath(request.target, route));
}

/**
 * Names the write: two requests of one name and credential take effect once. Contains secrets: not to be kept beyond the request.
 * @param account that the request names
 */
export function writeNameOf(
  { request, route }: RequestOnRoute,
  key: string,
  account = keyAccountOf(route.target.idempotency.account, request),
): WriteNameParts {
  const { name } = route.target;
  // With `preserveHost` the upstream sees the client's Host, and two hosts are two resources.
  const host = route.target.preserveHost ? normalizeHost(request.headers.host ?? '') : '';
  const path = normalizeEscapes(upstreamPath(request.target, route));
  return { name: [name, account, host, request.verb, path, key].join('\0'), key };
}

/**
 * The client's credential, or else its identity, which is the same for all that only an address identifies: a job may be repeated
 * from another one. Evidence only: it may change while the write stays the same, because tokens are refreshed and requests signed
 * one by one. Through accounts, the credential of a client does not reach the upstream, so the name of the client counts if it has one.
 * Where each client has keys of its own, all clients without a name are one.
 */
export function writeCredentialOf({ request, route, client }: RequestOfClient): WriteCredential {
  const { credentialHeader: header, accounts } = route.target;
  const keyOwner = derivesKeys({ request, route }) ? (client.keyOwner ?? NO_OWNER) : undefined;
  const common = { header, owner: addressGroupOf(client), keyOwner };
  const name = (keyOwner ?? (accounts === undefined ? undefined : client.keyOwner))?.name;
  // Without a header, an earlier version compares the name with no credential: it takes a repeat for one of an unknown client, and
  // does not send it as a write of its own.
  if (name !== undefined) return { kind: 'client', value: name, ...common, header: '' };
  const value = request.headers[header];
  if (value !== undefined) return { kind: 'header', value: String(value), ...common };
  return { kind: 'client', value: client.identifiedBy === 'ip' ? '' : client.hash, ...common };
}

/** Where the key was found, for explanations. The value is shown for a generated key only. */
export function describeKey(key: IdempotencyKey | undefined, { target }: Pick<Route, 'target'>): string | undefined {
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

function isPlainJsonBody(headers: IncomingHttpHeaders): boolean {
  const codings = parseListField(headers['content-encoding']?.toLowerCase());
  return codings.every((coding) => coding === 'identity') && isPlainJsonType(headers['content-type'] ?? '');
}

function hasRepeatedHeader({ rawHeaders }: HttpServerRequest, header: string): boolean {
  return rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === header).length > 1;
}
