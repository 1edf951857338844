import { z } from 'zod';
import { readSocket } from './address.ts';
import { DnsRefresh, OutlierDetection } from './endpoints-schema.ts';
import { Idempotency } from './idempotency-schema.ts';
import { NestedLimits } from './limits-schema.ts';
import { HeaderName } from './names.ts';
import { PROVIDERS } from './providers.ts';
import { Retry } from './retry-schema.ts';
import { Throttle } from './throttle-schema.ts';
import { UpstreamTls } from './tls-schema.ts';
import { Duration, PositiveDuration, Rate } from './units.ts';
import type { Reading } from './written.ts';
import { misread, written } from './written.ts';

/** The `url` of the upstream that this process plays itself. */
export const PRACTICE_URL = 'practice';

/** An origin such as "https://api.stripe.com:8443", normalised; "unix:/path"; or "practice". */
const UpstreamUrl = written<string>({
  expected: 'a URL such as https://api.example.com',
  forms: [{ type: 'string', pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@]+/?$|^unix:/.' }, { const: PRACTICE_URL }],
  read: readUpstreamUrl,
  write: (url) => url,
});

/** An http or https origin, a Unix socket, or "practice". What else a URL may have is refused: a route says which paths go where. */
export function readUpstreamUrl(input: string | number): Reading<string> {
  const expected = 'expected an http or https URL such as https://api.example.com';
  if (input === PRACTICE_URL) return { ok: true, value: input };
  if (typeof input === 'number') return misread(expected);
  const path = socketOf(input);
  if (path !== undefined) {
    const socket = readSocket(path);
    return socket.ok ? { ok: true, value: input } : socket;
  }
  if (!/^https?:\/\//i.test(input)) return misread(expected, suggestScheme(input));
  const url = URL.parse(input);
  if (url === null || /\s/.test(input)) return misread(expected);
  if (url.username !== '' || url.password !== '') {
    return misread('credentials are not taken from a URL: clients send their own');
  }
  if (url.pathname !== '/' || input.includes('?') || input.includes('#')) {
    return misread('only an origin: no path, query or fragment (a route may have a rewritePrefix)', url.origin);
  }
  return { ok: true, value: url.origin };
}

/** The path of the Unix socket that a `url` names; undefined where it names a host. */
export function socketOf(url: string): string | undefined {
  return url.startsWith('unix:') ? url.slice('unix:'.length) : undefined;
}

function suggestScheme(text: string): string | undefined {
  if (text.startsWith('/')) return `unix:${text}`;
  return /^(?:localhost|127\.\d+\.\d+\.\d+)(?::\d+)?$/.test(text)
    ? `http://${text}`
    : /^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?$/i.test(text)
      ? `https://${text}`
      : undefined;
}

const RateLimit = z.strictObject({
  scope: z
    .enum(['upstream', 'client', 'credential'])
    .prefault('upstream')
    .describe('Whom the upstream counts: all of us, each client, or each credential.'),
  credentialHeader: HeaderName.prefault('Authorization').describe(
    'The header that carries the credential, for scope credential and for whom a quota holds.',
  ),
  initialRate: Rate.optional().describe('A known limit to start from; learned if absent.'),
  maxRate: Rate.optional().describe('Never send faster than this.'),
  minRate: Rate.prefault('0.1/s').describe('Never pace slower than this, unless nothing gets through at all.'),
  cooldown: Duration.prefault('1s').describe('The shortest time without growth after the rate was cut.'),
});

const Queue = z.strictObject({
  maxWait: Duration.prefault('1s').describe(
    'A request that would have to wait longer is refused at once; 0 never queues.',
  ),
  maxDepth: z.int().min(0).max(1_000_000).prefault(10_000).describe('Requests that may wait at a time.'),
});

export const Upstream = z
  .strictObject({
    url: UpstreamUrl.optional().describe(
      'Its origin, http or https; or unix:/path; practice is the one that this process plays itself.',
    ),
    urls: z
      .array(UpstreamUrl)
      .min(1)
      .max(64)
      .optional()
      .describe('Instead of url, where it has several endpoints: their origins, all http or all https.'),
    provider: z
      .enum(PROVIDERS)
      .optional()
      .describe('Whose API it is: what is known of it holds wherever nothing is written here (docs/providers.md).'),
    tls: UpstreamTls.prefault({}).describe('How an https upstream is verified, and how we show who we are.'),
    http2: z.boolean().prefault(false).describe('Speak HTTP/2 where the upstream offers it (ALPN); needs https.'),
    preserveHost: z
      .boolean()
      .prefault(false)
      .describe('Send the client’s Host, where a signature covers it (AWS SigV4).'),
    timeout: PositiveDuration.prefault('10s').describe(
      'The deadline of a request up to the response head, waiting and retries included.',
    ),
    perTryTimeout: PositiveDuration.prefault('5s').describe('How long one attempt may take up to the response head.'),
    connectTimeout: PositiveDuration.prefault('5s').describe('How long making a connection may take.'),
    streamIdle: PositiveDuration.prefault('5m').describe(
      'How long a response body may pause, and its client not read it; server-sent events may pause for ever.',
    ),
    connections: z
      .int()
      .min(1)
      .max(65_535)
      .prefault(256)
      .describe('Connections to it, at most; to each of its endpoints.'),
    dnsRefresh: DnsRefresh,
    outlierDetection: OutlierDetection.prefault({}).describe(
      'When an endpoint of several is left out, and for how long.',
    ),
    retry: Retry.prefault({}).describe('What is retried, how often and after which delays.'),
    rateLimit: RateLimit.prefault({}).describe(
      'The limit of the upstream, as far as it is known; the rest is learned.',
    ),
    limits: NestedLimits,
    throttle: Throttle.optional().describe(
      'How the upstream says that it is too much for it, where that is not a plain 429 (docs/providers.md).',
    ),
    queue: Queue.prefault({}).describe('Requests that wait for their turn under a limited rate.'),
    idempotency: Idempotency.prefault({}).describe('How the upstream recognises a write it has seen before.'),
  })
  // For editors: one of the two; some providers have a url.
  .meta({
    allOf: [
      { anyOf: [{ required: ['url'] }, { required: ['urls'] }, { required: ['provider'] }] },
      { not: { required: ['url', 'urls'] } },
    ],
  });

/** Its origins, one or more. */
export function originsOf({
  url,
  urls,
}: {
  readonly url?: string | undefined;
  readonly urls?: readonly string[] | undefined;
}): readonly string[] {
  return urls ?? (url === undefined ? [] : [url]);
}
