/** Schemas of the stored deliveries. */
import { z } from 'zod';
import { DELIVERY_STATES } from '../../core/delivery/delivery-states.ts';
import { ApiSchemas, ClientKeySchema, CountSchema, NotesSchema, SecondsSchema, TimeSchema } from './schema-parts.ts';

export const DeliveryStateSchema = z.enum(DELIVERY_STATES);

export const DeliveryRow = z
  .object({
    id: z.string().describe('The `Tidegate-Delivery-Id` of each attempt.'),
    kind: z.enum(['message', 'write']).describe('message: of a route with `deliver`; write: of one with `async`.'),
    route: z.string().describe('Its methods, host and path, as in metrics.'),
    upstream: z.string(),
    state: DeliveryStateSchema.describe(
      'dead: its schedule is used up, or it has expired; canceled: by an operator; unknown: a write that may have taken effect; sending: an attempt is in progress.',
    ),
    acceptedAt: TimeSchema,
    nextAttemptAt: TimeSchema.nullable().describe(
      'Of a waiting delivery: an attempt begins then, or later; a time in the past if an earlier delivery with its order key has not ended.',
    ),
    sendingSince: TimeSchema.nullable(),
    endedAt: TimeSchema.nullable(),
    attempts: CountSchema.describe('Of its present schedule, without the one in progress.'),
    lastAttempt: z
      .object({
        at: TimeSchema,
        tookSeconds: SecondsSchema,
        status: z
          .int()
          .nullable()
          .describe(
            'Of the upstream, or of Tidegate, such as 504, if the upstream sent no response; null if no attempt was made.',
          ),
        reason: z.string().nullable().describe('Why it did not acknowledge the delivery; null if it did.'),
      })
      .nullable()
      .describe('It may be of an earlier schedule.'),
    eventId: z.string().nullable().describe("The sender's id of the event; null without `deliver.eventId`."),
    orderKey: z.string().nullable().describe('null without `deliver.orderBy`.'),
    client: ClientKeySchema,
  })
  .register(ApiSchemas, { id: 'DeliveryRow' });

export const StoredDeliveries = z
  .object({
    counts: z.record(DeliveryStateSchema, CountSchema),
    bytes: CountSchema.describe('Of the stored messages.'),
    oldestAt: TimeSchema.nullable().describe('When the oldest one was accepted that is waiting or being sent.'),
  })
  .register(ApiSchemas, { id: 'StoredDeliveries' });

export const DeliveriesPage = z
  .object({
    totals: StoredDeliveries.describe('Of all deliveries, whatever the parameters select.'),
    deliveries: z.array(DeliveryRow),
    next: z.string().nullable().describe('Send it as `after` for the next page; null on the last.'),
  })
  .register(ApiSchemas, { id: 'DeliveriesPage' });

export const DeliveryContent = z
  .object({
    method: z.string(),
    target: z.string().describe('Path and query, as the client sent them.'),
    headers: z.array(z.tuple([z.string(), z.string()])).describe('Names and values, in the order of the request.'),
    encoding: z.enum(['text', 'base64']).describe('Of `body`: text if it is UTF-8.'),
    body: z.string(),
    peer: z.string().describe('Address that sent it.'),
  })
  .register(ApiSchemas, { id: 'DeliveryContent' });

export const WriteResponse = z
  .object({
    status: z.int(),
    headers: z.array(z.tuple([z.string(), z.string()])).describe('Names and values, in the order of the response.'),
    encoding: z.enum(['text', 'base64']).describe('Of `body`: text if it is UTF-8.'),
    body: z.string().nullable().describe('null if it is longer than `async.maxResponse`.'),
  })
  .register(ApiSchemas, { id: 'WriteResponse' });

export const DeliveryDetails = DeliveryRow.extend({
  message: DeliveryContent.nullable()
    .optional()
    .describe('Only with `message=true`; null if it has expired, or cannot be decrypted.'),
  response: WriteResponse.nullable()
    .optional()
    .describe(
      'Only with `message=true`, of a write that is delivered; null if it has expired, or cannot be decrypted.',
    ),
}).register(ApiSchemas, { id: 'DeliveryDetails' });

export const ChangedDelivery = DeliveryRow.extend({ notes: NotesSchema }).register(ApiSchemas, {
  id: 'ChangedDelivery',
});

export type StoredDeliveries = z.output<typeof StoredDeliveries>;
export type DeliveryRow = z.output<typeof DeliveryRow>;
export type DeliveriesPage = z.output<typeof DeliveriesPage>;
export type DeliveryContent = z.output<typeof DeliveryContent>;
export type WriteResponse = z.output<typeof WriteResponse>;
export type DeliveryDetails = z.output<typeof DeliveryDetails>;
export type ChangedDelivery = z.output<typeof ChangedDelivery>;
