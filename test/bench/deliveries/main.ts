// The cost of stored deliveries: how many messages of 1 KiB the store alone accepts a second, in this process, for each durability; what
// memory and time they take while many wait; and how many notifications Tidegate accepts over sockets. With --kill: whether any is lost,
// renamed or out of order while the process is killed again and again. docs/performance.md has the results.
//
//   npm run bench:deliveries -- [--seconds N] [--waiting N] [--smoke] [--markdown FILE]
//   npm run bench:deliveries -- --kill [--notifications N] [--smoke] [--markdown FILE]

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { heldBytes } from '../../support/heap.ts';
import { writeSection } from '../control/section.ts';
import { type ControlTable, toMarkdown, toText } from '../control/table.ts';
import { runWithKills } from './kill-run.ts';
import { MeasuredStore } from './measured-store.ts';
import { measureSockets, type SocketsRow } from './sockets.ts';

/** Deliveries a second that are accepted: by the store with the durability `normal`, and over sockets. */
const GOAL = 5000;
const SOCKET_GOALS = { normal: 5000, full: 2000 } as const;
/** Milliseconds until the response, at most. */
const P99_GOAL = 20;
/** Bytes of memory for each delivery that waits, at most. */
const MEMORY_GOAL = 5;
/** Additions at a time: as many as connections that are never idle. */
const CONCURRENCY = 256;
const SENDING = 256;

const { seconds, waiting, notifications, kill, smoke, markdown } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    waiting: { type: 'string', default: '1000000' },
    notifications: { type: 'string', default: '100000' },
    kill: { type: 'boolean', default: false },
    smoke: { type: 'boolean', default: false },
    markdown: { type: 'string' },
  },
}).values;
const lasts = smoke ? 200 : 1000 * Number(seconds);
const steps = smoke ? [1000, 5000] : [10_000, Number(waiting)];
const folder = mkdtempSync(join(tmpdir(), 'tidegate-bench-deliveries-'));

try {
  await (kill ? runKills() : runAll());
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function runAll(): Promise<void> {
  const accepted = await measureAccepted();
  const waited = await measureWaiting();
  const rows = await measureSockets(folder, smoke ? 1 : 2 * Number(seconds));
  const tables = [accepted.table, waited.table, toSocketsTable(rows)];
  for (const table of tables) console.log(toText(table));
  if (markdown !== undefined) writeSection(markdown, 'deliveries', tables.map(toMarkdown).join('\n'));
  if (smoke) return;
  if (accepted.normal < GOAL) fail(`${accepted.normal.toFixed(0)} accepted a second, fewer than ${GOAL}`);
  if (waited.growth > MEMORY_GOAL) fail(`${waited.growth.toFixed(1)} bytes of memory for each that waits`);
  for (const { durability, receiver, rate, p99 } of rows) {
    const what = `${durability}, the receiver ${receiver}`;
    const goal = SOCKET_GOALS[durability];
    if (rate < goal) fail(`${what}: ${rate.toFixed(0)} accepted a second over sockets, fewer than ${goal}`);
    if (p99 > P99_GOAL) fail(`${what}: the p99 of the response is ${p99.toFixed(1)} ms, more than ${P99_GOAL}`);
  }
}

async function runKills(): Promise<void> {
  const { table, problem } = await runWithKills(folder, smoke ? 2000 : Number(notifications));
  console.log(toText(table));
  if (markdown !== undefined) writeSection(markdown, 'deliveries-killed', toMarkdown(table));
  if (problem !== undefined) fail(problem);
}

function toSocketsTable(rows: readonly SocketsRow[]): ControlTable {
  return {
    title: 'Notifications of 1 KiB that are accepted over sockets',
    head: ['durability, receiver', 'accepted/s', 'delivered/s', 'CPU µs', 'p50 ms', 'p99 ms'],
    rows: rows.map(({ durability, receiver, rate, deliveredRate, cpu, p50, p99 }) => [
      `${durability}, ${receiver}`,
      ...[rate, deliveredRate, cpu].map(toWhole),
      ...[p50, p99].map((time) => time.toFixed(1)),
    ]),
  };
}

async function measureAccepted(): Promise<{ readonly table: ControlTable; readonly normal: number }> {
  const rows: string[][] = [];
  let normal = 0;
  for (const durability of ['normal', 'full'] as const) {
    for (const concurrency of [CONCURRENCY, 1]) {
      const store = new MeasuredStore({ file: join(folder, `${durability}-${concurrency}.db`), durability }, 1e9);
      const until = (time: number) => () => performance.now() >= time;
      await store.accept(concurrency, until(performance.now() + lasts / 5)); // while code is being compiled
      const { rate, cpu, p50, p99 } = await store.accept(concurrency, until(performance.now() + lasts));
      store.close();
      if (durability === 'normal' && concurrency === CONCURRENCY) normal = rate;
      rows.push([
        `${durability}, ${concurrency} at a time`,
        ...[rate, cpu].map(toWhole),
        p50.toFixed(2),
        p99.toFixed(2),
      ]);
    }
  }
  const head = ['durability', 'accepted/s', 'CPU µs', 'p50 ms', 'p99 ms'];
  return { table: { title: 'Deliveries of 1 KiB that are accepted', head, rows }, normal };
}

async function measureWaiting(): Promise<{ readonly table: ControlTable; readonly growth: number }> {
  const rows: string[][] = [];
  const held: number[] = [];
  const store = new MeasuredStore({ file: join(folder, 'waiting.db'), durability: 'normal' }, 1e9);
  for (const count of steps) {
    const missing = count - store.waiting;
    await store.accept(CONCURRENCY, (accepted) => accepted > missing - CONCURRENCY);
    const sent = await store.send(2000, SENDING);
    held.push(heldBytes());
    const { cpu } = await store.accept(CONCURRENCY, (accepted) => accepted > 2000);
    rows.push([String(count), sent.toFixed(0), cpu.toFixed(0), ((held.at(-1) ?? 0) / 1e6).toFixed(1)]);
  }
  store.close();
  const head = ['waiting', 'CPU µs to take and end one', 'CPU µs to accept one', 'memory of JavaScript, MB'];
  const [first = 0, second = 0] = held;
  const growth = (second - first) / ((steps[1] ?? 0) - (steps[0] ?? 0));
  return { table: { title: 'Deliveries that wait', head, rows }, growth };
}

function toWhole(value: number): string {
  return value.toFixed(0);
}

function fail(why: string): void {
  console.error(why);
  process.exitCode = 1;
}
