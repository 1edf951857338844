import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { runLab } from '../../../src/laboratory/commands/lab-command.ts';
import { readFile } from '../../../src/cli/read-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, content: string | Buffer): string {
  writeFileSync(join(folder, name), content);
  return name;
}

function mkdir(name: string): string {
  mkdirSync(join(folder, name));
  return name;
}

const GOOD = 'time,client,status\n1,a,200\n';

/** The message about a log, without the folder that it is in. */
async function refusalOf(log: string): Promise<string> {
  const study = { study: 'fit', log, policies: [], rate: undefined, burst: undefined } as const;
  const runOptions = { signal: new AbortController().signal, terminal: undefined, environment: { env: {}, readFile } };
  const report = await runLab({ kind: 'lab', study, seed: 1, json: false, svg: undefined }, runOptions);
  if (report.kind === 'ran') throw new Error(report.text);
  expect(report.exitCode).toBe(2);
  return report.message.replaceAll(`${folder}/`, '');
}

test.each([
  { name: 'nowhere.csv', message: 'nowhere.csv cannot be read: no such file' },
  {
    name: write('good.csv', GOOD).replace('good', 'god'),
    message: 'god.csv cannot be read: no such file (is it good.csv?)',
  },
  { name: mkdir('folder'), message: 'folder: is a directory; name a file in it' },
  {
    name: '/dev/null',
    message: '/dev/null: is not a regular file, which a log must be, because it is read twice',
  },
  { name: '-', message: 'standard input cannot be read twice, as a log is: name a file' },
  { name: write('empty.csv', ''), message: 'empty.csv: is empty' },
  { name: write('blank.csv', `\n${GOOD}`), message: 'blank.csv:1: is empty; ' },
  {
    name: write('packed.csv.gz', gzipSync(GOOD)),
    message: 'packed.csv.gz: is compressed (gzip): gunzip -k packed.csv.gz decompresses it',
  },
  {
    name: write('wide.csv', Buffer.from(`\ufeff${GOOD}`, 'utf16le')),
    message: 'wide.csv: is UTF-16: convert it with iconv ',
  },
  { name: write('binary', Buffer.from([1, 2, 0, 3])), message: 'binary: is binary; a log is JSON lines or CSV' },
  {
    name: write('columns.csv', 'when,client,code\n1,a,200\n'),
    message: 'columns.csv:1: has the columns when, client, code, without time and status: ',
  },
  {
    name: write('head.csv', 'time,client,status\n'),
    message: 'head.csv: has no line below its header',
  },
  {
    name: write('times.csv', 'time,client,status\nnoon,a,200\n'),
    message: "times.csv:2: has the time 'noon': expected ISO 8601, ",
  },
  {
    name: write('codes.csv', 'time,client,status\n1,a,200 OK\n2,a,\n'),
    message: "codes.csv:2: has the status '200 OK': expected a number",
  },
  {
    name: write('pretty.json', '{\n  "time": 1\n}\n'),
    message: 'pretty.json:1: is not a complete JSON value: a log has one object per line',
  },
  {
    name: write('quiet.log', '{"level":"info","time":"2026-11-22T10:00:00.000Z","msg":"draining"}\n'),
    message: 'quiet.log:1: has no status: ',
  },
])('explains in one line where fit of $name fails, why, and what to do', async ({ name, message }) => {
  const refusal = await refusalOf(/^[-/]/.test(name) ? name : join(folder, name));
  expect(refusal.slice(0, message.length)).toBe(message);
  expect(refusal).not.toContain('\n');
});

test('does not wait for a pipe without a writer', async () => {
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  expect(await refusalOf(join(folder, 'pipe'))).toBe(
    'pipe: is not a regular file, which a log must be, because it is read twice',
  );
});

test('rejects a log without requests to an upstream', async () => {
  const line = { time: '2026-11-22T10:00:00.000Z', status: 404, outcome: 'refused', attempts: 0, ms: 1 };
  const log = write('aside.log', `${JSON.stringify(line)}\n`);
  expect(await refusalOf(join(folder, log))).toBe(
    'aside.log: of 1 request none was for an upstream: there is nothing to replay',
  );
});
