/** The report of the writes without a key that the end of a process interrupted. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { reportInSteps } from '../../../src/process/interrupted-writes.ts';
import { GroupCommit } from '../../../src/store/sqlite/group-commit.ts';
import { StateDatabase } from '../../../src/store/sqlite/state-database.ts';
import { StoredOpenWrites } from '../../../src/store/sqlite/stored-open-writes.ts';

const COUNT = 250;
const STEP = 100;

/** A database, and a log of which a process that is killed loses what is not written. */
function startMachine() {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-interrupted-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const database = new StateDatabase({ file: join(folder, 'state.db'), durability: 'normal' });
  onTestFinished(() => database.close());
  const written: string[] = [];
  const startProcess = () => {
    const buffered: string[] = [];
    let due: (() => void)[] = [];
    let flushes: (() => void)[] = [];
    const done: string[] = [];
    const commit = new GroupCommit({
      db: database.db,
      clock: { now: () => 0 },
      schedule: (_delay, run) => due.push(run),
      onProblem: () => undefined,
    });
    const openWrites = new StoredOpenWrites(commit);
    const endTurn = (): void => {
      const now = due;
      due = [];
      for (const run of now) run();
    };
    const writeLines = (): void => {
      written.push(...buffered.splice(0));
      const now = flushes;
      flushes = [];
      for (const run of now) run();
    };
    const report = (): void =>
      reportInSteps(openWrites.load(), {
        report: ({ requestId }) => buffered.push(requestId),
        flush: (run) => flushes.push(run),
        openWrites,
        commit,
        onDone: () => done.push('done'),
      });
    /** Lets it run for longer than the reports take. */
    const runOn = (): void => {
      for (let turn = 0; turn < 20; turn += 1) {
        writeLines();
        endTurn();
      }
    };
    return { openWrites, endTurn, writeLines, report, runOn, done };
  };
  return { database, written, startProcess };
}

/** The ids of writes that a process has sent and not ended. */
function sendWrites({ startProcess }: ReturnType<typeof startMachine>): string[] {
  const first = startProcess();
  const ids = Array.from({ length: COUNT }, (_, n) => `request-${n}`);
  for (const [sentAt, requestId] of ids.entries()) {
    first.openWrites.onSent({ requestId, route: '/pay', upstream: 'api', method: 'POST', sentAt });
  }
  first.endTurn();
  return ids;
}

/** What ends within a step, in order. */
const ACTIONS = ['report', 'lines written', 'deleted', 'pause'] as const;
const ENDS = [0, 1, 2].flatMap((step) => ACTIONS.map((action) => [step, action] as const));

describe('interrupted writes', () => {
  test.each(ENDS)('are all reported if the process is killed in step %d after: %s', (step, action) => {
    const machine = startMachine();
    const ids = sendWrites(machine);
    const { startProcess, written } = machine;
    const killed = startProcess();
    killed.report();
    for (let n = 0; n <= step; n += 1) {
      for (const each of ACTIONS) {
        if (each === 'lines written') killed.writeLines();
        if (each === 'deleted' || each === 'pause') killed.endTurn();
        if (n === step && each === action) break;
      }
    }
    const next = startProcess();
    const left = next.openWrites.load().length;
    next.report();
    next.runOn();
    expect([...new Set(written)]).toEqual(ids);
    const size = Math.min(STEP, COUNT - step * STEP);
    // Only those of which the line is written and the row is not deleted yet are reported again.
    expect(written.length).toBe(COUNT + (action === 'lines written' ? size : 0));
    expect(left).toBe(COUNT - step * STEP - (action === 'deleted' || action === 'pause' ? size : 0));
    expect([startProcess().openWrites.load(), next.done]).toEqual([[], ['done']]);
  });

  test('stay stored while their lines are not written', () => {
    const machine = startMachine();
    sendWrites(machine);
    const next = machine.startProcess();
    next.report();
    for (let turn = 0; turn < 5; turn += 1) next.endTurn();
    expect([machine.startProcess().openWrites.load().length, machine.written]).toEqual([COUNT, []]);
  });

  test('wait while they cannot be deleted, and then go on', () => {
    const machine = startMachine();
    const ids = sendWrites(machine);
    const { startProcess, written, database } = machine;
    const next = startProcess();
    database.db.exec('PRAGMA query_only = ON');
    next.report();
    next.runOn();
    expect([written.length, next.done]).toEqual([STEP, []]);
    database.db.exec('PRAGMA query_only = OFF');
    next.runOn();
    expect([written, next.done, startProcess().openWrites.load()]).toEqual([ids, ['done'], []]);
  });

  test('are apart from the open writes of this process', () => {
    const machine = startMachine();
    const ids = sendWrites(machine);
    const { startProcess, written } = machine;
    const next = startProcess();
    next.report();
    const own = { requestId: 'own', route: '/pay', upstream: 'api', method: 'POST', sentAt: 0 };
    next.openWrites.onSent(own);
    next.runOn();
    expect([written, startProcess().openWrites.load()]).toEqual([ids, [own]]);
  });
});
