/** What the admin API says, as schemas: the types of the program and the OpenAPI document are made of them. */
import { z } from 'zod';
import { REQUEST_OUTCOMES } from '../../telemetry/metrics/request-counts.ts';
import { TIMELINE_KINDS } from '../../telemetry/history/timeline.ts';

/** Those that have a name in the OpenAPI document. */
export const ApiSchemas = z.registry<{ readonly id: string }>();

const Time = z.iso.datetime({ precision: 3 }).describe('ISO 8601, UTC, with milliseconds.');
const PerSecond = z.number().min(0);
const Seconds = z.number().min(0);
const Share = z.number().min(0).max(1);
const Count = z.int().min(0);
const ClientKey = z.string().describe('Hashed identity of the client.');

export const ClientState = z.enum(['normal', 'held', 'backoff', 'cooldown', 'restoring']);
export const Outcome = z.enum(REQUEST_OUTCOMES);

const LimitState = z.enum(['open', 'backoff', 'cooldown', 'restoring', 'blocked']);

export const NestedLimitStatus = z
  .object({
    name: z.string().describe('As in the configuration; of a class of clients, class:NAME.'),
    scope: z.enum(['upstream', 'client', 'credential']),
    which: z
      .string()
      .describe('Of several of this name, which one this is of; empty where there is one, or it is a client’s.'),
    state: LimitState,
    until: Time.nullable().describe('When this state ends, as far as that is known.'),
    untilWhat: z.enum(['cooldown ends', 'blocked until', 'next probe']).nullable(),
    rate: PerSecond.nullable().describe('Rate in force; null while nothing limits.'),
    ceiling: PerSecond.nullable().describe('Where the limit was felt last.'),
    places: PerSecond.nullable().describe('How many may be in flight, where that turned out to be the limit.'),
    quotaLeft: Share.nullable().describe('What is left of the quota that the upstream tells of.'),
    limits: Count.describe(
      'Limits of this name. Of several, all of this but queued and inFlight is of the one nearest to trouble.',
    ),
    queued: Count,
    inFlight: Count,
  })
  .register(ApiSchemas, { id: 'NestedLimitStatus' });

export const UpstreamStatus = z
  .object({
    name: z.string(),
    scope: z.enum(['upstream', 'client', 'credential']),
    state: LimitState,
    until: Time.nullable().describe('When this state ends, as far as that is known.'),
    untilWhat: z.enum(['cooldown ends', 'blocked until', 'next probe']).nullable(),
    blockedBy: z.enum(['upstream', 'operator']).nullable(),
    rate: PerSecond.nullable().describe('Rate in force; null while nothing limits.'),
    ceiling: PerSecond.nullable().describe('Where the limit was felt last.'),
    places: PerSecond.nullable().describe('How many may be in flight, where that turned out to be the limit.'),
    pinned: PerSecond.nullable().describe('What an operator holds the rate at.'),
    learnedRate: PerSecond.nullable().describe(
      'What the rate would be, were it not pinned; null while nothing limits.',
    ),
    limits: Count.describe('Limits of its own in force. Of several, all of this is of the one nearest to trouble.'),
    sentPerSecond: PerSecond,
    acceptedPerSecond: PerSecond,
    throttledPerSecond: PerSecond,
    retriesPerSecond: PerSecond,
    queued: Count,
    inFlight: Count,
    quotaLeft: Share.nullable().describe('What is left of the quota that the upstream tells of.'),
    budgetLeft: Share.describe('What is left of the retry budget.'),
    p50Seconds: Seconds.nullable().describe('Of attempts, to their heads, in the last ten seconds.'),
    p99Seconds: Seconds.nullable(),
    nestedLimits: z.array(NestedLimitStatus).describe('In the order in which requests stand under them.'),
    endpoints: z.array(z.object({ endpoint: z.string(), healthy: z.boolean() })),
  })
  .register(ApiSchemas, { id: 'UpstreamStatus' });

export const Status = z
  .object({
    at: Time,
    version: z.string(),
    mode: z.enum(['enforce', 'observe']),
    phase: z.enum(['starting', 'ready', 'draining']),
    startedAt: Time,
    workers: z.int().min(1).describe('Processes that are to serve.'),
    config: z.object({
      loadedAt: Time,
      lastReload: z.object({ at: Time, ok: z.boolean(), problem: z.string().nullable() }).nullable(),
    }),
    store: z.object({
      kind: z.enum(['memory', 'redis']),
      degraded: z.boolean().describe('It does not answer: this process goes on alone.'),
    }),
    requests: z.object({
      perSecond: PerSecond.describe('That ended.'),
      inFlight: Count,
      p50Seconds: Seconds.nullable().describe('To the end of the answer, in the last ten seconds.'),
      p99Seconds: Seconds.nullable(),
      outcomes: z.record(Outcome, Count).describe('Since the start.'),
    }),
    upstreams: z.array(UpstreamStatus),
    clients: z.object({
      tracked: Count,
      byState: z.record(ClientState, Count),
      allowance: z.object({ min: Share, mean: Share }),
    }),
  })
  .register(ApiSchemas, { id: 'Status' });

