/** Schemas of the responses. The types of the program and the OpenAPI document are derived from them. */
import { z } from 'zod';
import { REQUEST_OUTCOMES } from '../../telemetry/metrics/request-counts.ts';
import { TIMELINE_KINDS } from '../../telemetry/history/timeline.ts';

/** Schemas with a name in the OpenAPI document. */
export const ApiSchemas = z.registry<{ readonly id: string }>();

const TimeSchema = z.iso.datetime({ precision: 3 }).describe('ISO 8601, UTC, with milliseconds.');
const RateSchema = z.number().min(0);
const SecondsSchema = z.number().min(0);
const ShareSchema = z.number().min(0).max(1);
const CountSchema = z.int().min(0);
const ClientKeySchema = z.string().describe('Hashed identity of the client.');

export const ClientStateSchema = z.enum(['normal', 'held', 'backoff', 'cooldown', 'restoring']);
export const OutcomeSchema = z.enum(REQUEST_OUTCOMES);

const BlockedCauseSchema = z
  .enum(['rejections', 'errors', 'quota', 'retry_after'])
  .nullable()
  .describe(
    'Why the upstream blocks it: every request is rejected, or fails; the quota is used up; it asked for a pause.',
  );
const LimitStateSchema = z.enum(['open', 'backoff', 'cooldown', 'restoring', 'blocked']);

export const NestedLimitStatus = z
  .object({
    name: z.string().describe('Name in the configuration; class:NAME for the limit of a client class.'),
    scope: z.enum(['upstream', 'client', 'credential']),
    which: z
      .string()
      .describe('Which of several limits of this name is shown; empty if there is one, or if it belongs to a client.'),
    state: LimitStateSchema,
    until: TimeSchema.nullable().describe('When this state ends, if known.'),
    untilWhat: z.enum(['cooldown ends', 'blocked until', 'next probe']).nullable(),
    blockedCause: BlockedCauseSchema,
    rate: RateSchema.nullable().describe('Rate in force; null if there is no limit.'),
    ceiling: RateSchema.nullable().describe('Rate at which the limit was last found.'),
    places: RateSchema.nullable().describe('Concurrency limit, if the upstream was found to limit requests in flight.'),
    quotaLeft: ShareSchema.nullable().describe('Remaining share of the quota that the upstream reports.'),
    limits: CountSchema.describe(
      'Number of limits of this name. All fields except queued and inFlight describe the most critical one.',
    ),
    queued: CountSchema,
    inFlight: CountSchema,
  })
  .register(ApiSchemas, { id: 'NestedLimitStatus' });

export const UpstreamStatus = z
  .object({
    name: z.string(),
    scope: z.enum(['upstream', 'client', 'credential']),
    state: LimitStateSchema,
    until: TimeSchema.nullable().describe('When this state ends, if known.'),
    untilWhat: z.enum(['cooldown ends', 'blocked until', 'next probe']).nullable(),
    blockedBy: z.enum(['upstream', 'operator']).nullable(),
    blockedCause: BlockedCauseSchema,
    rate: RateSchema.nullable().describe('Rate in force; null if there is no limit.'),
    ceiling: RateSchema.nullable().describe('Rate at which the limit was last found.'),
    places: RateSchema.nullable().describe('Concurrency limit, if the upstream was found to limit requests in flight.'),
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
    refusedPerSecond: RateSchema.describe('Requests that Tidegate refused, or that timed out in the queue.'),
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
    endpoints: z.array(
      z.object({
        endpoint: z.string(),
        healthy: z.boolean().describe('false while it is ejected: it gets trial requests only.'),
        failure: z
          .object({
            at: TimeSchema,
            reason: z.enum(['connect', 'reset', 'timeout', 'aborted', 'too_many_files', 'status']),
            code: z.string().nullable().describe('The code of the error, such as ECONNREFUSED, or the status.'),
            text: z.string().describe('Readable description.'),
          })
          .nullable()
          .describe('Why its last attempt failed; null if it has responded with less than 500 since.'),
      }),
    ),
  })
  .register(ApiSchemas, { id: 'UpstreamStatus' });

export const ProcessStatus = z
  .object({
    at: TimeSchema,
    version: z.string(),
    mode: z.enum(['enforce', 'observe']),
    phase: z.enum(['starting', 'ready', 'draining']),
    startedAt: TimeSchema,
    workers: z.int().min(1).describe('Configured number of serving processes.'),
    config: z.object({
      loadedAt: TimeSchema,
      lastReload: z.object({ at: TimeSchema, ok: z.boolean(), problem: z.string().nullable() }).nullable(),
    }),
    store: z.object({
      kind: z.enum(['memory', 'redis']),
      degraded: z.boolean().describe('The store is not responding; this process keeps limits on its own.'),
    }),
    requests: z.object({
      perSecond: RateSchema.describe('Ended requests per second.'),
      failedPerSecond: RateSchema.describe('Responses to clients with a status of 500 or above.'),
      failed: CountSchema.describe('Responses to clients with a status of 500 or above, since the start.'),
      inFlight: CountSchema,
      p50Seconds: SecondsSchema.nullable().describe('Duration to the end of the response, over the last ten seconds.'),
      p99Seconds: SecondsSchema.nullable(),
      outcomes: z.record(OutcomeSchema, CountSchema).describe('Counts since the start.'),
    }),
    upstreams: z.array(UpstreamStatus),
    clients: z.object({
      tracked: CountSchema,
      byState: z.record(ClientStateSchema, CountSchema),
      allowance: z.object({ min: ShareSchema, mean: ShareSchema }),
    }),
  })
  .register(ApiSchemas, { id: 'Status' });

