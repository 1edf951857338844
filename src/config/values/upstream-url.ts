import { readSocket, suggestSocket } from './listen-address.ts';
import { completeHost, partScheme, tidyUrl } from './url-typos.ts';
import type { Reading } from './text-codec.ts';
import { misread, written } from './text-codec.ts';

/** The `url` of the upstream that this process plays itself. */
export const PRACTICE_URL = 'practice';

/** An origin such as "https://api.stripe.com:8443", normalised; "unix:/path"; or "practice". */
export const UpstreamUrl = written<string>({
  expected: 'a URL such as https://api.example.com',
  forms: [{ type: 'string', pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@]+/?$|^unix:/.' }, { const: PRACTICE_URL }],
  read: readUpstreamUrl,
  write: (url) => url,
});

const EXPECTED = 'expected an http or https URL such as https://api.example.com';
const ONLY_ORIGIN = 'only an origin: no path, query or fragment (a route may have a rewritePrefix)';
const CREDENTIALS = 'credentials are not taken from a URL: clients send their own';
const SEVERAL = 'one URL: several endpoints are a list, urls: [...]';
const VARIABLE = 'a host without a variable: of those, only the environment’s are read, and written with braces';
const SOCKET = 'a Unix socket is written unix:/path, with nothing behind its path';

/** An http or https origin, a Unix socket, or "practice". What else a URL may have is refused: a route says which paths go where. */
export function readUpstreamUrl(input: string | number): Reading<string> {
  const text = String(input);
  if (text === PRACTICE_URL) return { ok: true, value: text };
  const path = socketOf(text);
  if (path !== undefined) {
    // As nginx and Express write it, a path of the URL stands behind another colon.
    if (/:(?:\/|$)/.test(path)) return misread(SOCKET, suggestUrl(text));
    const socket = readSocket(path);
    return socket.ok ? { ok: true, value: text } : misread(socket.message, suggestUrl(text));
  }
  const url = WHOLE.test(text) ? URL.parse(text) : null;
  const mistake = findMistake(text, url);
  if (url !== null && mistake === undefined) return { ok: true, value: url.origin };
  const suggestion = suggestUrl(text);
  const dropsPath = mistake === EXPECTED && suggestion !== undefined && hasMore(text, suggestion);
  return misread(dropsPath ? `${EXPECTED}: ${ONLY_ORIGIN}` : (mistake ?? EXPECTED), suggestion);
}

/** Something stands behind the host that is not in the suggestion. */
function hasMore(text: string, suggestion: string): boolean {
  const host = suggestion.slice(suggestion.indexOf('://') + 3);
  const at = text.indexOf(host);
  return !suggestion.startsWith('unix:') && at >= 0 && /[^\s"'>/]/.test(text.slice(at + host.length));
}

/** The path of the Unix socket that a `url` names; undefined where it names a host. */
export function socketOf(url: string): string | undefined {
  return url.startsWith('unix:') ? url.slice('unix:'.length) : undefined;
}

/** Stricter than URL.parse, which takes http:///host and http:\\host for http://host. */
const WHOLE = /^https?:\/\/[^/\\\s][^\\\s]*$/i;

function findMistake(text: string, url: URL | null): string | undefined {
  if (suggestSocket(text) !== undefined) return /unix/i.test(text) ? SOCKET : EXPECTED;
  if (/^(?:[^/]*:\/*)?[^/?#]*@/.test(text)) return CREDENTIALS;
  if (/^[^?#]*\S\s*(?:,|\s(?=https?:\/\/|\S+:\d))\s*\S/i.test(text)) return SEVERAL;
  if (/^https?:\/\/[^/?#]*\$/i.test(text)) return VARIABLE;
  if (isPortWrong(text)) return 'a port is from 1 to 65535';
  if (url === null) return EXPECTED;
  if (url.hostname.includes('*')) return 'a host without a wildcard';
  return url.pathname === '/' && !/[?#]/.test(text) ? undefined : ONLY_ORIGIN;
}

function isPortWrong(text: string): boolean {
  const [, port = '1'] = /^https?:\/\/(?:\[[^\]]*\]|[^/?#:]+):([^/?#:\s]+)(?:[/?#]|$)/i.exec(text) ?? [];
  return !(Number(port) >= 1 && Number(port) <= 65_535);
}

/** Schemes that say how a host is spoken to, in other words; undefined where the host has to tell. */
const OTHER_SCHEMES: ReadonlyMap<string, string | undefined> = new Map([
  ['ws', 'http'],
  ['wss', 'https'],
  ['h2c', 'http'],
  ['ssl', 'https'],
  ['tls', 'https'],
  ['tcp', undefined],
]);
const SLIP_OF_HTTP = /^(?:h*t+p+s*|httsp|hthps?)$/i;
/** What may have been meant, as it has to be written. Nothing that may hold a password is repeated. */
function suggestUrl(text: string): string | undefined {
  if (text.includes('@')) return undefined;
  const plain = tidyUrl(text);
  const url = suggestSocket(plain) ?? suggestOrigin(plain.replace(/^https?:\/\/(?=https?:\/\/)/i, ''));
  return url !== undefined && url !== text && readUpstreamUrl(url).ok ? url : undefined;
}

function suggestOrigin(text: string): string | undefined {
  const parted = partScheme(text);
  const { word = '', behind = '', isPort = false } = parted ?? {};
  const scheme = schemeMeant(word);
  const isScheme = scheme !== undefined || (!isPort && OTHER_SCHEMES.has(word.toLowerCase()));
  if (parted?.hasColon === true && !isPort && !isScheme) return undefined; // ftp://host: whatever it is, it is spoken to otherwise
  const [, slashes = '', named = '', more = ''] = /^(\/*)([^/?#]*)(.*)$/s.exec(isScheme ? behind : text) ?? [];
  const host = completeHost(named);
  if (host === undefined) return undefined;
  const isAlone = !/[.:]/.test(host) && host !== 'localhost' && !isScheme && slashes === '' && more === '';
  return isAlone ? undefined : `${scheme ?? guessScheme(host)}://${host}`; // a word alone may be anything
}

function schemeMeant(word: string): string | undefined {
  if (SLIP_OF_HTTP.test(word)) return /s/i.test(word) ? 'https' : 'http';
  return OTHER_SCHEMES.get(word.toLowerCase());
}

/** Names that only machines of one network know are mostly spoken to without TLS. */
const INSIDE = /^(?:[^.]+|[\d.]+|\[.*\]|.*\.(?:local|localhost|internal|lan|home|test|svc|consul))\.?$/i;

function guessScheme(host: string): string {
  const [, name = host, port = ''] = /^(.*?)(?::(\d+))?$/.exec(host) ?? [];
  if (port === '443' || port === '8443') return 'https';
  return port === '80' || INSIDE.test(name) ? 'http' : 'https';
}
