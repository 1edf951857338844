import { z } from 'zod';
import { Ttl } from '../../values/ttl.ts';
import { Size } from '../../values/unit-schemas.ts';
import { AcknowledgementSchema } from './acknowledgement-schema.ts';
import { DeliveryScheduleSchema } from './delivery-schedule-schema.ts';
import { StandardSecrets } from '../webhooks/signature-secrets.ts';
import { MessageFieldSchema } from './message-field-schema.ts';

const AcceptanceSchema = z.strictObject({
  status: z
    .int()
    .refine(
      (status) => status >= 200 && status <= 299,
      'must be from 200 to 299: a sender repeats a request that gets another status',
    )
    .prefault(202)
    .describe('The status, from 200 to 299.'),
  body: z.string().max(1024).optional().describe('The body, if the sender requires a certain one, such as success.'),
  contentType: z
    .string()
    .regex(/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?: *; *[\w-]+=[\w"-]+)*$/, 'expected a media type such as application/json')
    .prefault('text/plain; charset=utf-8')
    .describe('The media type of the body.'),
});

/** Requests that are stored, answered, and sent to the upstream until it acknowledges them. */
export const DeliverySchema = z.strictObject({
  schedule: DeliveryScheduleSchema,
  acknowledgedBy: AcknowledgementSchema.prefault({}).describe(
    'The response of the upstream that ends the delivery; any 2xx if absent.',
  ),
  respond: AcceptanceSchema.prefault({}).describe('The response to a request that is stored.'),
  eventId: MessageFieldSchema.optional().describe(
    'Where a request has the id of its event: {header: NAME} or {json: FIELD}. A second request with the same id is answered and not delivered. If absent, all are delivered.',
  ),
  deduplicateFor: Ttl.prefault('24h').describe('How long the id of an event is remembered.'),
  orderBy: MessageFieldSchema.optional().describe(
    'Requests with the same value are delivered one at a time, in order: {header: NAME} or {json: FIELD}. If absent, all at once.',
  ),
  sign: z
    .strictObject({
      secrets: StandardSecrets.describe(
        'One secret, or two while the receiver changes it: whsec_ and at least 24 bytes in base64. Each attempt has a signature by each.',
      ),
    })
    .optional()
    .describe(
      'Signs each attempt as Standard Webhooks specifies, with the time of the attempt. If absent: not signed.',
    ),
  concurrency: z
    .int()
    .min(1)
    .max(10_000)
    .prefault(10)
    .describe('Maximum deliveries of this route that are sent at a time.'),
  maxBody: Size.refine((bytes) => bytes > 0, 'must be above 0')
    .prefault('1MiB')
    .describe('Maximum size of a request body; a larger one is rejected with 413.'),
  keepFor: z
    .strictObject({
      delivered: Ttl.prefault('7d').describe('After it was acknowledged, or canceled.'),
      dead: Ttl.prefault('7d').describe('After its schedule was used up, or it expired.'),
    })
    .prefault({})
    .describe('How long a delivery is kept after it has ended, for its status and to be retried.'),
});
