import { z } from 'zod';
import { HeaderName, Method } from './name-schemas.ts';
import { Duration } from '../values/unit-schemas.ts';
import type { Reading } from '../values/text-codec.ts';
import { misread, written } from '../values/text-codec.ts';

/** The origin of a page: scheme, host and port, as browsers send it (RFC 6454 §6.2), or with `*` for any subdomain; or `*`. */
const Origin = written<string>({
  expected: 'an origin such as https://app.example.com, https://*.example.com, or *',
  forms: [{ type: 'string', pattern: String.raw`^(\*|[a-z][a-z0-9+.-]*://[^/?#]+)$` }],
  read: readOrigin,
  write: (origin) => origin,
});

const Any = z.literal('*');

/** Who may ask from a browser, of a route whose preflights are answered here. */
const CorsRules = z.strictObject({
  origins: z.array(Origin).min(1).describe('Origins whose pages may read answers; * for all.'),
  methods: z
    .array(z.union([Any, Method], 'expected a method, or *'))
    .min(1)
    .optional()
    .describe('What such pages may ask with; those of the route if absent.'),
  headers: z
    .array(HeaderName)
    .optional()
    .describe('Headers that their requests may have beyond the safelisted ones; all that they ask for if absent.'),
  exposeHeaders: z
    .array(HeaderName)
    .prefault([])
    .describe(
      'Headers of the upstream that they may read; those of Tidegate, Retry-After and RateLimit they always may.',
    ),
  credentials: z.boolean().prefault(false).describe('Whether their requests may carry cookies and other credentials.'),
  maxAge: Duration.prefault('10m').describe('How long a browser may keep the answer to a preflight; 0 for not at all.'),
});

export const Cors = z.union([z.literal('pass-through'), CorsRules], 'expected pass-through, or a mapping with origins');

function readOrigin(input: string | number): Reading<string> {
  const origin = String(input);
  if (origin === '*') return { ok: true, value: origin };
  if (origin === 'null') {
    return misread('null is what every sandboxed page and every file says that it is: name an origin, or *');
  }
  const [, scheme, host = '', rest = ''] = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(.*)$/i.exec(origin) ?? [];
  if (scheme === undefined) return misread('an origin has a scheme', confirm(`https://${origin}`));
  const bare = `${scheme}://${host}`.toLowerCase();
  if (rest !== '') return misread('an origin has no path, and no / at its end', confirm(bare));
  if (host.includes('@')) return misread('an origin has no user');
  if (!/^(?:\*\.)?(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.test(host)) {
    return misread(
      'expected an origin such as https://app.example.com; * stands for subdomains, at the beginning of the host',
    );
  }
  const usual = { http: ':80', https: ':443' }[scheme.toLowerCase()];
  if (usual !== undefined && host.endsWith(usual)) {
    return misread('browsers leave out the usual port of a scheme', confirm(bare.slice(0, -usual.length)));
  }
  return { ok: true, value: bare };
}

function confirm(origin: string): string | undefined {
  return readOrigin(origin).ok ? origin : undefined;
}
