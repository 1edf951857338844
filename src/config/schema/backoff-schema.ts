import { z } from 'zod';
import type { OptionName } from '../../core/backoff/strategies.ts';
import { strategyNames } from '../../core/backoff/strategies.ts';
import { Duration } from '../values/unit-schemas.ts';

const fields = {
  baseInterval: Duration.optional().describe('The first delay, or the unit the delays grow from.'),
  multiplier: z.number().min(1).optional().describe('How much longer each delay is than the one before.'),
  maxInterval: Duration.optional().describe('The longest delay.'),
  jitter: z.number().min(0).max(1).optional().describe('How far a delay strays from its middle, as a part of it.'),
  jitterInterval: Duration.optional().describe('The most that additive-jitter adds to a delay.'),
  exponent: z.number().min(0).max(100).optional().describe('The power of the polynomial strategy.'),
  table: z
    .array(z.int().min(1))
    .min(1)
    .optional()
    .describe('Numbers of slots to choose from, retry after retry; the last is repeated.'),
  slot: Duration.optional().describe('The length of a slot, for ethernet and table.'),
} satisfies Record<OptionName, unknown>;

const Strategy = z.enum(strategyNames);

/** What is left out is the strategy's own default. */
export const BackOff = z.strictObject({
  strategy: Strategy.prefault('full-jitter').describe('How delays grow and where in them chance falls.'),
  ...fields,
});

/** Laid over another: see retry-overrides.ts. */
export const BackOffOverride = z.strictObject({
  strategy: Strategy.optional().describe('Another strategy, which then starts from its own defaults.'),
  ...fields,
});
