/** Schemas of the responses. The types of the program and the OpenAPI document are derived from them. */
import { z } from 'zod';
import { REQUEST_OUTCOMES } from '../../telemetry/metrics/request-counts.ts';
import { TIMELINE_KINDS } from '../../telemetry/history/timeline-kinds.ts';
import { StoredDeliveries } from './delivery-schemas.ts';
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
import { UpstreamStatus } from './upstream-schemas.ts';

export const ClientStateSchema = z.enum(['normal', 'held', 'backoff', 'cooldown', 'restoring']);
export const OutcomeSchema = z.enum(REQUEST_OUTCOMES);
export const TimelineKindSchema = z.enum(TIMELINE_KINDS);

export const ProcessStatus = z
  .object({
    at: TimeSchema,
    version: z.string(),
    mode: z.enum(['enforce', 'observe']).describe('observe if all upstreams are in observe mode.'),
    observedUpstreams: z.array(z.string()).describe('The upstreams in observe mode.'),
    phase: z.enum(['starting', 'ready', 'draining']),
    startedAt: TimeSchema,
    workers: z.int().min(1).describe('Configured number of serving processes.'),
    config: z.object({
      loadedAt: TimeSchema,
      lastReload: z.object({ at: TimeSchema, ok: z.boolean(), problem: z.string().nullable() }).nullable(),
    }),
    store: z.object({
      kind: z.enum(['memory', 'sqlite', 'redis']),
      degraded: z.boolean().describe('The store is not responding; this process keeps limits on its own.'),
      problem: z.string().nullable().describe('Why the store is not responding: the message of the error.'),
    }),
    deliveries: StoredDeliveries.nullable().describe('The stored deliveries; null if this process stores none.'),
    certificates: z
      .array(z.object({ setting: z.string(), expiresAt: TimeSchema }))
      .describe('The certificates of the configuration that are in use: of the listener, and client certificates.'),
    actions: z.object({
      allowed: z.boolean().describe('Whether the actions of this API can be used, with the token.'),
      reason: z.string().nullable().describe('Why they cannot be used.'),
    }),
    requests: z.object({
      perSecond: RateSchema.describe('Ended requests per second.'),
      failedPerSecond: RateSchema.describe(
        'Responses to clients with a status of 500 or above, over the last ten seconds.',
      ),
      failed: CountSchema.describe('Responses to clients with a status of 500 or above, since the start.'),
      inFlight: CountSchema,
      p50Seconds: SecondsSchema.nullable().describe('Duration to the end of the response, over the last ten seconds.'),
      p99Seconds: SecondsSchema.nullable(),
      outcomes: z.record(OutcomeSchema, CountSchema).describe('Counts since the start.'),
    }),
    upstreams: z.array(UpstreamStatus),
    clients: z.object({
      tracked: CountSchema.describe('Rows of /api/clients: a client has one for each upstream that it uses.'),
      distinct: CountSchema.nullable().describe('Clients, each counted once; null if there are too many to tell.'),
      byState: z.record(ClientStateSchema, CountSchema),
      allowance: z.object({ min: ShareSchema, mean: ShareSchema }),
    }),
  })
  .register(ApiSchemas, { id: 'Status' });

export const ClientRow = z
  .object({
    key: ClientKeySchema,
    name: ClientNameSchema,
    upstream: z.string(),
    state: ClientStateSchema,
    allowance: ShareSchema,
    demandPerSecond: RateSchema,
    sharePerSecond: ClientShareSchema,
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
    clientName: ClientNameSchema,
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
    kind: TimelineKindSchema,
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
      name: ClientNameSchema,
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
export type ClientRow = z.output<typeof ClientRow>;
export type ClientsPage = z.output<typeof ClientsPage>;
export type RequestRow = z.output<typeof RequestRow>;
export type RequestsPage = z.output<typeof RequestsPage>;
export type TimelineEvent = z.output<typeof TimelineEvent>;
export type StatusFrame = z.output<typeof StatusFrame>;
export type RequestsFrame = z.output<typeof RequestsFrame>;
export type ExplanationResponse = z.output<typeof ExplanationResponse>;
