/** A state file becomes a database, also if the process is killed meanwhile. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { StateDatabase } from '../../../src/store/sqlite/state-database.ts';
import { atEnd } from '../../support/at-end.ts';
import { send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startReloadable } from '../../support/proxy/reloadable.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 90_000;
const RATE = 'tidegate_ratelimit_rate_requests_per_second{upstream="api",scope="upstream"}';
const STATE = '{"version": 1, "limits": []}';
const SOURCE = new URL('../../../src/store/sqlite/state-database.ts', import.meta.url);

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-convert-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function open(file: string): StateDatabase {
  const database = new StateDatabase({ file, durability: 'full' });
  atEnd(() => database.close());
  return database;
}

test.concurrent(
  'a rate that one process has learned into a file is that of the next one, with a database of the same name',
  async () => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n > 30) response.writeHead(429);
      response.end();
    });
    const file = join(makeFolder(), 'state.json');
    const yaml = (store: string) =>
      `state: {store: ${store}, file: ${file}}\nupstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
    const first = await startReloadable(yaml('memory'));
    for (let n = 0; n < 31; n += 1) await send(first.url, '/');
    const learned = await eventually(
      () => first.metric(RATE),
      (rate) => rate !== undefined && Number.isFinite(rate),
    );
    first.child.kill('SIGTERM');
    expect((await first.ended).code).toBe(0);
    const text = readFileSync(file, 'utf8');

    const second = await startReloadable(yaml('sqlite'));
    expect(second.log()).toContainEqual(expect.objectContaining({ msg: 'restored learned state', limits: 1 }));
    const known = Number(await second.metric(RATE));
    expect(known).toBeGreaterThan(0.5 * Number(learned));
    expect(known).toBeLessThan(2 * Number(learned));
    expect(readFileSync(`${file}.json`, 'utf8')).toBe(text);
    second.child.kill('SIGKILL');
    await second.ended;
    const third = await startReloadable(yaml('sqlite'));
    expect(third.log()).toContainEqual(expect.objectContaining({ msg: 'restored learned state', limits: 1 }));
  },
  PATIENCE,
);

test.concurrent.each([
  ['before', 'copyFileSync'],
  ['before', 'renameSync'],
  ['after', 'renameSync'],
  ['before', 'fsyncSync'],
  ['after', 'fsyncSync'],
])('a process that is killed %s %s loses nothing', (when, step) => {
  const file = join(makeFolder(), 'state.db');
  writeFileSync(file, STATE);
  const killed = spawnSync(process.execPath, [
    ...['--input-type=module', '--eval'],
    `import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    const original = fs.${step};
    fs.${step} = (...parts) => {
      if (${when === 'after'}) original(...parts);
      process.kill(process.pid, 'SIGKILL');
    };
    syncBuiltinESMExports();
    const { StateDatabase } = await import(${JSON.stringify(SOURCE.href)});
    new StateDatabase({ file: ${JSON.stringify(file)}, durability: 'full' });`,
  ]);
  expect([killed.signal, killed.stderr.toString()]).toEqual(['SIGKILL', '']);
  const database = open(file);
  expect(database.readLearned()).toBe(STATE);
  expect(readFileSync(`${file}.json`, 'utf8')).toBe(STATE);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  for (const left of ['.new', '.new-journal']) expect([left, existsSync(`${file}${left}`)]).toEqual([left, false]);
  database.close();
  expect(open(file).readLearned()).toBe(STATE);
});

test.concurrent('what a killed process left of a new database is replaced', () => {
  const file = join(makeFolder(), 'state.db');
  writeFileSync(file, STATE);
  writeFileSync(`${file}.new`, 'half a database');
  writeFileSync(`${file}.new-journal`, 'its journal');
  expect(open(file).readLearned()).toBe(STATE);
});

test.concurrent('a symbolic link to a state file leads to the database', () => {
  const folder = makeFolder();
  const [file, link] = [join(folder, 'state.json'), join(folder, 'link')];
  writeFileSync(file, STATE);
  symlinkSync(file, link);
  expect(open(link).readLearned()).toBe(STATE);
  expect(readFileSync(`${file}.json`, 'utf8')).toBe(STATE);
  expect(readFileSync(file).toString('latin1', 0, 15)).toBe('SQLite format 3');
});

test.concurrent('a state file beside the log of a database is not converted', () => {
  const file = join(makeFolder(), 'state.db');
  writeFileSync(file, STATE);
  writeFileSync(`${file}-wal`, 'log');
  expect(() => open(file)).toThrow(`${file} is a state file, but ${file}-wal is there`);
  expect(readFileSync(file, 'utf8')).toBe(STATE);
});

/**
 * Opens the file in a process of its own, stores a number as an idempotency key would be, and keeps it open until it is killed.
 * @param stopsBefore the function of node:fs in which the process waits until the file `go` is there
 */
