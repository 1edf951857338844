import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { run } from '../../support/proxy/process.ts';

const SHORT = `
title: A short one
duration: 20s
warmup: 5s
upstream: {limit: {kind: token-bucket, rate: 50/s, burst: 5}, latency: 20ms}
clients: [{count: 5, total: 100/s}]
goals: {goodput: ">= 0.5", waste: <= 0}
`;

function temporaryFile(text: string): { readonly folder: string; readonly file: string } {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'short.yaml');
  writeFileSync(file, text);
  return { folder, file };
}

test('--list names every scenario with a one-line description', async () => {
  const { code, stdout, stderr } = await run(['simulate', '--list']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^ {2}token-bucket {2,}A token bucket of 100\/s/m);
  expect(stdout).not.toContain('mistakes');
});

test('--json prints one object, byte-identical for the same file and seed', async () => {
  const { file } = temporaryFile(SHORT);
  const [first, second, other] = await Promise.all([
    run(['simulate', file, '--json']),
    run(['simulate', file, '--json', '--seed', '1']),
    run(['simulate', file, '--json', '--seed', '2']),
  ]);
  expect(first).toEqual(second);
  expect(other.stdout).not.toBe(first.stdout);
  const report = JSON.parse(first.stdout) as Record<string, unknown>;
  expect(report).toMatchObject({ scenario: file, seed: 1, span: 15_000 });
  expect(Object.keys(report['latency'] ?? {})).toEqual(['p50', 'p99']);
  for (const figure of ['goodput', 'waste', 'failures', 'refused', 'jain', 'oscillation']) {
    expect(typeof report[figure]).toBe('number');
  }
  expect(report).toMatchObject({
    goals: [
      { goal: 'goodput', met: true },
      { goal: 'waste', met: false },
    ],
  });
  expect(report['series']).toHaveLength(80);
});

test('--json prints null for a rate without a limit', async () => {
  const { stdout } = await run(['simulate', 'open', '--json']);
  const { series } = JSON.parse(stdout) as { readonly series: readonly { readonly rate: unknown }[] };
  expect(new Set(series.map(({ rate }) => rate))).toEqual(new Set([null]));
});

test('--svg writes a drawing, and a missed goal exits with 1 only with --check', async () => {
  const { file, folder } = temporaryFile(SHORT);
  const drawing = join(folder, 'short.svg');
  const { code, stdout, stderr } = await run(['simulate', file, '--svg', drawing]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('MISSED  waste <= 0: ');
  expect(readFileSync(drawing, 'utf8')).toMatch(/^<svg [^]*A short one[^]*<\/svg>\n$/);
  const checked = await run(['simulate', file, '--check']);
  expect(checked).toMatchObject({ code: 1, stderr: 'tidegate: goals missed: waste\n' });
});

test('an error is reported in one line', async () => {
  const { file, folder } = temporaryFile(SHORT);
  const nowhere = join(folder, 'no', 'x.svg');
  const refusals: [args: string[], code: number, stderr: string][] = [
    [['token-bukcet'], 2, "no scenario is called 'token-bukcet' (did you mean token-bucket?)"],
    [['zzzzzzzzzz'], 2, "no scenario is called 'zzzzzzzzzz'; simulate --list shows the scenarios"],
    [['./nowhere.yaml'], 1, './nowhere.yaml: cannot be read: no such file'],
  ];
  for (const [args, code, line] of refusals) {
    expect(await run(['simulate', ...args])).toEqual({ code, stdout: '', stderr: `tidegate: ${line}\n` });
  }
  for (const [path, problem] of [
    [nowhere, 'no such file'],
    [folder, 'it is a directory'],
  ] as const) {
    const { code, stdout, stderr } = await run(['simulate', file, '--svg', path]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: `tidegate: ${path} cannot be written: ${problem}\n` });
    expect(stdout, 'the result comes first').toContain('MISSED  waste <= 0: ');
  }
  const mistaken = await run(['simulate', temporaryFile(`${SHORT}sed: 3\n`).file]);
  expect(mistaken.code).toBe(1);
  expect(mistaken.stderr).toContain('short.yaml:8:1 sed: unknown key (did you mean seed?)');
});
