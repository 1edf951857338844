import { z } from 'zod';
import type { Bound } from '../report/goals.ts';
import { Name } from '../../config/schema/name-schemas.ts';
import { readDuration, writeDuration } from '../../config/values/unit-schemas.ts';
import type { Reading } from '../../config/values/text-codec.ts';
import { misread, written } from '../../config/values/text-codec.ts';

const FORM = /^(>=|<=)\s*(\S+)$/;

/** ">= 0.92" */
const Least = bound('">= 0.92" or "<= 0.01"', readNumber, String);

/** "<= 300ms" */
const Time = bound('"<= 300ms" or "<= 5s"', readDuration, writeDuration);

const latency = z
  .strictObject({
    p50: Time.exactOptional().describe('The median.'),
    p99: Time.exactOptional().describe('What 99 of 100 did not exceed.'),
  })
  .describe('What was added to the time that the last attempt took, of successes.');
const jain = Least.exactOptional().describe('Jain’s index: 1 when all are served alike.');

const GroupGoals = z.strictObject({
  served: Least.exactOptional().describe('Successes ÷ what was offered.'),
  share: Least.exactOptional().describe('Its successes ÷ all successes.'),
  jain,
  latency: latency.exactOptional(),
});

/** What a scenario should come to. */
export const Goals = z.strictObject({
  goodput: Least.exactOptional().describe('Successes ÷ what the limit or the demand would have allowed.'),
  waste: Least.exactOptional().describe('Answers of the upstream that were 429 or 5xx ÷ successes.'),
  failures: Least.exactOptional().describe('Requests that ended neither in a success nor in a refusal of ours ÷ all.'),
  refused: Least.exactOptional().describe('Requests that we refused ÷ all.'),
  wasted: Least.exactOptional().describe('Attempts that the upstream answered with 429 or 5xx.'),
  oscillation: Least.exactOptional().describe('Standard deviation of the rate ÷ its mean.'),
  jain,
  latency: latency.exactOptional(),
  settled: Time.exactOptional().describe('How long after its last change the upstream was used well again.'),
  groups: z.record(Name, GroupGoals).exactOptional().describe('Of the groups of clients, by name.'),
});

function bound(
  expected: string,
  read: (text: string) => Reading<number>,
  write: (value: number) => string,
): ReturnType<typeof written<Bound>> {
  return written<Bound>({
    expected: `a bound such as ${expected}`,
    forms: [{ type: 'string', pattern: FORM.source }],
    read(input) {
      const [, is, text] = FORM.exec(String(input)) ?? [];
      if ((is !== '>=' && is !== '<=') || text === undefined) return misread(`expected a bound such as ${expected}`);
      const reading = read(text);
      if (reading.ok) return { ok: true, value: { is, value: reading.value } };
      return misread(reading.message, reading.suggestion === undefined ? undefined : `${is} ${reading.suggestion}`);
    },
    write: ({ is, value }) => `${is} ${write(value)}`,
  });
}

function readNumber(text: string): Reading<number> {
  return /^\d+(?:\.\d+)?$/.test(text) ? { ok: true, value: Number(text) } : misread('expected a number, such as 0.92');
}
