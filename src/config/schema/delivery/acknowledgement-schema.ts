import { z } from 'zod';
import { oneOrMany } from '../../values/one-or-many.ts';
import type { ParseResult } from '../../values/text-codec.ts';
import { parseFailure, textCodec } from '../../values/text-codec.ts';
import { JsonFieldPath } from '../name-schemas.ts';

/** All successes, or one status. */
export type AcknowledgingStatus = '2xx' | number;

const EXPECTED = '2xx, or a status from 200 to 499';

const AcknowledgingStatusSchema = textCodec<AcknowledgingStatus>({
  expected: EXPECTED,
  forms: [
    { enum: ['2xx'] },
    { type: 'integer', minimum: 200, maximum: 499 },
    { type: 'string', pattern: String.raw`^[234]\d\d$` },
  ],
  parse: parseStatus,
  format: (status) => status,
});

function parseStatus(input: string | number): ParseResult<AcknowledgingStatus> {
  const text = String(input);
  if (text === '2xx') return { ok: true, value: text };
  if (/^2xx$/i.test(text)) return parseFailure(`expected ${EXPECTED}`, '2xx');
  if (text === '429') return parseFailure('a 429 is a rejection by the rate limit: it acknowledges nothing');
  if (/^5\d\d$/.test(text)) return parseFailure('a 5xx is a failure: it acknowledges nothing');
  if (/^[234]\d\d$/.test(text)) return { ok: true, value: Number(text) };
  return parseFailure(`expected ${EXPECTED}`);
}

const BodyConditionSchema = z
  .strictObject({
    json: JsonFieldPath.optional().describe(
      'The field of a JSON body: code, or a.b within an object. If absent: the body itself.',
    ),
    equals: z
      .union([z.string().min(1).max(1024), z.number(), z.boolean()], 'expected text, a number, true or false')
      .describe('Its value: SUCCESS. White space around a body does not count.'),
  })
  .refine(({ json, equals }) => json !== undefined || typeof equals === 'string', {
    path: ['equals'],
    error: 'expected text: put it in quotes, because without json the whole body is compared',
  })
  .refine(({ json, equals }) => json !== undefined || typeof equals !== 'string' || equals.trim() !== '', {
    path: ['equals'],
    error: 'must not be empty: without json, white space around a body does not count',
  });

/** The responses that acknowledge a delivery. */
export const AcknowledgementSchema = z.strictObject({
  status: oneOrMany(AcknowledgingStatusSchema)
    .prefault('2xx')
    .describe('The statuses: 2xx, a status such as 200, or a list of these.'),
  body: BodyConditionSchema.optional().describe(
    'What the body must also say: {json: FIELD, equals: VALUE} or {equals: TEXT}; one above 64KiB does not acknowledge.',
  ),
});
