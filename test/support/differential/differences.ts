/**
 * What a message may look like behind the proxy, and nothing else: the one list of what is allowed to change, each with
 * its reason, and the comparison of everything that is not.
 */
import type { Field, HttpMessage, HttpResponse } from '../http-message.ts';
import { valuesOf } from '../http-message.ts';

/** Of one hop (RFC 9110 §7.6.1): must not pass in either direction, nor what Connection lists. */
const HOP_BY_HOP = [
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'transfer-encoding', 'upgrade'],
];

/** Request headers that do not arrive as they were sent. */
const REQUEST = {
  /** The hop's own: what the HTTP client writes itself. */
  own: ['connection', 'transfer-encoding'],
  /** Names the upstream (`preserveHost` is off). */
  rewritten: ['host'],
  /** Who passed it on, and for whom; what a stranger says of that is not believed. */
  chain: ['via', 'x-request-id', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded'],
  /** Of proxies to each other: not taken from strangers. */
  refused: /^(?:tidegate-|x-envoy-)/,
  /** Request trailers are dropped, so none are announced (undici 8 cannot send them). */
  dropped: ['trailer'],
  /** Written by the HTTP client, at the end and in lower case; compared apart, as framing. */
  framing: ['content-length'],
};

/** Response headers that do not arrive as they were sent. */
const RESPONSE = {
  own: ['connection', 'keep-alive', 'transfer-encoding'],
  /** Ours is appended to those that came. */
  chain: ['via'],
  /** Told by the last of us. */
  ours: /^tidegate-/,
  /** Added where it is missing (RFC 9110 §6.6.1 has a proxy add Date). */
  added: ['date', 'x-request-id'],
};

/** The longest body that is kept for a retry; one that was chunked then goes on with a length. */
const REPLAY_LIMIT = 65_536;

/** How what arrived at the upstream differs from what arrives there without us; empty when it does not. */
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
    // HTTP/1.0 goes on as HTTP/1.1: the version is each hop's own.
    ...differ('request line', direct.startLine.replace(/1\.0$/, '1.1'), proxied.startLine),
    ...differOfFields('request header', sent, arrived),
    ...differ('request body', direct.body, proxied.body),
    ...differ('request framing', expectedFraming(direct), framingOf(proxied)),
    ...differ('request trailers', '[]', JSON.stringify(proxied.trailers)),
  ];
}

/** How an answer differs from what it is without us. @param version of the client */
export function differencesOfResponses(direct: HttpResponse, proxied: HttpResponse, version: string): string[] {
  const [before, after] = [direct.final, proxied.final];
  const gone = new Set([...HOP_BY_HOP, ...listed(before.fields), ...RESPONSE.chain]);
  // Only behind chunks can trailers go, and HTTP/1.0 knows no chunks.
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

/** A 100 is for this hop. The rest passes, its reason as Node has it, but not to HTTP/1.0, which knows none. */
function differOfInterim(direct: HttpResponse, proxied: HttpResponse, version: string): string[] {
  const statusOf = ({ startLine }: HttpMessage) => startLine.slice(0, 'HTTP/1.1 103'.length);
  const sent = version === '1.0' ? [] : direct.interim.filter((each) => !statusOf(each).endsWith('100'));
  const told = (all: readonly HttpMessage[]) =>
    JSON.stringify(
      all.map((each) => [statusOf(each), each.fields.filter(([name]) => !HOP_BY_HOP.includes(name.toLowerCase()))]),
    );
  return differ('interim answers', told(sent), told(proxied.interim));
}

/** A length stays that length; what was chunked and short goes on with one. No content may be told as none or as zero. */
function expectedFraming({ framing, body }: HttpMessage): string {
  if (body === '') return 'empty';
  return framing === 'chunked' && body.length > REPLAY_LIMIT ? 'chunked' : 'length';
}

function framingOf({ framing, body }: HttpMessage): string {
  return body === '' && framing !== 'chunked' ? 'empty' : framing;
}

/** A length stays that length; what ends with the connection goes on in chunks; none of them to HTTP/1.0. */
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

/** Order, case and every byte count. */
function differOfFields(what: string, direct: readonly Field[], proxied: readonly Field[]): string[] {
  const lines = (fields: readonly Field[]) => fields.map(([name, value]) => `${name}: ${value}`);
  const [before, after] = [lines(direct), lines(proxied)];
  const missing = before.filter((line) => !after.includes(line)).map((line) => `${what} lost: ${line}`);
  const added = after.filter((line) => !before.includes(line)).map((line) => `${what} added: ${line}`);
  if (missing.length + added.length > 0) return [...missing, ...added];
  return differ(`${what} order`, before.join('\n'), after.join('\n'));
}
