import { z } from 'zod';
import { HeaderName, Method } from './name-schemas.ts';
import { oneOrMany } from '../values/one-or-many.ts';
import { PathPatternSchema } from '../values/path-pattern-schema.ts';
import { Duration } from '../values/unit-schemas.ts';

/** Up to 999: some upstreams use such a status in place of 429. */
const ThrottleStatus = z.int().min(200).max(999);

/** A value that the upstream sends; `*` matches any text. */
const UpstreamWord = z.string().min(1).max(128);

/** The path of a code in a JSON body: member names, with `*` for each member or item. */
const CodeField = z
  .string()
  .regex(/^[^.\s]+(?:\.[^.\s]+)*$/, 'expected members of a JSON body, such as error.code or errors.*.code')
  .max(128);

const WaitSchema = z.union([
  Duration,
  z.strictObject({
    header: HeaderName.describe('The header that says when to retry.'),
    format: z
      .enum(['seconds', 'milliseconds', 'epoch-seconds', 'epoch-milliseconds', 'http-date'])
      .describe('Its format: a delay, or a point in time.'),
    plus: Duration.prefault('0s').describe('Added to it.'),
  }),
]);

const AnswerRuleSchema = z.strictObject({
  status: oneOrMany(ThrottleStatus).optional().describe('Only responses with these statuses.'),
  method: oneOrMany(Method).optional().describe('Only responses to requests with these methods.'),
  path: oneOrMany(PathPatternSchema)
    .optional()
    .describe(
      'Only responses to requests for these paths, as the upstream sees them: * is one segment, ** at the end the rest.',
    ),
  header: z
    .record(HeaderName, UpstreamWord)
    .optional()
    .describe('Only responses with these headers; * in a value matches any text: {X-RateLimit-Remaining: "0"}.'),
  reason: oneOrMany(UpstreamWord)
    .optional()
    .describe('Only responses with one of these values in reasonHeader; * matches any text.'),
  code: oneOrMany(UpstreamWord)
    .optional()
    .describe('Only responses with one of these values in a codeField of the body; * matches any text.'),
  is: z
    .enum(['throttled', 'lock', 'answer'])
    .optional()
    .describe(
      'throttled: rejected by a rate limit, whatever the status; lock: a conflict on one object, which cuts no rate; answer: neither, whatever the status.',
    ),
  limit: z
    .union([z.string(), z.array(z.string()).min(1)])
    .optional()
    .describe(
      'The limit that rejected the request: a name from limits, or "" for rateLimit; of several, the innermost that applies to the request, or none; if absent, the innermost of all.',
    ),
  wait: oneOrMany(WaitSchema)
    .optional()
    .describe('How long to wait: the first of these headers that is present, or a fixed duration.'),
});

/** How an upstream signals throttling. */
export const ThrottleSchema = z.strictObject({
  reasonHeader: HeaderName.optional().describe('The response header with the reason of a rejection.'),
  verdictHeader: HeaderName.optional().describe(
    'The response header that says whether to retry, true or false; it takes precedence over retryOn.',
  ),
  limitHeader: HeaderName.optional().describe(
    'The response header that names the limit of the quota in it, and of a rejection because nothing of that quota is left.',
  ),
  limitNames: z
    .record(UpstreamWord, z.string())
    .optional()
    .describe(
      'The names of limits, or "" for rateLimit, by the value of limitHeader. A value that is neither here nor the name of a limit is that of a limit that is not configured: its quota holds no request.',
    ),
  codeField: oneOrMany(CodeField)
    .optional()
    .describe(
      'The field with an error code in a JSON body: error.code, errors.*.code. Read only where a rule of answers has code.',
    ),
  answers: z
    .array(AnswerRuleSchema)
    .prefault([])
    .describe(
      'Rules for what responses mean; the first match applies. A 429 is throttled unless a rule says otherwise.',
    ),
});
