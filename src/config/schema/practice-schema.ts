import { z } from 'zod';
import { HINT_STYLES } from '../../simulator/upstream/hint-style.ts';
import { Limit } from './simulated-limit-schema.ts';
import { Duration } from '../values/unit-schemas.ts';

export const Practice = z.strictObject({
  limit: Limit.prefault({ kind: 'token-bucket', rate: '20/s', burst: 10 }).describe(
    'The limit it enforces and does not tell.',
  ),
  latency: Duration.prefault('30ms').describe('How long it takes to answer.'),
  hints: z.enum(HINT_STYLES).prefault('none').describe('What it says of its limit.'),
  seed: z.int().min(0).prefault(1).describe('Equal seeds give equal runs.'),
});
