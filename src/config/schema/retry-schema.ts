import { z } from 'zod';
import { BackOff, BackOffOverride } from './backoff-schema.ts';
import { Method } from './name-schemas.ts';
import { oneOrMany } from '../values/one-or-many.ts';
import { PathPattern } from '../values/path-pattern-schema.ts';
import { suggest } from '../values/suggest.ts';
import { Duration, Size } from '../values/unit-schemas.ts';
import type { Reading } from '../values/text-codec.ts';
import { misread, written } from '../values/text-codec.ts';

/** What is worth another attempt: a kind of outcome, or one status. */
export type RetryCondition = (typeof CONDITIONS)[number] | number;

const CONDITIONS = ['5xx', 'gateway-error', 'connect-failure', 'reset', 'timeout', 'lock'] as const;

const Condition = written<RetryCondition>({
  expected: `a status from 400 to 599, or one of ${CONDITIONS.join(', ')}`,
  forms: [
    { enum: [...CONDITIONS] },
    { type: 'string', pattern: '^[45]\\d\\d$' },
    { type: 'integer', minimum: 400, maximum: 599 },
  ],
  read: readCondition,
  write: String,
});

function readCondition(input: string | number): Reading<RetryCondition> {
  const condition = CONDITIONS.find((name) => name === input);
  if (condition !== undefined) return { ok: true, value: condition };
  if (/^[45]\d\d$/.test(String(input))) return { ok: true, value: Number(input) };
  return misread(
    `expected a status from 400 to 599, or one of ${CONDITIONS.join(', ')}`,
    suggest(String(input), CONDITIONS),
  );
}

/** The reasons for a retry that may have a backoff of their own. */
const BackOffFor = z.strictObject({
  '5xx': BackOffOverride.optional().describe('After a status of 500 and more.'),
  '429': BackOffOverride.optional().describe('After a 429 that names no time.'),
  'connect-failure': BackOffOverride.optional().describe('After a connection that could not be made.'),
  reset: BackOffOverride.optional().describe('After a connection that broke.'),
  timeout: BackOffOverride.optional().describe('After an attempt that took too long.'),
  lock: BackOffOverride.optional().describe('After a refusal about one object, such as a lock timeout.'),
});

/** Requests by their path as the upstream sees it: a pattern, or one with methods. */
const PathRule = z.union([
  PathPattern,
  z.strictObject({
    path: oneOrMany(PathPattern).describe('A path: * is one segment, ** at the end the rest.'),
    method: oneOrMany(Method).optional().describe('Only with these methods.'),
  }),
]);

const fields = {
  retryOn: z
    .array(Condition)
    .describe(
      'Outcomes worth another attempt: 5xx, gateway-error (502, 503, 504), connect-failure, reset, timeout, lock, or a status such as "429".',
    ),
  attempts: z.int().min(1).max(100).describe('Sends in all, the first one included.'),
  maxRetryAfter: Duration.describe('A Retry-After longer than this is passed on to the client at once.'),
  replayLimit: Size.describe('The longest request body that is kept for a retry; a longer one is streamed once.'),
  unkeyedWrites: z
    .enum(['never', 'on429', 'always'])
    .describe(
      'Writes without an idempotency key: retried never, on429 (the upstream rejects before it acts) or always.',
    ),
  onClientGone: z
    .enum(['cancel', 'finish'])
    .describe('Whether a write with an idempotency key is finished when its client has gone.'),
  notProcessed: z
    .array(z.int().min(500).max(599))
    .describe(
      'Statuses by which the upstream says that it has not processed a write; after any other 5xx it may have taken effect.',
    ),
  minAttemptTime: Duration.describe(
    'A write is not sent with less time before its deadline than this, or than the upstream usually takes to answer one.',
  ),
  safePaths: z
    .array(PathRule)
    .describe('Requests that only read, whatever their method; POST unless a rule names others.'),
  neverPaths: z
    .array(PathRule)
    .describe('Requests that are never sent twice, whatever their key; of any method unless a rule names some.'),
};

export const Retry = z.strictObject({
  retryOn: fields.retryOn.prefault(['5xx', '429', 'connect-failure', 'reset', 'timeout']),
  attempts: fields.attempts.prefault(4),
  backOff: BackOff.prefault({}).describe('Delays before retries, where the upstream names none.'),
  backOffFor: BackOffFor.prefault({}).describe('Other delays for some reasons; what is left out is as in backOff.'),
  budget: z
    .strictObject({
      ratio: z.number().min(0).max(10).prefault(0.2).describe('Retries earned by each success.'),
      burst: z
        .int()
        .min(0)
        .max(100_000)
        .prefault(10)
        .describe('Retries that can be saved up, and what one starts with.'),
    })
    .prefault({})
    .describe('Bounds retries of errors to a share of successes; retries of a 429 are bounded by pacing.'),
  maxRetryAfter: fields.maxRetryAfter.prefault('60s'),
  replayLimit: fields.replayLimit.prefault('64KiB'),
  unkeyedWrites: fields.unkeyedWrites.prefault('never'),
  onClientGone: fields.onClientGone.prefault('cancel'),
  notProcessed: fields.notProcessed.prefault([501, 503, 505, 529]),
  minAttemptTime: fields.minAttemptTime.prefault('250ms'),
  safePaths: fields.safePaths.prefault([]),
  neverPaths: fields.neverPaths.prefault([]),
});

/** Of a route, laid over its upstream's: see retry-overrides.ts. The budget is the upstream's own. */
export const RetryOverride = z.strictObject({
  ...z.object(fields).partial().shape,
  backOff: BackOffOverride.optional().describe('Other delays; what is left out is as in the upstream.'),
  backOffFor: BackOffFor.optional().describe('Other delays for some reasons, instead of the upstream’s.'),
});
