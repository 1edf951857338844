import { z } from 'zod';
import { BackOffSchema, BackOffOverrideSchema } from './backoff-schema.ts';
import { Method } from './name-schemas.ts';
import { oneOrMany } from '../values/one-or-many.ts';
import { PathPatternSchema } from '../values/path-pattern-schema.ts';
import { suggest } from '../values/suggest.ts';
import { Duration, Size } from '../values/unit-schemas.ts';
import type { ParseResult } from '../values/text-codec.ts';
import { parseFailure, textCodec } from '../values/text-codec.ts';

/** An outcome worth another attempt: a kind of outcome, or one status. */
export type RetryCondition = (typeof RETRY_CONDITIONS)[number] | number;

const RETRY_CONDITIONS = ['5xx', 'gateway-error', 'connect-failure', 'reset', 'timeout', 'lock'] as const;

const RetryConditionSchema = textCodec<RetryCondition>({
  expected: `a status from 400 to 599, or one of ${RETRY_CONDITIONS.join(', ')}`,
  forms: [
    { enum: [...RETRY_CONDITIONS] },
    { type: 'string', pattern: '^[45]\\d\\d$' },
    { type: 'integer', minimum: 400, maximum: 599 },
  ],
  parse: parseRetryCondition,
  format: String,
});

function parseRetryCondition(input: string | number): ParseResult<RetryCondition> {
  const condition = RETRY_CONDITIONS.find((name) => name === input);
  if (condition !== undefined) return { ok: true, value: condition };
  if (/^[45]\d\d$/.test(String(input))) return { ok: true, value: Number(input) };
  return parseFailure(
    `expected a status from 400 to 599, or one of ${RETRY_CONDITIONS.join(', ')}`,
    suggest(String(input), RETRY_CONDITIONS),
  );
}

/** The reasons for a retry that may have their own backoff. */
const BackOffForSchema = z.strictObject({
  '5xx': BackOffOverrideSchema.optional().describe('After a status of 500 and more.'),
  '429': BackOffOverrideSchema.optional().describe('After a 429 without a Retry-After.'),
  'connect-failure': BackOffOverrideSchema.optional().describe('After a failure to connect.'),
  reset: BackOffOverrideSchema.optional().describe('After a broken connection.'),
  timeout: BackOffOverrideSchema.optional().describe('After an attempt that timed out.'),
  lock: BackOffOverrideSchema.optional().describe('After a conflict on one object, such as a lock timeout.'),
});

/** Requests by path, as the upstream sees it: a pattern, or a pattern with methods. */
const PathRuleSchema = z.union([
  PathPatternSchema,
  z.strictObject({
    path: oneOrMany(PathPatternSchema).describe(
      'A path as the upstream sees it: * is one segment, ** at the end the rest.',
    ),
    method: oneOrMany(Method).optional().describe('Only requests with these methods.'),
  }),
]);

const fields = {
  retryOn: z
    .array(RetryConditionSchema)
    .describe(
      'Outcomes to retry: 5xx, gateway-error (502, 503, 504), connect-failure, reset, timeout, lock, or a status such as "429".',
    ),
  attempts: z.int().min(1).max(100).describe('Maximum attempts, the first one included.'),
  maxRetryAfter: Duration.describe(
    'A Retry-After longer than this is forwarded to the client at once, without a retry.',
  ),
  replayLimit: Size.describe(
    'Maximum size of a request body kept for retries; a larger one is streamed and not retried.',
  ),
  unkeyedWrites: z
    .enum(['never', 'on429', 'always'])
    .describe(
      'When writes without an idempotency key are retried: never, on429 (the upstream rejected it before acting on it) or always.',
    ),
  onClientGone: z
    .enum(['cancel', 'finish'])
    .describe('Whether a write with an idempotency key is cancelled or finished when its client disconnects.'),
  notProcessed: z
    .array(z.int().min(500).max(599))
    .describe(
      'Statuses that mean that the upstream has not processed a write; after any other 5xx it may have taken effect.',
    ),
  minAttemptTime: Duration.describe(
    'Minimum time left before the deadline to send a write; raised to the usual response time of the upstream.',
  ),
  safePaths: z
    .array(PathRuleSchema)
    .describe('Requests without side effects, safe to retry; a rule without methods applies to POST.'),
  neverPaths: z
    .array(PathRuleSchema)
    .describe('Requests that are never retried, even with a key; a rule without methods applies to all.'),
};

export const RetrySchema = z.strictObject({
  retryOn: fields.retryOn.prefault(['5xx', '429', 'connect-failure', 'reset', 'timeout']),
  attempts: fields.attempts.prefault(4),
  backOff: BackOffSchema.prefault({}).describe('Delays before retries where the upstream names none.'),
  backOffFor: BackOffForSchema.prefault({}).describe('Other delays by reason; options left out are those of backOff.'),
  budget: z
    .strictObject({
      ratio: z.number().min(0).max(10).prefault(0.2).describe('Retries that each success earns.'),
      burst: z.int().min(0).max(100_000).prefault(10).describe('Maximum retries saved up, and the initial amount.'),
    })
    .prefault({})
    .describe('Limits retries of errors to a share of successes; retries of a 429 are limited by pacing.'),
  maxRetryAfter: fields.maxRetryAfter.prefault('60s'),
  replayLimit: fields.replayLimit.prefault('64KiB'),
  unkeyedWrites: fields.unkeyedWrites.prefault('never'),
  onClientGone: fields.onClientGone.prefault('cancel'),
  notProcessed: fields.notProcessed.prefault([501, 503, 505, 529]),
  minAttemptTime: fields.minAttemptTime.prefault('250ms'),
  safePaths: fields.safePaths.prefault([]),
  neverPaths: fields.neverPaths.prefault([]),
});

/** The `retry` of a route, merged over that of its upstream: see retry-overrides.ts. The budget belongs to the upstream alone. */
export const RetryOverrideSchema = z.strictObject({
  ...z.object(fields).partial().shape,
  backOff: BackOffOverrideSchema.optional().describe('Other delays; options left out are those of the upstream.'),
  backOffFor: BackOffForSchema.optional().describe('Other delays by reason, in place of the upstream’s.'),
});