export const ClientRow = z
  .object({
    key: ClientKey,
    upstream: z.string(),
    state: ClientState,
    allowance: Share,
    demandPerSecond: PerSecond,
    sharePerSecond: PerSecond.nullable().describe(
      'Its part of the rate; null where nothing limits, or classes have weights.',
    ),
    queued: Count,
    heldUntil: Time.nullable(),
    nextSlot: Time.nullable().describe('When it was last told to come back.'),
    calmAt: Time.nullable().describe('When it is normal again, if nothing happens until then.'),
    lastSeen: Time.nullable(),
  })
  .register(ApiSchemas, { id: 'ClientRow' });

export const ClientsPage = z
  .object({
    total: Count,
    matching: Count,
    clients: z.array(ClientRow),
    next: z.string().nullable().describe('The cursor of the next page; null on the last.'),
  })
  .register(ApiSchemas, { id: 'ClientsPage' });

export const RequestRow = z
  .object({
    id: z.string(),
    at: Time.describe('When it arrived.'),
    route: z.string(),
    upstream: z.string(),
    client: ClientKey,
    method: z.string(),
    path: z.string().describe('Without its query.'),
    status: Count.describe('0 where the client had gone before an answer.'),
    outcome: Outcome,
    reason: z.string().nullable(),
    attempts: Count,
    tookSeconds: Seconds,
  })
  .register(ApiSchemas, { id: 'RequestRow' });

export const RequestsPage = z
  .object({ requests: z.array(RequestRow), next: z.string().nullable() })
  .register(ApiSchemas, { id: 'RequestsPage' });

export const TimelineEvent = z
  .object({
    id: z.string().describe('The same again where cuts or changes in a row are told as one that goes on.'),
    at: Time,
    kind: z.enum(TIMELINE_KINDS),
    upstream: z.string().nullable(),
    text: z.string(),
  })
  .register(ApiSchemas, { id: 'TimelineEvent' });

export const TimelinePage = z.object({ events: z.array(TimelineEvent) }).register(ApiSchemas, { id: 'TimelinePage' });

/** What /api/events tells each second, and twice a second. */
export const StatusFrame = z
  .object({ status: Status, clients: z.object({ total: Count, rows: z.array(ClientRow).max(50) }) })
  .register(ApiSchemas, { id: 'StatusFrame' });
export const RequestsFrame = z
  .object({ requests: z.array(RequestRow).max(20), more: Count.describe('That ended besides these.') })
  .register(ApiSchemas, { id: 'RequestsFrame' });

export const Explanation = z
  .object({
    id: z.string(),
    at: Time,
    client: z.object({
      key: z.string(),
      identifiedBy: z.string().nullable().describe('null where it was refused before anybody asked who it is'),
    }),
    route: z.string(),
    upstream: z.string(),
    method: z.string(),
    path: z.string(),
    outcome: Outcome,
    status: z.int().describe('0 where the client had gone before it was told anything'),
    traceId: z.string().nullable(),
    verdict: z.string(),
    steps: z.array(
      z
        .looseObject({
          at: z.number().min(0).describe('Seconds since it arrived.'),
          what: z.string(),
          text: z.string().describe('For people.'),
        })
        .describe('What happened, with the numbers behind it.'),
    ),
  })
  .register(ApiSchemas, { id: 'Explanation' });

export const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    mistakes: z.array(z.object({ place: z.string(), message: z.string() })).optional(),
  })
  .register(ApiSchemas, { id: 'Problem' });

export const EffectiveConfig = z
  .record(z.string(), z.unknown())
  .describe('The configuration in effect, as one would write it; secrets masked.')
  .register(ApiSchemas, { id: 'EffectiveConfig' });

export type Status = z.output<typeof Status>;
export type UpstreamStatus = z.output<typeof UpstreamStatus>;
export type NestedLimitStatus = z.output<typeof NestedLimitStatus>;
export type ClientRow = z.output<typeof ClientRow>;
export type ClientsPage = z.output<typeof ClientsPage>;
export type RequestRow = z.output<typeof RequestRow>;
export type RequestsPage = z.output<typeof RequestsPage>;
export type TimelineEvent = z.output<typeof TimelineEvent>;
export type StatusFrame = z.output<typeof StatusFrame>;
export type RequestsFrame = z.output<typeof RequestsFrame>;
export type Explanation = z.output<typeof Explanation>;
