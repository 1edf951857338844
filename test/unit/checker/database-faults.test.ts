import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { databaseDamaged } from '../../checker/faults/database-faults.ts';
import { StartRefused } from '../../checker/gate-process.ts';

/** Draws the last kind of damage: the head of the file, after SIGTERM. */
const drawLast = (): number => 0.999;

/**
 * A process that ends after SIGTERM with this code, and leaves its log or not.
 * @param isBlind it serves with a damaged database too
 */
function fakeGate(code: number, leavesLog: boolean, isBlind = false) {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-checker-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'state.db');
  const database = new DatabaseSync(file);
  database.exec('PRAGMA journal_mode = WAL; CREATE TABLE writes (id)');
  if (leavesLog) copyFileSync(`${file}-wal`, `${file}-left`);
  database.close();
  if (leavesLog) copyFileSync(`${file}-left`, `${file}-wal`);
  const whole = readFileSync(file);
  const starts: boolean[] = [];
  const gate = {
    kill: () => Promise.resolve(),
    drain: () => Promise.resolve(code),
    start: () => {
      // The log has each damaged page.
      const serves = isBlind || existsSync(`${file}-wal`) || readFileSync(file).equals(whole);
      starts.push(serves);
      return serves ? Promise.resolve() : Promise.reject(new StartRefused(`${file} is damaged`));
    },
  };
  return { fault: databaseDamaged(gate, file), starts, isWhole: () => readFileSync(file).equals(whole) };
}

test('damages a database that a process has left without its log', async () => {
  const { fault, starts, isWhole } = fakeGate(0, false);
  await fault.inject(drawLast);
  expect([starts, isWhole()]).toEqual([[false, true], true]);
});

test('damages nothing if a process was too slow to drain, and has left its log', async () => {
  const { fault, starts, isWhole } = fakeGate(1, true);
  await fault.inject(drawLast);
  expect([starts, isWhole()]).toEqual([[true], true]);
});

test('damages a database whose process was too slow to drain, but has left no log', async () => {
  const { fault, starts, isWhole } = fakeGate(1, false);
  await fault.inject(drawLast);
  expect([starts, isWhole()]).toEqual([[false, true], true]);
});

test('reports a log that is left after a drain without an error', async () => {
  const { fault } = fakeGate(0, true);
  await expect(fault.inject(drawLast)).rejects.toThrow('it ended with 0 after SIGTERM, and its log is there');
});

test('reports a start with a damaged database', async () => {
  const { fault } = fakeGate(0, false, true);
  await expect(fault.inject(drawLast)).rejects.toThrow('it started although its head is overwritten');
});
