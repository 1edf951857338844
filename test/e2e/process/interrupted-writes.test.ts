/** What a start reports of many writes without a key that a crash has interrupted. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers, type Workers } from '../../support/proxy/workers.ts';

const PATIENCE = 300_000;
const COUNT = 3000;
/** Writes of one step. */
const STEP = 100;

const reportsOf = (gate: Workers): unknown[] =>
  gate
    .log()
    .filter(({ msg }) => String(msg).startsWith('a write without an idempotency key'))
    .map(({ requestId }) => requestId);

test.each([
  ['one process', 1],
  ['two workers', 2],
] as const)(
  'each is reported, also by a small log buffer, and after a kill -9 in between: %s',
  async (_, workers) => {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-interrupted-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'state.db');
    const start = () =>
      startWorkers(
        `workers: ${workers}\nlog: {buffer: 64KiB}\nstate: {store: sqlite, file: ${file}}\nupstreams: {api: {url: "http://127.0.0.1:1"}}`,
      );
    const first = await start();
    first.child.kill('SIGTERM');
    await first.ended;
    const database = new DatabaseSync(file);
    const put = database.prepare('INSERT INTO open_writes VALUES (?, ?, ?, ?, ?)');
    database.exec('BEGIN');
    const ids = Array.from({ length: COUNT }, (__, n) => `crashed-${n}`);
    for (const [n, id] of ids.entries()) put.run(id, '/', 'api', 'POST', 1_700_000_000_000 + n);
    database.exec('COMMIT');
    database.close();

    const second = await start();
    await eventually(
      () => reportsOf(second).length,
      (count) => count > COUNT / 3,
    );
    for (const pid of [second.child.pid ?? 0, ...second.pids()]) process.kill(pid, 'SIGKILL');
    await second.ended;
    const third = await start();
    const reported = await eventually(
      () => [...reportsOf(second), ...reportsOf(third)],
      (all) => new Set(all).size === COUNT,
      60_000,
    );
    // The writes of one step may have been reported, but not deleted.
    expect(reported.length - COUNT).toBeLessThanOrEqual(STEP);
    expect(await third.sum('tidegate_writes_interrupted_total{')).toBe(reportsOf(third).length);
  },
  PATIENCE,
);
