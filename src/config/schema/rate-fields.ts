import { z } from 'zod';
import { Duration, PositiveDuration, Rate } from '../values/unit-schemas.ts';

/** What a limit counts together. */
export const LimitScopeSchema = z.enum(['upstream', 'client', 'credential']);

/** Settings of the rate of any limit: of `rateLimit` and of each of `limits`. */
export const rateFields = {
  initialRate: Rate.optional().describe('A known limit to start from; learned if absent.'),
  maxRate: Rate.optional().describe('Never send faster than this.'),
  minRate: Rate.prefault('0.1/s').describe('Never pace slower than this, unless the limit is blocked.'),
  cooldown: Duration.prefault('1s').describe('The shortest time without growth after a rate cut.'),
  maxProbeDelay: PositiveDuration.prefault('30s').describe(
    'While the limit is blocked, send a probe at least this often, even if a Retry-After is longer; never for a client that the upstream asked to wait.',
  ),
};
