import { z } from 'zod';
import type { GoalBound } from '../report/goals.ts';
import { Name } from '../../config/schema/name-schemas.ts';
import { parseDuration, formatDuration } from '../../config/values/unit-schemas.ts';
import type { ParseResult } from '../../config/values/text-codec.ts';
import { parseFailure, textCodec } from '../../config/values/text-codec.ts';

const BOUND_PATTERN = /^(>=|<=)\s*(\S+)$/;

/** ">= 0.92" */
const BoundSchema = boundSchema('">= 0.92" or "<= 0.01"', parseNumber, String);

/** "<= 300ms" */
const DurationBoundSchema = boundSchema('"<= 300ms" or "<= 5s"', parseDuration, formatDuration);

const latency = z
  .strictObject({
    p50: DurationBoundSchema.exactOptional().describe('The median.'),
    p99: DurationBoundSchema.exactOptional().describe('The 99th percentile.'),
  })
  .describe('The latency that the proxy added to the last attempt, of successes.');
const jain = BoundSchema.exactOptional().describe('Jain’s fairness index: 1 when all are served alike.');

const GroupGoals = z.strictObject({
  served: BoundSchema.exactOptional().describe('Successes ÷ offered requests.'),
  share: BoundSchema.exactOptional().describe('Its successes ÷ all successes.'),
  jain,
  latency: latency.exactOptional(),
});

/** The goals of a scenario. */
export const GoalsSchema = z.strictObject({
  goodput: BoundSchema.exactOptional().describe(
    'Successes ÷ the requests that the limit or the demand would have allowed.',
  ),
  waste: BoundSchema.exactOptional().describe('429 and 5xx responses of the upstream ÷ successes.'),
  failures: BoundSchema.exactOptional().describe(
    'Requests that ended neither in a success nor in a rejection by the proxy ÷ all.',
  ),
  refused: BoundSchema.exactOptional().describe('Requests that the proxy rejected ÷ all.'),
  wasted: BoundSchema.exactOptional().describe('Attempts that the upstream answered with 429 or 5xx.'),
  oscillation: BoundSchema.exactOptional().describe('Standard deviation of the rate ÷ its mean.'),
  jain,
  latency: latency.exactOptional(),
  settled: DurationBoundSchema.exactOptional().describe(
    'The time from the last change of the upstream until the run has settled.',
  ),
  groups: z.record(Name, GroupGoals).exactOptional().describe('Goals of client groups, by name.'),
});

function boundSchema(
  expected: string,
  parseValue: (text: string) => ParseResult<number>,
  formatValue: (value: number) => string,
): ReturnType<typeof textCodec<GoalBound>> {
  return textCodec<GoalBound>({
    expected: `a bound such as ${expected}`,
    forms: [{ type: 'string', pattern: BOUND_PATTERN.source }],
    parse(input) {
      const [, is, text] = BOUND_PATTERN.exec(String(input)) ?? [];
      if ((is !== '>=' && is !== '<=') || text === undefined) {
        return parseFailure(`expected a bound such as ${expected}`);
      }
      const reading = parseValue(text);
      if (reading.ok) return { ok: true, value: { is, value: reading.value } };
      return parseFailure(
        reading.message,
        reading.suggestion === undefined ? undefined : `${is} ${reading.suggestion}`,
      );
    },
    format: ({ is, value }) => `${is} ${formatValue(value)}`,
  });
}

function parseNumber(text: string): ParseResult<number> {
  return /^\d+(?:\.\d+)?$/.test(text)
    ? { ok: true, value: Number(text) }
    : parseFailure('expected a number, such as 0.92');
}
