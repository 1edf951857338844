import { z } from 'zod';
import { HeaderName, Method } from './name-schemas.ts';
import { Duration } from '../values/unit-schemas.ts';
import type { ParseResult } from '../values/text-codec.ts';
import { parseFailure, textCodec } from '../values/text-codec.ts';

/** The origin of a page: scheme, host and port, as browsers send it (RFC 6454 §6.2), or with `*` for any subdomain; or `*`. */
const Origin = textCodec<string>({
  expected: 'an origin such as https://app.example.com, https://*.example.com, or *',
  forms: [{ type: 'string', pattern: String.raw`^(\*|[a-z][a-z0-9+.-]*://[^/?#]+)$` }],
  parse: parseOrigin,
  format: (origin) => origin,
});

const AnyWildcard = z.literal('*');

/** What pages of other origins may do, for a route whose preflights are answered here. */
const CorsRules = z.strictObject({
  origins: z.array(Origin).min(1).describe('Origins whose pages may read responses; * for all.'),
  methods: z
    .array(z.union([AnyWildcard, Method], 'expected a method, or *'))
    .min(1)
    .optional()
    .describe('Methods that these pages may use; those of the route if absent.'),
  headers: z
    .array(HeaderName)
    .optional()
    .describe('Request headers allowed besides the safelisted ones; all that are requested if absent.'),
  exposeHeaders: z
    .array(HeaderName)
    .prefault([])
    .describe(
      'Response headers of the upstream that pages may read; those of Tidegate, Retry-After and RateLimit are always readable.',
    ),
  credentials: z.boolean().prefault(false).describe('Allow cookies and other credentials.'),
  maxAge: Duration.prefault('10m').describe('How long a browser may cache a preflight response; 0 for not at all.'),
});

export const CorsSchema = z.union(
  [z.literal('pass-through'), CorsRules],
  'expected pass-through, or a mapping with origins',
);

function parseOrigin(input: string | number): ParseResult<string> {
  const origin = String(input);
  if (origin === '*') return { ok: true, value: origin };
  if (origin === 'null') {
    return parseFailure('every sandboxed page and every local file sends the origin null: name an origin, or use *');
  }
  const [, scheme, host = '', rest = ''] = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(.*)$/i.exec(origin) ?? [];
  if (scheme === undefined) return parseFailure('an origin starts with a scheme', suggestIfValid(`https://${origin}`));
  const normalized = `${scheme}://${host}`.toLowerCase();
  if (rest !== '') return parseFailure('an origin has no path and no trailing /', suggestIfValid(normalized));
  if (host.includes('@')) return parseFailure('an origin has no user name');
  if (!/^(?:\*\.)?(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.test(host)) {
    return parseFailure(
      'expected an origin such as https://app.example.com; * is allowed only as the first part of the host',
    );
  }
  const defaultPort = { http: ':80', https: ':443' }[scheme.toLowerCase()];
  if (defaultPort !== undefined && host.endsWith(defaultPort)) {
    return parseFailure(
      'browsers leave out the default port of a scheme',
      suggestIfValid(normalized.slice(0, -defaultPort.length)),
    );
  }
  return { ok: true, value: normalized };
}

function suggestIfValid(origin: string): string | undefined {
  return parseOrigin(origin).ok ? origin : undefined;
}
