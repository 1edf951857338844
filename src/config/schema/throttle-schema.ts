import { z } from 'zod';
import { HeaderName, Method } from './name-schemas.ts';
import { oneOrMany } from '../values/one-or-many.ts';
import { PathPattern } from '../values/path-pattern-schema.ts';
import { Duration } from '../values/unit-schemas.ts';

/** Beyond 599 a status is nobody's but its upstream's: 999 says the same to some as 429. */
const Status = z.int().min(200).max(999);

/** A word of the upstream's; `*` stands for anything. */
const Word = z.string().min(1).max(128);

/** Where a code stands in a JSON body: members by their names, `*` each member or item. */
const Field = z
  .string()
  .regex(/^[^.\s]+(?:\.[^.\s]+)*$/, 'expected members of a JSON body, such as error.code or errors.*.code')
  .max(128);

const Wait = z.union([
  Duration,
  z.strictObject({
    header: HeaderName.describe('The header that says when to come back.'),
    format: z
      .enum(['seconds', 'milliseconds', 'epoch-seconds', 'epoch-milliseconds', 'http-date'])
      .describe('What it holds: a delay, or a point in time.'),
    plus: Duration.prefault('0s').describe('Added to it.'),
  }),
]);

const Answer = z.strictObject({
  status: oneOrMany(Status).optional().describe('Only these statuses.'),
  method: oneOrMany(Method).optional().describe('Only of requests with these methods.'),
  path: oneOrMany(PathPattern)
    .optional()
    .describe('Only of requests for these paths, as the upstream sees them: * one segment, ** at the end the rest.'),
  header: z
    .record(HeaderName, Word)
    .optional()
    .describe('Only with these headers, whose values may have a *: {X-RateLimit-Remaining: "0"}.'),
  reason: oneOrMany(Word).optional().describe('Only with one of these words in reasonHeader; they may have a *.'),
  code: oneOrMany(Word).optional().describe('Only with one of these at a codeField of the body; they may have a *.'),
  is: z
    .enum(['throttled', 'lock', 'answer'])
    .optional()
    .describe(
      'throttled: a refusal for its rate, whatever the status; lock: one about an object, which cuts no rate; answer: neither, whatever the status.',
    ),
  limit: z
    .union([z.string(), z.array(z.string()).min(1)])
    .optional()
    .describe(
      'Which limit is meant: the name of one of limits, or "" for rateLimit; of several, the innermost that the request stands under, or none of all; the innermost of all if absent.',
    ),
  wait: oneOrMany(Wait)
    .optional()
    .describe(
      'How long to wait: by these headers, of which the first that is there counts; a time where the answer does not say.',
    ),
});

/** How an upstream says no. */
export const Throttle = z.strictObject({
  reasonHeader: HeaderName.optional().describe('The header that says in a word why a request was refused.'),
  verdictHeader: HeaderName.optional().describe(
    'The header that says whether to try again, true or false; it is obeyed before retryOn.',
  ),
  codeField: oneOrMany(Field)
    .optional()
    .describe(
      'Where a code stands in a JSON body: error.code, errors.*.code. Read where a rule of answers asks for it.',
    ),
  answers: z
    .array(Answer)
    .prefault([])
    .describe(
      'What answers mean that are not as usual; the first that fits holds. A 429 is throttled unless one says otherwise.',
    ),
});
