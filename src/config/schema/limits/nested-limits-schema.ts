import { z } from 'zod';
import { COST_DESCRIPTION, CostSchema } from './cost-schema.ts';
import { Method } from '../name-schemas.ts';
import { LimitScopeSchema, rateFields } from '../rate-fields.ts';
import { PathPatternSchema } from '../../values/path-pattern-schema.ts';

/** What may split a limit into several, besides the named segments of its paths. */
export const LIMIT_DIMENSIONS = ['method', 'path'] as const;

export const LimitNameSchema = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9_-]{0,63}$/,
    'the name of a limit has 1 to 64 characters of a-z, 0-9, _ and -, and starts with a letter or digit',
  );

/** Which requests a limit applies to. */
export const LimitMatchSchema = z.strictObject({
  path: z
    .union([PathPatternSchema, z.array(PathPatternSchema).min(1)], 'expected a path pattern, or a list of them')
    .optional()
    .describe(
      'Patterns of the path as the upstream sees it, one of which must match: * is one segment, ** at the end the rest, {name} one segment with a separate limit for each value, {name=a|b} one of these words.',
    ),
  method: z
    .union([Method, z.array(Method).min(1)], 'expected a method, or a list of them')
    .optional()
    .describe('Methods, one of which must match.'),
});

const NestedLimitSchema = z.strictObject({
  name: LimitNameSchema.describe('The name in metrics, explanations and rejections.'),
  match: LimitMatchSchema.extend({
    except: z
      .union([PathPatternSchema, z.array(PathPatternSchema).min(1)], 'expected a path pattern, or a list of them')
      .optional()
      .describe('Patterns of paths that it does not apply to.'),
  })
    .prefault({})
    .describe('Which requests it applies to; all if absent.'),
  scope: LimitScopeSchema.prefault('upstream').describe(
    'What it counts together: all requests, those of each client, or those of each credential.',
  ),
  each: z
    .array(z.enum(LIMIT_DIMENSIONS, 'expected method or path'))
    .prefault([])
    .describe(
      'What else has a separate limit: each method; each path, that is, each pattern of match.path with its named segments filled in.',
    ),
  cost: CostSchema.optional().describe(COST_DESCRIPTION),
  ...rateFields,
});

/** Limits of some of the requests to an upstream, within the limit of all requests. */
export const NestedLimitsSchema = z
  .array(NestedLimitSchema)
  .max(32)
  .prefault([])
  .describe(
    'Limits of some requests within rateLimit, such as those of API endpoints within that of an account: a request needs a token of each limit that applies to it (docs/limits.md).',
  );

export type NestedLimitConfig = z.output<typeof NestedLimitSchema>;
