/** Schemas of the actions: their parameters and responses, and what they are about. */
import { z } from 'zod';
import { PositiveDuration, Rate } from '../../config/values/unit-schemas.ts';
import { ClientRow } from './response-schemas.ts';
import { ApiSchemas, CountSchema, NotesSchema, TimeSchema } from './schema-parts.ts';
import { UpstreamStatus } from './upstream-schemas.ts';

export const PinQuerySchema = z.strictObject({
  rate: Rate.describe('Rate to pin: 50/s, 20/m or 5000/h.'),
});
export const BlockQuerySchema = z.strictObject({
  for: PositiveDuration.optional().describe('Duration, such as 5m; if absent, until unblocked.'),
});

export const UpstreamActionResponse = UpstreamStatus.extend({ notes: NotesSchema }).register(ApiSchemas, {
  id: 'SteeredUpstream',
});
export const ClientResetResponse = ClientRow.extend({
  alsoAt: z.array(z.string()).describe('Other upstreams at which the client was reset.'),
  notes: NotesSchema,
}).register(ApiSchemas, { id: 'ResetClient' });
const ClientQuotaSchema = z
  .object({
    upstream: z.string(),
    quota: z.string().describe('class:CLASS/client/PERIOD, as explanations name it.'),
    limit: CountSchema.describe('Requests in a period.'),
    used: CountSchema.describe('Requests of the present period; parts that workers or replicas have leased count too.'),
    remaining: CountSchema,
    resetAt: TimeSchema.describe('When further requests may be sent if it is used up.'),
  })
  .register(ApiSchemas, { id: 'ClientQuota' });

export const ClientQuotasResponse = z
  .object({
    client: z.string().describe('The key of the client.'),
    quotas: z.array(ClientQuotaSchema).describe('Those that have counted requests of the client.'),
  })
  .register(ApiSchemas, { id: 'ClientQuotas' });

export const QuotasResetResponse = ClientQuotasResponse.extend({ notes: NotesSchema }).register(ApiSchemas, {
  id: 'ResetClientQuotas',
});

export const DrainResponse = z
  .object({ phase: z.literal('draining'), notes: NotesSchema })
  .register(ApiSchemas, { id: 'Draining' });
export const ValidationResponseSchema = z
  .object({ valid: z.literal(true), warnings: z.array(z.string()) })
  .register(ApiSchemas, { id: 'Valid' });

export type UpstreamActionResponse = z.output<typeof UpstreamActionResponse>;
export type ClientResetResponse = z.output<typeof ClientResetResponse>;
export type ClientQuotasResponse = z.output<typeof ClientQuotasResponse>;
export type QuotasResetResponse = z.output<typeof QuotasResetResponse>;
export type DrainResponse = z.output<typeof DrainResponse>;
