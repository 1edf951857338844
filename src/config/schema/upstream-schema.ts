import { z } from 'zod';
import { DnsRefresh, OutlierDetection } from './endpoints-schema.ts';
import { Idempotency } from './idempotency-schema.ts';
import { NestedLimits } from './nested-limits-schema.ts';
import { HeaderName } from './name-schemas.ts';
import { PROVIDERS } from '../presets/providers.ts';
import { Retry } from './retry-schema.ts';
import { Throttle } from './throttle-schema.ts';
import { UpstreamTls } from './tls-schema.ts';
import { Duration, PositiveDuration, Rate } from '../values/unit-schemas.ts';
import { UpstreamUrl } from '../values/upstream-url.ts';

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
  maxProbeDelay: PositiveDuration.prefault('30s').describe(
    'While nothing gets through, one request is tried at least so often, however long a Retry-After; not of the client that it asked to wait.',
  ),
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
