/** What may be told, and what is answered. */
import { z } from 'zod';
import { PositiveDuration, Rate } from '../../config/values/unit-schemas.ts';
import { ApiSchemas, ClientRow, UpstreamStatus } from './response-schemas.ts';

const Notes = z.array(z.string()).describe('What else there is to know of it, in sentences.');

export const PinQuery = z.strictObject({
  rate: Rate.describe('What to hold the rate at: 50/s, 20/m or 5000/h.'),
});
export const BlockQuery = z.strictObject({
  for: PositiveDuration.optional().describe('How long, such as 5m; until it is unblocked if absent.'),
});

export const SteeredUpstream = UpstreamStatus.extend({ notes: Notes }).register(ApiSchemas, { id: 'SteeredUpstream' });
export const ResetClient = ClientRow.extend({
  alsoAt: z.array(z.string()).describe('Other upstreams at which it begins anew.'),
  notes: Notes,
}).register(ApiSchemas, { id: 'ResetClient' });
export const Draining = z
  .object({ phase: z.literal('draining'), notes: Notes })
  .register(ApiSchemas, { id: 'Draining' });
export const Valid = z
  .object({ valid: z.literal(true), warnings: z.array(z.string()) })
  .register(ApiSchemas, { id: 'Valid' });

export type SteeredUpstream = z.output<typeof SteeredUpstream>;
export type ResetClient = z.output<typeof ResetClient>;
export type Draining = z.output<typeof Draining>;
