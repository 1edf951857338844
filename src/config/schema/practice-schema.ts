import { z } from 'zod';
import { HINT_STYLES } from './hint-styles.ts';
import { SimulatedLimitSchema } from './simulated-limit-schema.ts';
import { Duration } from '../values/unit-schemas.ts';

export const PracticeSchema = z.strictObject({
  limit: SimulatedLimitSchema.prefault({ kind: 'token-bucket', rate: '20/s', burst: 10 }).describe(
    'The hidden limit that it enforces.',
  ),
  latency: Duration.prefault('30ms').describe('How long it takes to respond.'),
  hints: z.enum(HINT_STYLES).prefault('none').describe('Which hints about its limit it sends.'),
  seed: z.int().min(0).prefault(1).describe('Seed of its random numbers; equal seeds give equal runs.'),
});
