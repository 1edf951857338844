import { describe, expect, test } from 'vitest';
import { parseArguments } from '../../../src/cli/parse-arguments.ts';
import type { LabCommand } from '../../../src/laboratory/commands/lab-arguments.ts';
import type { LabReport } from '../../../src/laboratory/commands/lab-command.ts';
import { runLab } from '../../../src/laboratory/commands/lab-command.ts';

const SURROUNDINGS = { env: {}, readFile: () => '' };

async function ran(line: string, signal: AbortSignal): Promise<Extract<LabReport, { kind: 'ran' }>> {
  const command = parseArguments(['lab', ...line.split(' ')]) as LabCommand;
  const report = await runLab(command, { signal, terminal: undefined, environment: SURROUNDINGS });
  if (report.kind !== 'ran') throw new Error(report.message);
  return report;
}

const ENDLESS = [
  'contention --trials 1000000',
  'aloha --slots 10000000000',
  'aloha --n 50 --load 0.3 --slots 10000000000',
  'ethernet --seconds 1000000',
  'thundering-herd --trials 1000000',
];

/** Stops the study as soon as it has a result. */
async function stoppedInTime(line: string): ReturnType<typeof ran> {
  for (let after = 50; ; after *= 2) {
    const report = await ran(line, AbortSignal.timeout(after));
    if (report.text !== '') return report;
  }
}

describe('a stopped study', () => {
  test.each(ENDLESS)('of lab %s without any result reports that, and shows and draws nothing', async (line) => {
    const stopped = await ran(line, AbortSignal.abort());
    expect(stopped).toMatchObject({ text: '', draw: undefined, exitCode: 130 });
    expect(stopped.remarks).toBe('tidegate: stopped at 0 %: no results yet\n');
    const { text } = await ran(`${line} --json`, AbortSignal.abort());
    expect(JSON.parse(text)).toEqual({ rows: [] });
  });

  test.each(ENDLESS)('of lab %s with some results shows them', async (line) => {
    const { text, remarks, draw, exitCode } = await stoppedInTime(line);
    expect(exitCode).toBe(130);
    expect(remarks).toMatch(/^tidegate: stopped at \d+ %: these are the results so far\n$/);
    expect(text).toMatch(/\d/);
    expect(text).not.toMatch(/NaN|Infinity|undefined/);
    expect(draw?.()).toMatch(/^<svg /);
    expect(draw?.()).not.toMatch(/NaN|Infinity|undefined/);
  });

  test('is complete if it is computed at once', async () => {
    expect(await ran('aloha --n 50 --k 60 --load 0.3', AbortSignal.abort())).toMatchObject({
      remarks: '',
      exitCode: 0,
    });
  });
});

test('an option without effect is reported once', async () => {
  const { remarks } = await ran('contention sip --n 2 --trials 1 --exponent 3', new AbortController().signal);
  expect(remarks).toBe('tidegate: --exponent has no effect on sip: polynomial uses it\n');
});
