/**
 * Compares messages with and without the proxy. This file is the complete list of allowed changes, with a reason for each;
 * everything else must be identical.
 */
import type { Field, HttpMessage, HttpResponse } from '../clients/http-message.ts';
import { valuesOf } from '../clients/http-message.ts';

/** Hop-by-hop fields (RFC 9110 §7.6.1): not forwarded in either direction, like the fields that Connection lists. */
const HOP_BY_HOP = [
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'transfer-encoding', 'upgrade'],
];

/** Request headers that the proxy changes. */
const REQUEST = {
  /** Written by the HTTP client for its own hop. */
  own: ['connection', 'transfer-encoding'],
  /** Rewritten to the upstream's host, because `preserveHost` is off. */
  rewritten: ['host'],
  /** Set by the proxy; values from untrusted clients are replaced. */
  chain: ['via', 'x-request-id', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded'],
  /** Internal headers between proxies, removed from untrusted requests. */
  refused: /^(?:tidegate-|x-envoy-)/,
  /** Request trailers are dropped, so none are announced (undici 8 cannot send them). */
  dropped: ['trailer'],
  /** Written by the HTTP client, at the end and in lower case; compared separately as framing. */
  framing: ['content-length'],
};

/** Response headers that the proxy changes. */
const RESPONSE = {
  own: ['connection', 'keep-alive', 'transfer-encoding'],
  /** The proxy's own entry is appended. */
  chain: ['via'],
  /** Set by the last Tidegate in a chain. */
  ours: /^tidegate-/,
  /** Added if missing (for Date: RFC 9110 §6.6.1). */
  added: ['date', 'x-request-id'],
};

/** The default replay buffer size in bytes. A chunked body that fits is forwarded with a Content-Length. */
const REPLAY_LIMIT = 65_536;

/** Returns the differences between a request that arrived through the proxy and one that arrived directly. */
export function differencesOfRequests(direct: HttpMessage, proxied: HttpMessage): string[] {
  const gone = new Set([
    ...[...HOP_BY_HOP, ...listed(direct.fields), ...REQUEST.rewritten, ...REQUEST.chain],
    ...[...REQUEST.dropped, ...REQUEST.framing],
  ]);
  const sent = direct.fields.filter(
    ([name]) => !gone.has(name.toLowerCase()) && !REQUEST.refused.test(name.toLowerCase()),
  );
  const ours = new Set([...REQUEST.own, ...REQUEST.rewritten, ...REQUEST.chain, ...REQUEST.framing]);
  const arrived = proxied.fields.filter(([name]) => !ours.has(name.toLowerCase()));
  return [
    // HTTP/1.0 is forwarded as HTTP/1.1, because the version belongs to the hop.
    ...differ('request line', direct.startLine.replace(/1\.0$/, '1.1'), proxied.startLine),
    ...differOfFields('request header', sent, arrived),
    ...differ('request body', direct.body, proxied.body),
    ...differ('request framing', expectedFraming(direct), framingOf(proxied)),
    ...differ('request trailers', '[]', JSON.stringify(proxied.trailers)),
  ];
}

/** Returns the differences between a response through the proxy and a direct one. @param version of the client */
export function differencesOfResponses(direct: HttpResponse, proxied: HttpResponse, version: string): string[] {
  const [before, after] = [direct.final, proxied.final];
  const gone = new Set([...HOP_BY_HOP, ...listed(before.fields), ...RESPONSE.chain]);
  // Trailers need chunked encoding, which HTTP/1.0 does not have.
  const hasTrailers = after.framing === 'chunked';
  if (!hasTrailers) gone.add('trailer');
  const sent = before.fields.filter(
    ([name]) => !gone.has(name.toLowerCase()) && !RESPONSE.ours.test(name.toLowerCase()),
  );
  const ours = new Set([...RESPONSE.own, ...RESPONSE.chain]);
  for (const name of RESPONSE.added) if (valuesOf(before.fields, name).length === 0) ours.add(name);
  const arrived = after.fields.filter(
    ([name]) => !ours.has(name.toLowerCase()) && !RESPONSE.ours.test(name.toLowerCase()),
  );
  return [
    ...differOfInterim(direct, proxied, version),
    ...differ('status line', before.startLine, after.startLine),
    ...differOfFields('response header', sent, arrived),
    ...differ('response body', before.body, after.body),
    ...differ('response framing', expectedResponseFraming(before, version), after.framing),
    ...differOfFields('response trailer', hasTrailers ? before.trailers : [], after.trailers),
  ];
}

/** Other 1xx than 100 are forwarded with Node's reason phrase, but not to HTTP/1.0, which does not have them. */
function differOfInterim(direct: HttpResponse, proxied: HttpResponse, version: string): string[] {
  const statusOf = ({ startLine }: HttpMessage) => startLine.slice(0, 'HTTP/1.1 103'.length);
  const sent = version === '1.0' ? [] : direct.interim.filter((each) => !statusOf(each).endsWith('100'));
  const summarize = (all: readonly HttpMessage[]) =>
    JSON.stringify(
      all.map((each) => [statusOf(each), each.fields.filter(([name]) => !HOP_BY_HOP.includes(name.toLowerCase()))]),
    );
  return differ('interim responses', summarize(sent), summarize(proxied.interim));
}

/** A length is kept; a short chunked body gets a length. An empty body may have no length or a length of zero. */
function expectedFraming({ framing, body }: HttpMessage): string {
  if (body === '') return 'empty';
  return framing === 'chunked' && body.length > REPLAY_LIMIT ? 'chunked' : 'length';
}

function framingOf({ framing, body }: HttpMessage): string {
  return body === '' && framing !== 'chunked' ? 'empty' : framing;
}

/** A length is kept; a body ended by the connection is forwarded chunked, except to HTTP/1.0. */
function expectedResponseFraming({ framing }: HttpMessage, version: string): string {
  if (framing === 'none' || framing === 'length') return framing;
  return version === '1.0' ? 'close' : 'chunked';
}

function listed(fields: readonly Field[]): string[] {
  return valuesOf(fields, 'connection').flatMap((value) => value.split(',').map((name) => name.trim().toLowerCase()));
}

function differ(what: string, direct: string, proxied: string): string[] {
  if (direct === proxied) return [];
  let at = 0;
  while (direct[at] === proxied[at]) at += 1;
  const from = Math.max(0, at - 20);
  const show = (text: string) => JSON.stringify(text.slice(from, at + 80));
  return [`${what}, at ${at} of ${direct.length} and ${proxied.length}: ${show(direct)} became ${show(proxied)}`];
}

/** Compares fields by order, case and bytes. */
function differOfFields(what: string, direct: readonly Field[], proxied: readonly Field[]): string[] {
  const lines = (fields: readonly Field[]) => fields.map(([name, value]) => `${name}: ${value}`);
  const [before, after] = [lines(direct), lines(proxied)];
  const missing = before.filter((line) => !after.includes(line)).map((line) => `${what} lost: ${line}`);
  const added = after.filter((line) => !before.includes(line)).map((line) => `${what} added: ${line}`);
  if (missing.length + added.length > 0) return [...missing, ...added];
  return differ(`${what} order`, before.join('\n'), after.join('\n'));
}
