// The cost of stored deliveries: how many messages of 1 KiB the store alone accepts a second, in this process, for each durability; then
// what memory and time they take while many wait. docs/performance.md has the results.
//
//   npm run bench:deliveries -- [--seconds N] [--waiting N] [--smoke] [--markdown FILE]

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { heldBytes } from '../../support/heap.ts';
import { writeSection } from '../control/section.ts';
import { type ControlTable, toMarkdown, toText } from '../control/table.ts';
import { MeasuredStore } from './measured-store.ts';

/** Deliveries a second that are accepted with the durability `normal`. */
const GOAL = 5000;
/** Bytes of memory for each delivery that waits, at most. */
const MEMORY_GOAL = 5;
/** Additions at a time: as many as connections that are never idle. */
const CONCURRENCY = 256;
const SENDING = 256;

const { seconds, waiting, smoke, markdown } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    waiting: { type: 'string', default: '1000000' },
    smoke: { type: 'boolean', default: false },
    markdown: { type: 'string' },
  },
}).values;
const lasts = smoke ? 200 : 1000 * Number(seconds);
const steps = smoke ? [1000, 5000] : [10_000, Number(waiting)];
const folder = mkdtempSync(join(tmpdir(), 'tidegate-bench-deliveries-'));

try {
  const accepted = await measureAccepted();
  const waited = await measureWaiting();
  for (const table of [accepted.table, waited.table]) console.log(toText(table));
  if (markdown !== undefined) {
    writeSection(markdown, 'deliveries', [accepted.table, waited.table].map(toMarkdown).join('\n'));
  }
  if (!smoke && accepted.normal < GOAL) fail(`${accepted.normal.toFixed(0)} accepted a second, fewer than ${GOAL}`);
  if (!smoke && waited.growth > MEMORY_GOAL) fail(`${waited.growth.toFixed(1)} bytes of memory for each that waits`);
} finally {
  rmSync(folder, { recursive: true, force: true });
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
