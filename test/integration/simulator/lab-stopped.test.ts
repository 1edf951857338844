import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { StudySpec } from '../../../src/laboratory/commands/study-parser.ts';
import type { LabReport } from '../../../src/laboratory/commands/lab-command.ts';
import { runLab } from '../../../src/laboratory/commands/lab-command.ts';
import { readFile } from '../../../src/cli/read-file.ts';

const CONTENTION: StudySpec = { study: 'contention', sizes: [5], trials: 1, strategies: [], options: {} };

/** A log of three requests a second, for this many seconds. */
function fitOf(seconds: number): StudySpec {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const log = join(folder, 'log.csv');
  const lines = Array.from({ length: 3 * seconds }, (_, i) => `${(i / 3).toFixed(2)},c,${i % 3 === 0 ? 429 : 200}\n`);
  writeFileSync(log, `time,client,status\n${lines.join('')}`);
  return { study: 'fit', log, policies: [], rate: undefined, burst: undefined };
}

/** Stopped when the progress bar is drawn, or at once. */
function stopped(study: StudySpec, at: 'once' | 'bar', json = false): Promise<LabReport> {
  const stop = new AbortController();
  if (at === 'once') stop.abort();
  const terminal = { columns: 80, write: (): void => stop.abort() };
  const surroundings = { env: {}, readFile };
  return runLab(
    { kind: 'lab', study, seed: 1, json, svg: undefined },
    { signal: stop.signal, terminal, environment: surroundings },
  );
}

test.each([
  { what: 'contention', study: () => CONTENTION },
  { what: 'fit', study: () => fitOf(600) },
])('reports that $what was stopped before it had a result, without an empty table', async ({ study }) => {
  const remarks = 'tidegate: stopped at 0 %: no results yet\n';
  const nothing = { kind: 'ran', remarks, draw: undefined, exitCode: 130 };
  expect(await stopped(study(), 'once')).toMatchObject({ ...nothing, text: '' });
  // With --json the report is JSON too.
  const asJson = await stopped(study(), 'once', true);
  expect(asJson).toMatchObject(nothing);
  if (asJson.kind === 'failed') throw new Error(asJson.message);
  expect(JSON.parse(asJson.text)).toBeTypeOf('object');
});

test('shows what fit has read or replayed when it is stopped', async () => {
  const report = await stopped(fitOf(300_000), 'bar');
  if (report.kind === 'failed') throw new Error(report.message);
  expect(report.exitCode).toBe(130);
  expect(report.remarks).toMatch(/^tidegate: stopped at \d+ %: these are the results so far\n$/);
  expect(report.text).toMatch(/: \d+ requests in \d+[smh]/);
  expect(report.text).toMatch(/so far|its limit was being searched/);
  expect(report.text).toContain('(the log)');
});
