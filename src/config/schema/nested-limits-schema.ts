import { z } from 'zod';
import { Method } from './name-schemas.ts';
import { PathPattern } from '../values/path-pattern-schema.ts';
import { Duration, PositiveDuration, Rate } from '../values/unit-schemas.ts';

/** What tells limits of one name apart, beside the named segments of their paths. */
export const EACH = ['method', 'path'] as const;

export const LimitName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'a name of a limit is of a-z, 0-9, _ and -, at most 64');

/** Which requests a limit is of. */
export const LimitMatch = z.strictObject({
  path: z
    .union([PathPattern, z.array(PathPattern).min(1)], 'expected a path pattern, or a list of them')
    .optional()
    .describe(
      'Patterns of the path that the upstream sees, of which one must match: * is one segment, ** at the end the rest, {name} one segment of which each value has a limit of its own, {name=a|b} one of these words.',
    ),
  method: z
    .union([Method, z.array(Method).min(1)], 'expected a method, or a list of them')
    .optional()
    .describe('Methods, of which one must match.'),
});

const NestedLimit = z.strictObject({
  name: LimitName.describe('What metrics and explanations call it, and the reasons of refusals name it by.'),
  match: LimitMatch.prefault({}).describe('Which requests stand under it; all if absent.'),
  scope: z
    .enum(['upstream', 'client', 'credential'])
    .prefault('upstream')
    .describe('Whom it counts: all of us together, each client, or each credential.'),
  each: z
    .array(z.enum(EACH, 'expected method or path'))
    .prefault([])
    .describe(
      'What else has a limit of its own: each method; each path, which is each pattern of match.path with its named segments filled in.',
    ),
  initialRate: Rate.optional().describe('A known limit to start from; learned if absent.'),
  maxRate: Rate.optional().describe('Never send faster than this.'),
  minRate: Rate.prefault('0.1/s').describe('Never pace slower than this, unless nothing gets through at all.'),
  cooldown: Duration.prefault('1s').describe('The shortest time without growth after the rate was cut.'),
  maxProbeDelay: PositiveDuration.prefault('30s').describe(
    'While nothing gets through, one request is tried at least so often, however long a Retry-After; not of the client that it asked to wait.',
  ),
});

/** The limits of some of an upstream's requests, beneath the one of all. */
export const NestedLimits = z
  .array(NestedLimit)
  .max(32)
  .prefault([])
  .describe(
    'Limits of some requests beneath rateLimit, such as those of endpoints under that of an account: a request has to pass all that it stands under (docs/limits.md).',
  );

export type NestedLimitConfig = z.output<typeof NestedLimit>;
