/** Schemas of the actions: their parameters and responses. */
import { z } from 'zod';
import { PositiveDuration, Rate } from '../../config/values/unit-schemas.ts';
import { ClientRow } from './response-schemas.ts';
import { ApiSchemas, NotesSchema } from './schema-parts.ts';
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
export const DrainResponse = z
  .object({ phase: z.literal('draining'), notes: NotesSchema })
  .register(ApiSchemas, { id: 'Draining' });
export const ValidationResponseSchema = z
  .object({ valid: z.literal(true), warnings: z.array(z.string()) })
  .register(ApiSchemas, { id: 'Valid' });

export type UpstreamActionResponse = z.output<typeof UpstreamActionResponse>;
export type ClientResetResponse = z.output<typeof ClientResetResponse>;
export type DrainResponse = z.output<typeof DrainResponse>;
