import { z } from 'zod';
import type { OptionName } from '../../core/backoff/strategies.ts';
import { strategyNames } from '../../core/backoff/strategies.ts';
import { Duration } from '../values/unit-schemas.ts';

const fields = {
  baseInterval: Duration.optional().describe('The first delay, from which later ones grow.'),
  multiplier: z.number().min(1).optional().describe('Factor by which each delay exceeds the one before.'),
  maxInterval: Duration.optional().describe('The maximum delay.'),
  jitter: z
    .number()
    .min(0)
    .max(1)
    .optional()
    .describe('Random deviation from the computed delay, as a fraction of it.'),
  jitterInterval: Duration.optional().describe('Maximum that additive-jitter adds to a delay.'),
  exponent: z.number().min(0).max(100).optional().describe('The exponent of the polynomial strategy.'),
  table: z
    .array(z.int().min(1))
    .min(1)
    .optional()
    .describe('Number of slots to draw from, one entry a retry; the last entry repeats.'),
  slot: Duration.optional().describe('Length of a slot, for ethernet and table.'),
} satisfies Record<OptionName, unknown>;

const Strategy = z.enum(strategyNames);

/** Options left out have the defaults of the strategy. */
export const BackOffSchema = z.strictObject({
  strategy: Strategy.prefault('full-jitter').describe('How delays grow and how they are randomised.'),
  ...fields,
});

/** Merged over another backoff: see retry-overrides.ts. */
export const BackOffOverrideSchema = z.strictObject({
  strategy: Strategy.optional().describe('Another strategy; its options start from their own defaults.'),
  ...fields,
});
