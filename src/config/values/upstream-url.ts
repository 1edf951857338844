import { parseUnixSocketPath, suggestUnixSocket } from './listen-address.ts';
import { completeHost, splitScheme, cleanUrlText } from './url-typos.ts';
import type { ParseResult } from './text-codec.ts';
import { parseFailure, textCodec } from './text-codec.ts';

/** The `url` of the built-in practice upstream. */
export const PRACTICE_URL = 'practice';

/** An origin such as "https://api.stripe.com:8443", normalised; "unix:/path"; or "practice". */
export const UpstreamUrl = textCodec<string>({
  expected: 'a URL such as https://api.example.com',
  forms: [{ type: 'string', pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@]+/?$|^unix:/.' }, { const: PRACTICE_URL }],
  parse: parseUpstreamUrl,
  format: (url) => url,
});

const EXPECTED = 'expected an http or https URL such as https://api.example.com';
const ONLY_ORIGIN = 'only an origin, without path, query or fragment (for a path, set rewritePrefix of the route)';
const CREDENTIALS = 'a URL must not contain credentials: clients send their own';
const SEVERAL_URLS = 'expected one URL; for several endpoints write urls: [...]';
const SHELL_VARIABLE =
  'shell variables are not expanded: only variables of the environment are read, written with braces';
const SOCKET_FORM = 'a Unix socket is written unix:/path, with nothing after the path';

/** An http or https origin, a Unix socket, or "practice". Rejects other parts of a URL: routes map paths. */
export function parseUpstreamUrl(input: string | number): ParseResult<string> {
  const text = String(input);
  if (text === PRACTICE_URL) return { ok: true, value: text };
  const path = unixSocketPath(text);
  if (path !== undefined) {
    // In the notation of nginx and Express, a second colon separates the path of the URL.
    if (/:(?:\/|$)/.test(path)) return parseFailure(SOCKET_FORM, suggestUpstreamUrl(text));
    const socket = parseUnixSocketPath(path);
    return socket.ok ? { ok: true, value: text } : parseFailure(socket.message, suggestUpstreamUrl(text));
  }
  const url = WHOLE_URL_PATTERN.test(text) ? URL.parse(text) : null;
  const mistake = findUrlMistake(text, url);
  if (url !== null && mistake === undefined) return { ok: true, value: url.origin };
  const suggestion = suggestUpstreamUrl(text);
  const dropsPath = mistake === EXPECTED && suggestion !== undefined && hasTextAfterHost(text, suggestion);
  return parseFailure(dropsPath ? `${EXPECTED}: ${ONLY_ORIGIN}` : (mistake ?? EXPECTED), suggestion);
}

/** True if text follows the host that is not in the suggestion. */
function hasTextAfterHost(text: string, suggestion: string): boolean {
  const host = suggestion.slice(suggestion.indexOf('://') + 3);
  const at = text.indexOf(host);
  return !suggestion.startsWith('unix:') && at >= 0 && /[^\s"'>/]/.test(text.slice(at + host.length));
}

/** The path of the Unix socket that a `url` names; undefined if it names a host. */
export function unixSocketPath(url: string): string | undefined {
  return url.startsWith('unix:') ? url.slice('unix:'.length) : undefined;
}

/** Stricter than URL.parse, which reads http:///host and http:\\host as http://host. */
const WHOLE_URL_PATTERN = /^https?:\/\/[^/\\\s][^\\\s]*$/i;

function findUrlMistake(text: string, url: URL | null): string | undefined {
  if (suggestUnixSocket(text) !== undefined) return /unix/i.test(text) ? SOCKET_FORM : EXPECTED;
  if (/^(?:[^/]*:(?:\/+[^/?#]*|[^/?#:]*)|[^/?#]*)@/.test(text)) return CREDENTIALS;
  if (/^[^?#]*\S\s*(?:,|\s(?=https?:\/\/|\S+:\d))\s*\S/i.test(text)) return SEVERAL_URLS;
  if (/^https?:\/\/[^/?#]*\$/i.test(text)) return SHELL_VARIABLE;
  if (hasInvalidPort(text)) return 'a port is from 1 to 65535';
  if (url === null) return EXPECTED;
  if (url.hostname.includes('*')) return 'a host must not contain a wildcard';
  return url.pathname === '/' && !/[?#]/.test(text) ? undefined : ONLY_ORIGIN;
}

function hasInvalidPort(text: string): boolean {
  const [, port = '1'] = /^https?:\/\/(?:\[[^\]]*\]|[^/?#:]+):([^/?#:\s]+)(?:[/?#]|$)/i.exec(text) ?? [];
  return !(Number(port) >= 1 && Number(port) <= 65_535);
}

/** Other schemes and the scheme they imply; undefined if it depends on the host. */
const OTHER_SCHEMES: ReadonlyMap<string, string | undefined> = new Map([
  ['ws', 'http'],
  ['wss', 'https'],
  ['h2c', 'http'],
  ['ssl', 'https'],
  ['tls', 'https'],
  ['tcp', undefined],
]);
const MISTYPED_HTTP = /^(?:h*t+p+s*|httsp|hthps?)$/i;

/** A likely correction. Never repeats text that may contain a password. */
function suggestUpstreamUrl(text: string): string | undefined {
  if (text.includes('@')) return undefined;
  const plain = cleanUrlText(text);
  const url = suggestUnixSocket(plain) ?? suggestOrigin(plain.replace(/^https?:\/\/(?=https?:\/\/)/i, ''));
  return url !== undefined && url !== text && parseUpstreamUrl(url).ok ? url : undefined;
}

function suggestOrigin(text: string): string | undefined {
  const split = splitScheme(text);
  const { scheme: word = '', rest = '', isPort = false } = split ?? {};
  const scheme = intendedScheme(word);
  const isScheme = scheme !== undefined || (!isPort && OTHER_SCHEMES.has(word.toLowerCase()));
  if (split?.hasColon === true && !isPort && !isScheme) return undefined; // ftp://host: another protocol
  const [, slashes = '', named = '', more = ''] = /^(\/*)([^/?#]*)(.*)$/s.exec(isScheme ? rest : text) ?? [];
  const host = completeHost(named);
  if (host === undefined) return undefined;
  const isBareWord = !/[.:]/.test(host) && host !== 'localhost' && !isScheme && slashes === '' && more === '';
  return isBareWord ? undefined : `${scheme ?? guessScheme(host)}://${host}`; // a single word may be anything
}

function intendedScheme(word: string): string | undefined {
  if (MISTYPED_HTTP.test(word)) return /s/i.test(word) ? 'https' : 'http';
  return OTHER_SCHEMES.get(word.toLowerCase());
}

/** Internal names and addresses, where TLS is uncommon. */
const INTERNAL_HOST_PATTERN = /^(?:[^.]+|[\d.]+|\[.*\]|.*\.(?:local|localhost|internal|lan|home|test|svc|consul))\.?$/i;

/** True for a host that is probably reached over a private network. */
export function isInternalHost(host: string): boolean {
  return INTERNAL_HOST_PATTERN.test(host);
}

function guessScheme(host: string): string {
  const [, name = host, port = ''] = /^(.*?)(?::(\d+))?$/.exec(host) ?? [];
  if (port === '443' || port === '8443') return 'https';
  return port === '80' || isInternalHost(name) ? 'http' : 'https';
}
