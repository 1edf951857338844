import { describe, expect, test } from 'vitest';
import { parseArguments } from '../../src/cli/parse-arguments.ts';
import type { LabCommand } from '../../src/laboratory/commands/lab-arguments.ts';
import type { LabReport } from '../../src/laboratory/commands/lab-command.ts';
import { runLab } from '../../src/laboratory/commands/lab-command.ts';

const SURROUNDINGS = { env: {}, readFile: () => '' };

async function ran(line: string, signal: AbortSignal): Promise<Extract<LabReport, { kind: 'ran' }>> {
  const command = parseArguments(['lab', ...line.split(' ')]) as LabCommand;
  const report = await runLab(command, { signal, terminal: undefined, surroundings: SURROUNDINGS });
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

/** Stopped when something has come of it: sooner or later it has. */
async function stoppedInTime(line: string): ReturnType<typeof ran> {
  for (let after = 50; ; after *= 2) {
    const report = await ran(line, AbortSignal.timeout(after));
    if (report.text !== '') return report;
  }
}

describe('stopped', () => {
  test.each(ENDLESS)('before lab %s has come to anything: it says so, and shows and draws nothing', async (line) => {
    const stopped = await ran(line, AbortSignal.abort());
    expect(stopped).toMatchObject({ text: '', draw: undefined, exitCode: 130 });
    expect(stopped.remarks).toBe('tidegate: stopped at 0 %: there is nothing to show yet\n');
    const { text } = await ran(`${line} --json`, AbortSignal.abort());
    expect(JSON.parse(text)).toEqual({ rows: [] });
  });

  test.each(ENDLESS)('after a while, lab %s shows what there is', async (line) => {
    const { text, remarks, draw, exitCode } = await stoppedInTime(line);
    expect(exitCode).toBe(130);
    expect(remarks).toMatch(/^tidegate: stopped at \d+ %: this is what there is so far\n$/);
    expect(text).toMatch(/\d/);
    expect(text).not.toMatch(/NaN|Infinity|undefined/);
    expect(draw?.()).toMatch(/^<svg /);
    expect(draw?.()).not.toMatch(/NaN|Infinity|undefined/);
  });

  test('what is computed at once is whole whenever it is stopped', async () => {
    expect(await ran('aloha --n 50 --k 60 --load 0.3', AbortSignal.abort())).toMatchObject({
      remarks: '',
      exitCode: 0,
    });
  });
});

test('an option that makes no difference is remarked upon, once', async () => {
  const { remarks } = await ran('contention sip --n 2 --trials 1 --exponent 3', new AbortController().signal);
  expect(remarks).toBe('tidegate: --exponent makes no difference to sip: polynomial reads it\n');
});
