/** Deliveries in SQLite whose process is killed, or whose disk is full. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { SqliteDeliveryStore } from '../../../src/store/deliveries/sqlite-delivery-store.ts';
import { GroupCommit } from '../../../src/store/sqlite/group-commit.ts';
import { StateDatabase } from '../../../src/store/sqlite/state-database.ts';
import { deliveryId } from '../../support/deliveries/delivery-place.ts';
import { openLimitedDisk } from '../../support/limited-disk.ts';

const PROGRAM = fileURLToPath(new URL('../../support/deliveries/adding-process.ts', import.meta.url));
const KINDS = ['stored', 'unavailable', 'delivered'] as const;

type Kind = (typeof KINDS)[number];

/** A process that adds deliveries, and the numbers of those that it has reported. */
function startAdding(file: string, first: number) {
  const child = spawn(process.execPath, [PROGRAM, file, String(first)], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const reported: Record<Kind, number[]> = { stored: [], unavailable: [], delivered: [] };
  let checks: (() => void)[] = [];
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    const kind = KINDS.find((each) => line.startsWith(each));
    if (kind === undefined) throw new Error(line);
    reported[kind].push(Number(line.split(' ')[1]));
    for (const check of checks) check();
  });
  /** Resolves once this is so, after a line. */
  const until = async (isSo: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => {
        if (!isSo()) return;
        checks = checks.filter((each) => each !== check);
        resolve();
      };
      checks.push(check);
    });
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await Promise.all([once(child, 'exit'), once(lines, 'close')]);
  };
  return { reported, until, kill, pid: child.pid ?? 0 };
}

/** What the next process finds. */
async function readStates(file: string, numbers: readonly number[]): Promise<(string | undefined)[]> {
  const database = new StateDatabase({ file, durability: 'normal' });
  try {
    const commit = new GroupCommit({
      ...{ db: database.db, clock: performance },
      ...{ schedule: () => undefined, onProblem: () => undefined },
    });
    const keepFor = (): number => 3_600_000;
    const store = new SqliteDeliveryStore({ commit, secret: 'a secret', wallClock: () => Date.now(), keepFor });
    const { counts, bytes } = store.totals;
    expect([counts.waiting + counts.delivered > 0, bytes > 0]).toEqual([true, true]);
    const rows = database.db
      .prepare('SELECT count(*) AS n, total(length(sealed)) AS bytes FROM delivery_messages')
      .get();
    expect(rows).toEqual({ n: counts.waiting + counts.delivered, bytes });
    const states: (string | undefined)[] = [];
    for (const n of numbers) {
      const [message, delivery] = [await store.message(deliveryId(n)), await store.find(deliveryId(n))];
      states.push(message?.target === `/hooks?n=${n}` ? delivery?.state.kind : undefined);
    }
    return states;
  } finally {
    database.close();
  }
}

test('nothing that is stored is lost if the process is killed amid additions, and no stored result is forgotten', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-killed-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'state.db');
  let first = 1;
  for (const lines of [1, 333, 1001]) {
    const process = startAdding(file, first);
    const { stored, delivered } = process.reported;
    await process.until(() => stored.length >= lines);
    await process.kill();
    const states = new Set(await readStates(file, stored));
    expect([...states].filter((state) => state !== 'waiting' && state !== 'delivered')).toEqual([]);
    expect(new Set(await readStates(file, delivered))).toEqual(new Set(delivered.length > 0 ? ['delivered'] : []));
    first = Math.max(...stored) + 1000;
  }
});

test('while the disk is full, additions are unavailable, and nothing that is stored is lost', async () => {
  const disk = openLimitedDisk();
  const file = join(disk.folder, 'state.db');
  const { reported, until, kill, pid } = startAdding(file, 1);
  const { stored, unavailable, delivered } = reported;
  await until(() => stored.length > 100);
  let seen = stored.length;
  await until(() => {
    if (unavailable.length >= 100) return true;
    if (stored.length > seen) disk.fill(pid); // SQLite had room in its files
    seen = stored.length;
    return false;
  });
  disk.makeRoom(pid);
  const before = stored.length;
  await until(() => stored.length > before + 100);
  await kill();
  const states = new Set(await readStates(file, stored));
  expect([...states].filter((state) => state !== 'waiting' && state !== 'delivered')).toEqual([]);
  expect(new Set(await readStates(file, delivered))).toEqual(new Set(['delivered']));
  expect(new Set(await readStates(file, unavailable))).toEqual(new Set([undefined]));
});
