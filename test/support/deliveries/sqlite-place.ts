import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { SqliteDeliveryStore } from '../../../src/store/deliveries/sqlite-delivery-store.ts';
import { GroupCommit } from '../../../src/store/sqlite/group-commit.ts';
import { StateDatabase } from '../../../src/store/sqlite/state-database.ts';
import type { DeliveryPlace, StoreProcess, StoreSettings } from './delivery-place.ts';

interface SqliteProcess extends StoreProcess {
  readonly database: StateDatabase;
  readonly commit: GroupCommit;
  /** Ends the turn of the event loop, without the steps that come later. */
  readonly endTurn: () => void;
  /** Runs the steps that wait for a time. @returns their delays */
  readonly runLater: () => readonly number[];
  readonly commits: boolean[];
  readonly problems: unknown[];
  /** The deliveries that have expired, each step as one list. */
  readonly expired: (readonly string[])[];
}

interface SqlitePlace extends DeliveryPlace {
  /** How far the wall clock was set. */
  readonly clockShift: { total: number };
  /** The longest time that a delivery waits. */
  readonly maxAge: { value: number };
  readonly start: (settings?: StoreSettings) => SqliteProcess;
}

/** A database file of a test. */
export function sqlitePlace(): SqlitePlace {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-deliveries-'));
  const file = join(folder, 'state.db');
  const clock = { time: 1000 };
  const clockShift = { total: 0 };
  const maxAge = { value: Infinity };
  const keptFor = { delivered: 5000, dead: 9000, canceled: 5000, unknown: 9000 };
  let last: StateDatabase | undefined;
  onTestFinished(() => {
    last?.close();
    rmSync(folder, { recursive: true });
  });
  const start = ({ secret = 'a secret', ...bounds }: StoreSettings = {}): SqliteProcess => {
    last?.close();
    const database = (last = new StateDatabase({ file, durability: 'normal' }));
    const commits: boolean[] = [];
    const problems: unknown[] = [];
    const unreadable: string[] = [];
    const expired: (readonly string[])[] = [];
    const callbacks: (readonly [route: string, isStored: boolean])[] = [];
    let due: (() => void)[] = [];
    let later: (readonly [delay: number, run: () => void])[] = [];
    const reported = new Set<string>();
    const commit = new GroupCommit({
      ...{ db: database.db, clock: { now: () => clock.time }, onProblem: (error) => problems.push(error) },
      schedule: (delay, run) => void (delay === 0 ? due.push(run) : later.push([delay, run])),
      onCommit: (isStored) => commits.push(isStored),
    });
    const store = new SqliteDeliveryStore({
      ...{ commit, secret, ...bounds, wallClock: () => clock.time, clockShift: () => clockShift.total },
      keepFor: (_route, end) => keptFor[end],
      onDue: (route) => reported.add(route),
      maxAge: () => maxAge.value,
      onExpired: (deliveries) => expired.push(deliveries.map(({ id }) => id)),
      onCallback: (route, isStored) => callbacks.push([route, isStored]),
      onUnreadable: ({ id }) => unreadable.push(id),
      onProblem: (error) => problems.push(error),
    });
    const endTurn = (): void => {
      const now = due;
      due = [];
      for (const run of now) run();
    };
    const runLater = (): readonly number[] => {
      const now = later;
      later = [];
      for (const [, run] of now) run();
      return now.map(([delay]) => delay);
    };
    return {
      ...{ store, database, commit, commits, problems, unreadable, expired, callbacks, endTurn, runLater },
      settle: () => {
        commit.request();
        do endTurn();
        while (runLater().length > 0 || due.length > 0);
        return Promise.resolve();
      },
      reportedDue: () => {
        const routes = [...reported];
        reported.clear();
        return routes;
      },
    };
  };
  return { clock, clockShift, keptFor, maxAge, start };
}
