import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ProcessResult } from '../../support/proxy/process.ts';
import { run, startProcess } from '../../support/proxy/process.ts';

const SHORT = [
  'contention --n 5 --trials 3',
  'aloha --slots 20000',
  'aloha --n 50 --k 60 --load 0.3',
  'aloha table --n 50 --load 0.3 --slots 20000',
  'ethernet --n 3 --seconds 1',
  'thundering-herd full-jitter --n 50 --trials 1',
];

test.each(SHORT)('lab %s prints figures, writes a drawing, and prints reproducible JSON', async (line) => {
  const words = line.split(' ');
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'lab.svg');
  const [text, first, second] = await Promise.all([
    run(['lab', ...words, '--svg', file]),
    run(['lab', ...words, '--json', '--seed', '5']),
    run(['lab', ...words, '--json', '--seed', '5']),
  ]);
  // No progress bar in a pipe.
  expect({ code: text.code, stderr: text.stderr }).toEqual({ code: 0, stderr: '' });
  expect(text.stdout).not.toMatch(/NaN|undefined|\r/);
  expect(first).toEqual(second);
  expect(JSON.parse(first.stdout)).toBeInstanceOf(Object);
  expect(readFileSync(file, 'utf8')).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
  expect(readFileSync(file, 'utf8')).not.toMatch(/NaN|Infinity|undefined/);
});

test('Ctrl-C prints partial results', async () => {
  const { code, stdout, stderr } = await interrupted([
    'lab',
    'contention',
    '--n',
    '10',
    '--trials',
    '1000000',
    '--json',
  ]);
  expect(code).toBe(130);
  const { rows } = JSON.parse(stdout) as { rows: { strategy: string; calls: number }[] };
  expect(rows[0]).toMatchObject({ n: 10, strategy: 'none' });
  expect(stderr).toMatch(/^tidegate: stopped at \d+ %: these are the results so far\n$/);
});

/** Interrupts the command after it has started, with a longer delay each time it had not. */
async function interrupted(args: readonly string[]): Promise<ProcessResult> {
  for (let after = 500; ; after *= 2) {
    const { child, ended } = startProcess(args);
    await sleep(after);
    child.kill('SIGINT');
    const result = await ended;
    if (result.code !== null) return result;
  }
}

test('contradictory options are reported in one line', async () => {
  const { code, stderr } = await run(['lab', 'contention', 'grpc', '--base', '5s', '--max', '1s']);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: 'tidegate: grpc: --max 1s is shorter than --base 5s\n',
  });
});

test('figures are printed although the drawing cannot be written', async () => {
  const { code, stdout, stderr } = await run(['lab', 'aloha', '--slots', '20000', '--svg', '/nowhere/lab.svg']);
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'tidegate: /nowhere/lab.svg cannot be written: no such file\n' });
  expect(stdout).toContain('slotted: G·e^(−G)');
});

test('fit replays a log through all policies and a given limit', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const log = join(folder, 'log.csv');
  const lines = Array.from({ length: 600 }, (_, i) => `${i * 10},c${i % 3},${i % 2 === 0 ? 200 : 429}`);
  writeFileSync(
    log,
    `time,client,status\n${lines.map((line) => line.replace(',', '.0,')).join('\n')}\n\nno line of it\n`,
  );
  const { code, stdout, stderr } = await run(['lab', 'fit', log, 'token-bucket', '--limit', '50/s', '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const {
    log: seen,
    skipped,
    rows,
  } = JSON.parse(stdout) as {
    log: { requests: number; refused: number };
    skipped: number;
    rows: { policy: string; requests: number }[];
  };
  expect(seen).toMatchObject({ requests: 600, refused: 300 });
  expect(skipped).toBe(1);
  expect(rows.map(({ policy }) => policy)).toEqual([
    'no retries',
    'fixed',
    'exponential',
    'full-jitter',
    'decorrelated-jitter',
    'tidegate',
    'tidegate: token-bucket',
  ]);
  for (const { requests } of rows) expect(requests).toBe(600);
});

describe('fit of an unsorted log', () => {
  /** Writes a log of one request a second, `late` of which are two minutes out of order. */
  function writeLog(late: number): string {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const log = join(folder, 'log.csv');
    const lines = Array.from({ length: 1000 }, (_, i) => `${i >= 500 && i < 500 + late ? i - 120 : i},c,200\n`);
    writeFileSync(log, `time,client,status\n${lines.join('')}`);
    return log;
  }

  test('warns with the position when few requests are out of order', async () => {
    const log = writeLog(2);
    const [{ stdout }, { stdout: json }] = await Promise.all([
      run(['lab', 'fit', log]),
      run(['lab', 'fit', log, '--json']),
    ]);
    expect(stdout).toContain(
      '\n2 requests (0.2 %) were out of order, and replayed late: line 502 is 119s older than line 501; sort the log by time\n',
    );
    expect(JSON.parse(json)).toMatchObject({ disorder: { late: 2, first: { line: 502, after: 501, by: 119_000 } } });
  });

  test('fails with the remedy when many requests are out of order', async () => {
    const log = writeLog(20);
    const { code, stdout, stderr } = await run(['lab', 'fit', log, '--json']);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: `tidegate: ${log}:502: 119s older than line 501, and 20 of 1000 requests (2 %) are out of order; sort the log by time\n`,
    });
  });
});

test('an unusable log is reported in one line', async () => {
  const [without, packed] = await Promise.all([run(['lab', 'fit']), run(['lab', 'fit', 'node_modules'])]);
  expect(without).toEqual({
    code: 2,
    stdout: '',
    stderr: 'tidegate: fit needs a LOG; run tidegate help lab for usage\n',
  });
  expect(packed).toEqual({
    code: 2,
    stdout: '',
    stderr: 'tidegate: node_modules: is a directory; name a file in it\n',
  });
});