function openElsewhere(
  file: string,
  number: number,
  stopsBefore?: string,
): { child: ChildProcess; output: () => string } {
  const stop =
    stopsBefore === undefined
      ? ''
      : `const original = fs.${stopsBefore};
    fs.${stopsBefore} = (...parts) => {
      fs.writeFileSync(${JSON.stringify(file)} + '.stopped', '');
      while (!fs.existsSync(${JSON.stringify(file)} + '.go')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      return original(...parts);
    };
    syncBuiltinESMExports();`;
  const child = spawn(process.execPath, [
    ...['--input-type=module', '--eval'],
    `import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    ${stop}
    const { StateDatabase } = await import(${JSON.stringify(SOURCE.href)});
    const database = new StateDatabase({ file: ${JSON.stringify(file)}, durability: 'full' });
    database.db.exec("INSERT INTO open_writes VALUES ('${number}', 'r', 'u', 'POST', 1)");
    fs.writeSync(1, 'stored');
    setInterval(() => undefined, 1000);`,
  ]);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => void (output += String(chunk)));
  }
  atEnd(() => void child.kill('SIGKILL'));
  return { child, output: () => output };
}

test.concurrent.each(['rmSync', 'copyFileSync', 'renameSync'])(
  'of two processes that convert a file at once, the one with the database loses no key, if the first waits in %s',
  async (step) => {
    const file = join(makeFolder(), 'state.db');
    writeFileSync(file, STATE);
    const first = openElsewhere(file, 1, step);
    await eventually(
      () => existsSync(`${file}.stopped`),
      (isStopped) => isStopped,
    );
    const second = openElsewhere(file, 2);
    // Without a lock, the second one would have the database by then, and the first one replace it.
    for (let waited = 0; waited < 20 && second.output() === ''; waited += 1) await pause(100);
    writeFileSync(`${file}.go`, '');
    const [one, other] = [first.output, second.output];
    await eventually(
      () => one() !== '' && other() !== '',
      (haveEnded) => haveEnded,
    );
    expect([one(), other()].toSorted()).toEqual([expect.stringContaining(`another process uses ${file}`), 'stored']);
    for (const { child } of [first, second]) {
      if (child.exitCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    const database = open(file);
    expect(database.readLearned()).toBe(STATE);
    expect(readFileSync(`${file}.json`, 'utf8')).toBe(STATE);
    const kept = one() === 'stored' ? '1' : '2';
    expect(database.db.prepare('SELECT request_id FROM open_writes').all()).toMatchObject([{ request_id: kept }]);
    expect(existsSync(`${file}.lock`)).toBe(false);
  },
  PATIENCE,
);

test.concurrent(
  'a process that stores its state in a file leaves a database alone that has taken its place',
  async () => {
    const upstream = await startHttpUpstream((_, response) => void response.end());
    const folder = makeFolder();
    const [file, database] = [join(folder, 'state.json'), join(folder, 'state.db')];
    const gate = await startReloadable(
      `state: {store: memory, file: ${file}}\nupstreams: {api: {url: "${upstream.url}"}}`,
    );
    writeFileSync(database, STATE);
    open(database).close();
    renameSync(database, file);
    gate.child.kill('SIGTERM');
    expect((await gate.ended).code).toBe(0);
    expect(gate.log()).toContainEqual(
      expect.objectContaining({ msg: 'cannot write the state file', why: 'it is a database of idempotency keys' }),
    );
    expect(open(file).readLearned()).toBe(STATE);
  },
  PATIENCE,
);
