import { z } from 'zod';
import { AccountQuarantineSchema, AccountsSchema } from './accounts/accounts-schema.ts';
import { DnsRefreshSchema, HealthCheckSchema, OutlierDetectionSchema } from './endpoints-schema.ts';
import { EnforcementModeSchema } from '../values/enforcement-mode.ts';
import { IdempotencySchema } from './idempotency-schema.ts';
import { COST_DESCRIPTION, CostSchema } from './limits/cost-schema.ts';
import { NestedLimitsSchema } from './limits/nested-limits-schema.ts';
import { HeaderName } from './name-schemas.ts';
import { QuotasSchema } from './limits/quota-schema.ts';
import { PROVIDERS } from '../presets/providers.ts';
import { LimitScopeSchema, rateFields } from './rate-fields.ts';
import type { LimitScope } from '../../core/limits/limit-state.ts';
import { RetrySchema } from './retry-schema.ts';
import { ThrottleSchema } from './throttle-schema.ts';
import { UpstreamTlsSchema } from './tls-schema.ts';
import { Duration, PositiveDuration } from '../values/unit-schemas.ts';
import { UpstreamUrl } from '../values/upstream-url.ts';

const RateLimitSchema = z.strictObject({
  scope: LimitScopeSchema.prefault('upstream').describe(
    'What the upstream counts together: all requests, those of each client, or those of each credential.',
  ),
  credentialHeader: HeaderName.prefault('Authorization').describe(
    'The header with the credential, for scope credential and to see whose quota a hint reports.',
  ),
  of: z
    .enum(['account', 'endpoint'])
    .optional()
    .describe(
      'With several urls, whether the limit is that of the account, or each endpoint has its own; absent: account with a provider, a scope, limits or accounts, else endpoint.',
    ),
  cost: CostSchema.optional().describe(COST_DESCRIPTION),
  ...rateFields,
  learnFromLatency: z
    .boolean()
    .prefault(false)
    .describe(
      'Limit the requests in flight when latency shows that they queue at the upstream, which rejects nothing.',
    ),
});

const QueueSchema = z.strictObject({
  maxWait: Duration.prefault('1s').describe(
    'A request that would wait longer is rejected at once; 0 disables the queue.',
  ),
  maxDepth: z.int().min(0).max(1_000_000).prefault(10_000).describe('Maximum requests in the queue.'),
});

export const UpstreamSchema = z
  .strictObject({
    url: UpstreamUrl.optional().describe(
      'Its origin, http or https; or unix:/path; or practice for the built-in practice upstream.',
    ),
    urls: z
      .array(UpstreamUrl)
      .min(1)
      .max(64)
      .optional()
      .describe('In place of url, for several endpoints: their origins, all http or all https.'),
    provider: z
      .enum(PROVIDERS)
      .optional()
      .describe(
        'The provider of the API: its preset supplies every setting that is not written here (docs/providers.md).',
      ),
    tls: UpstreamTlsSchema.prefault({}).describe(
      'TLS to an https upstream: how it is verified, and the client certificate.',
    ),
    http2: z.boolean().prefault(false).describe('Use HTTP/2 where the upstream offers it (ALPN); needs https.'),
    preserveHost: z
      .boolean()
      .prefault(false)
      .describe('Forward the client’s Host, for signatures that cover it (AWS SigV4).'),
    timeout: PositiveDuration.prefault('10s').describe(
      'Deadline of a request up to the response head, queueing and retries included.',
    ),
    perTryTimeout: PositiveDuration.prefault('5s').describe('Maximum time of one attempt up to the response head.'),
    connectTimeout: PositiveDuration.prefault('5s').describe('Maximum time to connect.'),
    streamIdle: PositiveDuration.prefault('5m').describe(
      'Maximum pause of a response body, or of a client that reads it; server-sent events may pause indefinitely.',
    ),
    connections: z.int().min(1).max(65_535).prefault(256).describe('Maximum connections to each endpoint.'),
    dnsRefresh: DnsRefreshSchema,
    outlierDetection: OutlierDetectionSchema.prefault({}).describe(
      'When one of several endpoints is ejected, and for how long.',
    ),
    healthCheck: HealthCheckSchema.optional().describe(
      'Requests that check each endpoint; one that fails them gets no others. Absent: nothing is checked.',
    ),
    fallback: z
      .string()
      .optional()
      .describe(
        'Name of the upstream that gets safe requests, such as a GET, while this one is blocked, out of quota or unreachable.',
      ),
    mode: EnforcementModeSchema.optional().describe(
      'Overrides mode, for the routes to this upstream: enforce or observe.',
    ),
    retry: RetrySchema.prefault({}).describe('What is retried, how often and after what delays.'),
    rateLimit: RateLimitSchema.prefault({}).describe(
      'The rate limit of the upstream, as far as it is known; the rest is learned.',
    ),
    limits: NestedLimitsSchema,
    quotas: QuotasSchema,
    accounts: AccountsSchema,
    accountQuarantine: AccountQuarantineSchema.optional().describe(
      'When an account whose credential is rejected is excluded, and for how long (docs/accounts.md).',
    ),
    throttle: ThrottleSchema.optional().describe(
      'How the upstream signals throttling where that is not a plain 429 (docs/providers.md).',
    ),
    queue: QueueSchema.prefault({}).describe('The queue of requests that wait for a token of a limited rate.'),
    idempotency: IdempotencySchema.prefault({}).describe('How the upstream recognises a repeated write.'),
  })
  // For editors: exactly one of url and urls; the preset of a provider may have a url.
  .meta({
    allOf: [
      { anyOf: [{ required: ['url'] }, { required: ['urls'] }, { required: ['provider'] }] },
      { not: { required: ['url', 'urls'] } },
    ],
  });

/** What the upstream counts together. With accounts, it counts the requests of each account. */
export function limitScopeOf({
  accounts,
  rateLimit,
}: {
  readonly accounts?: readonly unknown[] | undefined;
  readonly rateLimit: { readonly scope: LimitScope };
}): LimitScope {
  return accounts === undefined ? rateLimit.scope : 'credential';
}

/** The origins of an upstream, one or more; none if neither key is set. */
export function upstreamOrigins({
  url,
  urls,
}: {
  readonly url?: string | undefined;
  readonly urls?: readonly string[] | undefined;
}): readonly string[] {
  return urls ?? (url === undefined ? [] : [url]);
}

/**
 * Returns `account` if all endpoints share one rate limit, that of the account at the provider; `endpoint` if each has its own.
 * Without `of`, an API of a known provider and limits that concern a part of the requests are those of the account. So is each limit
 * where Tidegate holds the credentials of accounts.
 */
export function limitOwner({
  provider,
  accounts,
  rateLimit: { of, scope },
  limits,
}: {
  readonly provider?: string | undefined;
  readonly accounts?: readonly unknown[] | undefined;
  readonly rateLimit: { readonly of?: 'account' | 'endpoint' | undefined; readonly scope: string };
  readonly limits: readonly unknown[];
}): 'account' | 'endpoint' {
  if (accounts !== undefined) return 'account';
  return of ?? (provider === undefined && scope === 'upstream' && limits.length === 0 ? 'endpoint' : 'account');
}
