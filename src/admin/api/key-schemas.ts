/** Schemas of the writes with idempotency keys. */
import { z } from 'zod';
import { WRITE_STATES } from '../../core/idempotency/key-inspection.ts';
import { ApiSchemas, CountSchema, NotesSchema, TimeSchema } from './schema-parts.ts';

export const KeyStateSchema = z.enum(WRITE_STATES);

export const KeyRow = z
  .object({
    id: z.string().describe('Derived from a keyed hash of account, target and key; the `write` of log lines.'),
    upstream: z.string(),
    state: KeyStateSchema.describe(
      'in_progress: a request has the key or waits for it, or a response is being sent; unresolved: the write may have taken effect.',
    ),
    firstSentAt: TimeSchema.nullable().describe('null if nothing of it was sent so far.'),
    endpoint: z.string().nullable().describe('The endpoint that may know the key; null if it is not known.'),
    upstreamKey: z
      .string()
      .nullable()
      .describe('The key that the upstream got, if it was derived from the client and its key; else null.'),
    requests: CountSchema.describe('Requests in progress, those that wait for the key included.'),
    responses: CountSchema.describe('Responses to it that are being sent.'),
    finalFor: CountSchema.describe('Credentials that received a final response.'),
  })
  .register(ApiSchemas, { id: 'KeyRow' });

export const KeysPage = z
  .object({
    total: CountSchema.nullable().describe('All that are known; null if they were not all counted.'),
    matching: CountSchema,
    truncated: z
      .boolean()
      .describe('Redis has more keys than one request searches: some of those that match may be missing.'),
    keys: z.array(KeyRow),
  })
  .register(ApiSchemas, { id: 'KeysPage' });

export const ForgottenKey = KeyRow.extend({ notes: NotesSchema }).register(ApiSchemas, { id: 'ForgottenKey' });

export type KeyRow = z.output<typeof KeyRow>;
export type KeysPage = z.output<typeof KeysPage>;
export type ForgottenKey = z.output<typeof ForgottenKey>;
