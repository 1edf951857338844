import { z } from 'zod';
import { HeaderName, Method } from '../name-schemas.ts';
import { oneOrMany } from '../../values/one-or-many.ts';

/** The highest cost: a request of more units is not known of any API. */
export const MAX_COST = 1_000_000_000;

const Units = z.number().min(0).max(MAX_COST);

/** The path of a number in a JSON body: member names. */
const CostField = z
  .string()
  .regex(/^[^.\s*]+(?:\.[^.\s*]+)*$/, 'expected members of a JSON body, such as usage.total_tokens')
  .max(128);

const CostHeader = HeaderName.optional().describe('The header with the cost, a number.');

const BucketSchema = z.strictObject({
  available: CostField.describe('The field with the units that are left.'),
  limit: CostField.describe('The field with the units of the full bucket.'),
  refillRate: CostField.describe('The field with the units that come back each second.'),
});

const CostDetailsSchema = z.strictObject({
  method: z
    .partialRecord(Method, Units)
    .prefault({})
    .describe('The cost by method: {POST: 5}. Other methods have the expected cost.'),
  request: z
    .strictObject({
      header: CostHeader,
      json: CostField.optional().describe('The field of the JSON body with the cost, such as max_tokens.'),
    })
    .optional()
    .describe('Where the request names its cost: {header: X-Cost}. Needs max.'),
  response: z
    .strictObject({
      header: CostHeader,
      json: oneOrMany(CostField)
        .optional()
        .describe('The field of the JSON body with the cost, such as usage.total_tokens; of several, their sum.'),
      bucket: BucketSchema.optional().describe('The fields that say how full a bucket of units is, as a quota.'),
    })
    .optional()
    .describe(
      'Where the response names the cost. The request is charged the expected cost until then. Needs expected and max.',
    ),
  expected: Units.optional().describe('The cost of a request that names none; absent: 1. Needed with response.'),
  min: Units.optional().describe(
    'The least cost that a request or a response may name; absent: 1 with request, else 0.',
  ),
  max: Units.optional().describe('The highest cost that a request or a response may name. Needed with these.'),
});

/** What a request costs at a limit, in the units that its upstream counts. */
export const CostSchema = z.union(
  [Units, CostDetailsSchema],
  'expected a number of units, or {method, request, response, …}',
);

export const COST_DESCRIPTION =
  'What a request costs here, in the units that the upstream counts, such as points or tokens; absent: 1 (docs/costs.md).';

/** What requests cost where nothing names a cost, and the bounds of what may name one. */
export function costBounds({
  request,
  expected = 1,
  min = request === undefined ? 0 : 1,
  max = MAX_COST,
}: Pick<z.infer<typeof CostDetailsSchema>, 'request' | 'expected' | 'min' | 'max'>) {
  return { expected, min, max };
}
