/** Schemas of an upstream and its limits. */
import { z } from 'zod';
import {
  ApiSchemas,
  TimeSchema,
  RateSchema,
  SecondsSchema,
  ShareSchema,
  CountSchema,
  ClientKeySchema,
  ClientNameSchema,
  ClientShareSchema,
} from './schema-parts.ts';

const BlockedCauseSchema = z
  .enum(['rejections', 'errors', 'quota', 'retry_after'])
  .nullable()
  .describe(
    'Why the upstream blocks it: every request is rejected, or fails; the quota is used up; it asked for a pause.',
  );
const LimitStateSchema = z.enum(['open', 'backoff', 'cooldown', 'restoring', 'blocked']);

const LIMIT_PHASE = {
  state: LimitStateSchema,
  until: TimeSchema.nullable().describe('When this state ends, if known.'),
  untilWhat: z.enum(['cooldown ends', 'blocked until', 'next probe']).nullable(),
};

const LIMIT_RATES = {
  rate: RateSchema.nullable().describe('Rate in force; null if there is no limit.'),
  ceiling: RateSchema.nullable().describe('Rate at which the limit was last found.'),
  places: RateSchema.nullable().describe('Concurrency limit, if the upstream was found to limit requests in flight.'),
};

const FailureSchema = z.object({
  at: TimeSchema,
  reason: z.enum(['connect', 'reset', 'timeout', 'aborted', 'too_many_files', 'status']),
  code: z.string().nullable().describe('The code of the error, such as ECONNREFUSED, or the status.'),
  text: z.string().describe('Readable description.'),
});

export const NestedLimitStatus = z
  .object({
    name: z.string().describe('Name in the configuration; class:NAME for the limit of a client class.'),
    scope: z.enum(['upstream', 'client', 'credential']),
    which: z
      .string()
      .describe('Which of several limits of this name is shown; empty if there is one, or if it belongs to a client.'),
    ...LIMIT_PHASE,
    blockedCause: BlockedCauseSchema,
    ...LIMIT_RATES,
    quotaLeft: ShareSchema.nullable().describe('Remaining share of the quota that the upstream reports.'),
    limits: CountSchema.describe(
      'Number of limits of this name. All fields except queued and inFlight describe the most critical one.',
    ),
    queued: CountSchema,
    inFlight: CountSchema,
  })
  .register(ApiSchemas, { id: 'NestedLimitStatus' });

export const QuotaStatus = z
  .object({
    name: z.string().describe('Name in the configuration, or the period.'),
    limit: CountSchema.describe('Requests in a period.'),
    remaining: CountSchema.describe('Requests that may still be sent in this period, the reserve included.'),
    reserve: CountSchema.describe('Of limit, what only classes with a weight above 1 may use.'),
    resetAt: TimeSchema.describe('When the period ends; of a rolling one, when the first requests no longer count.'),
    exhaustedAt: TimeSchema.nullable().describe(
      'When all but its reserve was or will be used up at the recent rate; null if that is not before the end of the period.',
    ),
  })
  .register(ApiSchemas, { id: 'QuotaStatus' });

export const AccountStatus = z
  .object({
    name: z.string().describe('Name in the configuration.'),
    quarantined: z
      .boolean()
      .describe(
        'In at least one process, clients are excluded because the upstream rejects the credential: they only send probes.',
      ),
    commonlyRejected: z
      .boolean()
      .describe(
        'It is quarantined, and unrelated clients were rejected: others use it if no other account is in service.',
      ),
    quarantinedSince: TimeSchema.nullable().describe('When the first process excluded a client; null if none does.'),
    nextProbe: TimeSchema.nullable().describe('When the next probe may be sent; null if it is not quarantined.'),
    rate: RateSchema.nullable().describe('Rate in force of its limit; null if there is none.'),
    inFlight: CountSchema,
  })
  .register(ApiSchemas, { id: 'AccountStatus' });