export const ClientRow = z
  .object({
    key: ClientKeySchema,
    upstream: z.string(),
    state: ClientStateSchema,
    allowance: ShareSchema,
    demandPerSecond: RateSchema,
    sharePerSecond: RateSchema.nullable().describe(
      'Its share of the rate; null if there is no limit or if classes have weights.',
    ),
    queued: CountSchema,
    heldUntil: TimeSchema.nullable(),
    nextSlot: TimeSchema.nullable().describe('The time that its last Retry-After named.'),
    calmAt: TimeSchema.nullable().describe('When it returns to normal if it is not restricted again.'),
    lastSeen: TimeSchema.nullable(),
  })
  .register(ApiSchemas, { id: 'ClientRow' });

export const ClientsPage = z
  .object({
    total: CountSchema,
    matching: CountSchema,
    clients: z.array(ClientRow),
    next: z.string().nullable().describe('The cursor of the next page; null on the last.'),
  })
  .register(ApiSchemas, { id: 'ClientsPage' });

export const RequestRow = z
  .object({
    id: z.string(),
    at: TimeSchema.describe('Time of arrival.'),
    route: z.string(),
    upstream: z.string(),
    client: ClientKeySchema,
    method: z.string(),
    path: z.string().describe('Path without the query.'),
    status: CountSchema.describe('0 if the client disconnected before a response.'),
    outcome: OutcomeSchema,
    reason: z.string().nullable(),
    attempts: CountSchema,
    tookSeconds: SecondsSchema,
  })
  .register(ApiSchemas, { id: 'RequestRow' });

export const RequestsPage = z
  .object({ requests: z.array(RequestRow), next: z.string().nullable() })
  .register(ApiSchemas, { id: 'RequestsPage' });

export const TimelineEvent = z
  .object({
    id: z.string().describe('A series of cuts or changes is one event: its updates have the same id.'),
    at: TimeSchema,
    kind: z.enum(TIMELINE_KINDS),
    upstream: z.string().nullable(),
    text: z.string(),
  })
  .register(ApiSchemas, { id: 'TimelineEvent' });

export const TimelinePageSchema = z
  .object({ events: z.array(TimelineEvent) })
  .register(ApiSchemas, { id: 'TimelinePage' });

/** Events of /api/events: the status every second, requests twice a second. */
export const StatusFrame = z
  .object({ status: ProcessStatus, clients: z.object({ total: CountSchema, rows: z.array(ClientRow).max(50) }) })
  .register(ApiSchemas, { id: 'StatusFrame' });
export const RequestsFrame = z
  .object({ requests: z.array(RequestRow).max(20), more: CountSchema.describe('Further requests that ended.') })
  .register(ApiSchemas, { id: 'RequestsFrame' });

export const ExplanationResponse = z
  .object({
    id: z.string(),
    at: TimeSchema,
    client: z.object({
      key: z.string(),
      identifiedBy: z.string().nullable().describe('null if the request was refused before its client was identified'),
    }),
    route: z.string(),
    upstream: z.string(),
    method: z.string(),
    path: z.string(),
    outcome: OutcomeSchema,
    status: z.int().describe('0 if the client disconnected before a response'),
    traceId: z.string().nullable(),
    verdict: z.string(),
    steps: z.array(
      z
        .looseObject({
          at: z.number().min(0).describe('Seconds since arrival.'),
          what: z.string(),
          text: z.string().describe('Readable description.'),
        })
        .describe('A step, with its figures.'),
    ),
  })
  .register(ApiSchemas, { id: 'Explanation' });

export const ProblemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    mistakes: z.array(z.object({ place: z.string(), message: z.string() })).optional(),
  })
  .register(ApiSchemas, { id: 'Problem' });

export const EffectiveConfigSchema = z
  .record(z.string(), z.unknown())
  .describe('The effective configuration in the form of a file; secrets masked.')
  .register(ApiSchemas, { id: 'EffectiveConfig' });

export type ProcessStatus = z.output<typeof ProcessStatus>;
export type UpstreamStatus = z.output<typeof UpstreamStatus>;
export type NestedLimitStatus = z.output<typeof NestedLimitStatus>;
export type ClientRow = z.output<typeof ClientRow>;
export type ClientsPage = z.output<typeof ClientsPage>;
export type RequestRow = z.output<typeof RequestRow>;
export type RequestsPage = z.output<typeof RequestsPage>;
export type TimelineEvent = z.output<typeof TimelineEvent>;
export type StatusFrame = z.output<typeof StatusFrame>;
export type RequestsFrame = z.output<typeof RequestsFrame>;
export type ExplanationResponse = z.output<typeof ExplanationResponse>;