export const UpstreamStatus = z
  .object({
    name: z.string(),
    scope: z.enum(['upstream', 'client', 'credential']),
    ...LIMIT_PHASE,
    blockedBy: z.enum(['upstream', 'operator']).nullable(),
    blockedCause: BlockedCauseSchema,
    ...LIMIT_RATES,
    pinned: RateSchema.nullable().describe('Rate pinned by an operator.'),
    learnedRate: RateSchema.nullable().describe('The rate without a pin; null if there is no limit.'),
    limits: CountSchema.describe(
      'Number of limits of the upstream in force. State, rate and quota describe the most critical one.',
    ),
    sentPerSecond: RateSchema,
    acceptedPerSecond: RateSchema,
    throttledPerSecond: RateSchema,
    retriesPerSecond: RateSchema,
    failedPerSecond: RateSchema.describe(
      'Attempts without a response, or with a status of 500 or above that is not throttling.',
    ),
    failedShare: ShareSchema.nullable().describe(
      'Share of the attempts that failed, over the last ten seconds that had attempts; null before the first attempt.',
    ),
    lastFailure: FailureSchema.nullable().describe(
      'The last failed attempt, whether or not others have succeeded since; null if none has failed.',
    ),
    refusedPerSecond: RateSchema.describe('Requests that Tidegate refused, or that timed out in the queue.'),
    mostRefused: z
      .object({
        key: ClientKeySchema,
        name: ClientNameSchema,
        shareOfRefusals: ShareSchema,
        demandPerSecond: RateSchema,
        sharePerSecond: ClientShareSchema,
        heldUntil: TimeSchema.nullable().describe('While the upstream has asked this client to wait.'),
      })
      .nullable()
      .describe('The client that got at least half of the refusals of the last five to ten seconds.'),
    attempts: CountSchema.describe('Attempts since the start, and outcomes that an ingress reported.'),
    queued: CountSchema,
    inFlight: CountSchema,
    quotaLeft: ShareSchema.nullable().describe('Remaining share of the quota that the upstream reports.'),
    budgetLeft: ShareSchema.describe('Remaining share of the retry budget.'),
    budgetSpent: z.boolean().describe('The retry budget does not pay for one more retry.'),
    p50Seconds: SecondsSchema.nullable().describe(
      'Duration of attempts to the response head, over the last ten seconds.',
    ),
    p99Seconds: SecondsSchema.nullable(),
    nestedLimits: z.array(NestedLimitStatus).describe('Outermost first.'),
    quotas: z
      .array(QuotaStatus)
      .describe('Configured quotas, as in the configuration; those of classes of clients are named class:NAME/QUOTA.'),
    accounts: z.array(AccountStatus).describe('Accounts whose credentials Tidegate holds, as in the configuration.'),
    endpoints: z.array(
      z.object({
        endpoint: z.string(),
        healthy: z.boolean().describe('false while it is ejected: it gets trial requests only.'),
        failure: FailureSchema.nullable().describe(
          'Why its last attempt failed; null if it has responded with less than 500 since.',
        ),
      }),
    ),
  })
  .register(ApiSchemas, { id: 'UpstreamStatus' });

export const History = z
  .object({
    upstreams: z.array(
      z.object({
        name: z.string(),
        samples: z
          .array(
            z.object({
              at: TimeSchema.describe('The end of the sample.'),
              seconds: SecondsSchema.describe('Length of the sample.'),
              rate: RateSchema.nullable().describe(
                'Rate in force at the end, 0 while blocked; null if there is no limit for all clients.',
              ),
              ceiling: RateSchema.nullable(),
              sentPerSecond: RateSchema,
              throttledPerSecond: RateSchema,
              failedPerSecond: RateSchema,
            }),
          )
          .describe('Oldest first: minutes, up to an hour ago, then seconds, for the last five minutes.'),
      }),
    ),
  })
  .register(ApiSchemas, { id: 'History' });

export type History = z.output<typeof History>;
export type UpstreamStatus = z.output<typeof UpstreamStatus>;
export type AccountStatus = z.output<typeof AccountStatus>;
export type QuotaStatus = z.output<typeof QuotaStatus>;
export type NestedLimitStatus = z.output<typeof NestedLimitStatus>;
