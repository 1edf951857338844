import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import type { KeyClaim, KeyClaimListener } from '../../../src/core/idempotency/key-store.ts';
import { RegistryKeyStore } from '../../../src/core/idempotency/registry-key-store.ts';
import { StateDatabase } from '../../../src/store/sqlite/state-database.ts';
import { GroupCommit } from '../../../src/store/sqlite/group-commit.ts';
import { StoredOpenWrites } from '../../../src/store/sqlite/stored-open-writes.ts';
import { StoredResponses } from '../../../src/store/sqlite/stored-responses.ts';
import { StoredWrites } from '../../../src/store/sqlite/stored-writes.ts';

const TTL = 1000;

/** The upstream responds to the write, and the client gets the response. */
function answer(claim: KeyClaim): void {
  claim.onSend('e1');
  claim.recordOutcome('answered');
  claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
}

function makeFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-state-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'state.db');
}

/** Processes that use one database, one after another. Times are on the wall clock; the clock of each process starts at 0. */
function startMachine(file = makeFile()) {
  const database = new StateDatabase({ file, durability: 'full' });
  onTestFinished(() => database.close());
  /** `set`: how far the clock was set; `slept`: how long the system was suspended. */
  const wall = { time: 1_000_000, set: 0, slept: 0 };
  const problems: unknown[] = [];
  const commits: boolean[] = [];
  const startProcess = (maxUnresolved?: number) => {
    const startedAt = wall.time;
    const clock = { now: () => wall.time - startedAt };
    let due: (() => void)[] = [];
    const commit = new GroupCommit({
      db: database.db,
      clock,
      schedule: (_delay, run) => due.push(run),
      onProblem: (error) => problems.push(error),
      onCommit: (isStored) => commits.push(isStored),
    });
    const writes = new StoredWrites({
      commit,
      clock,
      wallClock: () => wall.time + wall.set + wall.slept,
      uptime: () => wall.time + wall.slept,
    });
    const openWrites = new StoredOpenWrites(commit);
    const keys = new KeyRegistry(maxUnresolved);
    const stored = writes.load();
    keys.resume(stored, writes);
    const responses = new StoredResponses({ commit, steadyTime: () => writes.steadyTime() });
    const isKept = (id: string): boolean => {
      let found: unknown;
      responses.read(id, (bytes) => (found = bytes));
      return found !== undefined;
    };
    const store = new RegistryKeyStore(keys, clock, () => () => undefined);
    /** Runs what is due at the end of a turn. */
    const endTurn = (): void => {
      const now = due;
      due = [];
      for (const run of now) run();
    };
    const begin = (name: string, credential = 1, keyOwner?: number, keyOwnerKind = keyOwner && 10) => {
      const results: unknown[] = [];
      const listener: KeyClaimListener = {
        onClaimed: (record) => results.push(['claimed', record]),
        onClaimRefused: (why, mayHaveTakenEffect) => results.push(['refused', why, mayHaveTakenEffect]),
      };
      const identity = { upstream: 'up', name, credential, owner: 1, credentialHeader: 'authorization', body: 7 };
      const place = { fairnessKey: 'a', client: 'a' };
      const claim = store.makeClaim({
        identity: { ...identity, keyOwner, keyOwnerKind },
        place,
        concurrent: 'wait',
        ttl: TTL,
        endpoint: 'e1',
        onStoreLost: 'refuse',
      });
      claim.begin(listener, 100);
      return { claim, results };
    };
    return {
      ...{ stored, begin, endTurn, keys, openWrites, pendingWrites: () => writes.size, flush: () => commit.flush() },
      counts: () => writes.counts,
      keep: (id: string, lifetime: number) => responses.keep(id, Buffer.from('paid'), lifetime, () => undefined),
      isKept,
    };
  };
  return { database, wall, problems, commits, startProcess };
}

describe('a write in a database', () => {
  test('is stored before its key is granted', () => {
    const { startProcess } = startMachine();
    const first = startProcess();
    const { results } = first.begin('order');
    expect(results).toEqual([]);
    first.endTurn();
    expect(results).toEqual([['claimed', undefined]]);
    expect(startProcess().stored).toMatchObject([[1, { name: 'order', state: 'unresolved', endpoint: 'e1', body: 7 }]]);
  });

  describe('of a client whose keys are its own', () => {
    const ownersOf = (process: { readonly stored: readonly (readonly [number, object])[] }) =>
      process.stored.map(([id, write]) => {
        const { keyOwner, keyOwnerKind } = write as { readonly keyOwner?: number; readonly keyOwnerKind?: number };
        return [id, keyOwner, keyOwnerKind];
      });
    const countOwners = (database: StateDatabase): number =>
      Number(database.db.prepare('SELECT count(*) AS rows FROM key_owners').get()?.['rows']);
    /** As a version does that does not know the owners. */
    const insertAsBefore = (database: StateDatabase, id: number, name: string, credential: number): void =>
      database.db.exec(
        `INSERT INTO writes VALUES (${id}, x'${Buffer.from(name).toString('hex')}', 'up', ${credential}, 1, 'authorization', 7, 'answered', 0, 'e1', '1', '0')`,
      );

    test('keeps the client, also beside writes of earlier versions', () => {
      const { startProcess, database } = startMachine();
      insertAsBefore(database, 1, 'a', 1);
      const first = startProcess();
      expect(first.stored).toMatchObject([[1, { name: 'a', state: 'answered' }]]);
      first.begin('order', -5, 5);
      first.begin('order', -6, 6);
      first.endTurn();
      const next = startProcess();
      expect(ownersOf(next)).toEqual([
        [1, undefined, undefined],
        [2, 5, 10],
        [3, 6, 10],
      ]);
      expect(next.begin('order', -8, 8, 11).results).toEqual([['refused', 'key_ambiguous', true]]);
      const { results } = next.begin('order', -7, 7);
      next.endTurn();
      expect(results).toEqual([['claimed', undefined]]);
    });

    test('needs no table as long as there is none', () => {
      const { startProcess, database } = startMachine();
      const first = startProcess();
      const { claim } = first.begin('order');
      first.endTurn();
      answer(claim);
      first.endTurn();
      const tables = database.db.prepare("SELECT name FROM sqlite_schema WHERE name LIKE '%owner%'").all();
      expect([tables, startProcess().stored.length]).toEqual([[], 1]);
    });

    test('is kept if the transaction failed that made the table', () => {
      const { startProcess, database, commits } = startMachine();
      const first = startProcess();
      database.db.exec(
        "CREATE TRIGGER full BEFORE INSERT ON writes WHEN NEW.credential = -6 BEGIN SELECT RAISE(ABORT, 'full'); END",
      );
      first.begin('order', -5, 5);
      first.begin('order', -6, 6);
      first.endTurn();
      database.db.exec('DROP TRIGGER full');
      first.begin('order', -7, 7);
      first.flush();
      expect(commits).toEqual([false, true]);
      expect(ownersOf(startProcess())).toContainEqual([expect.anything(), 7, 10]);
    });

    test('is removed with its write', () => {
      const { startProcess, database, wall } = startMachine();
      const first = startProcess();
      const { claim } = first.begin('order', -5, 5);
      first.endTurn();
      claim.recordOutcome('nothing_sent');
      claim.release({ kind: 'other' });
      first.endTurn();
      wall.time += 1;
      expect([countOwners(database), startProcess().stored]).toEqual([0, []]);
    });

    test('does not become that of another write, if a version in between has removed its write and used its id', () => {
      const { startProcess, database } = startMachine();
      const first = startProcess();
      first.begin('order', -5, 5);
      first.begin('order', -6, 6);
      first.endTurn();
      database.db.exec('DELETE FROM writes');
      insertAsBefore(database, 1, 'order', 9);
      insertAsBefore(database, 2, 'another', -6);
      const next = startProcess();
      expect(ownersOf(next)).toEqual([
        [1, undefined, undefined],
        [2, undefined, undefined],
      ]);
      next.begin('third', -7, 7);
      next.endTurn();
      expect(countOwners(database)).toBe(1);
    });
  });

  test('is unresolved for the next process until it is released', () => {
    const { startProcess, wall } = startMachine();
    const first = startProcess();
    wall.time += 10;
    const { claim } = first.begin('order');
    first.endTurn();
    wall.time += 20;
    claim.onSend('e2');
    first.endTurn();
    wall.time += 70;
    const second = startProcess();
    expect(second.stored).toMatchObject([[1, { state: 'unresolved', firstSentAt: -70, endpoint: 'e2' }]]);
    const { claim: repeat, results } = second.begin('order');
    second.endTurn();
    expect([results, repeat.endpoint]).toEqual([[['claimed', { firstSentAt: -70, isAnswered: false }]], 'e2']);
  });

  test('is removed if none of its attempts may have taken effect', () => {
    const { startProcess } = startMachine();
    const first = startProcess();
    const unsent = first.begin('unsent');
    const rejected = first.begin('rejected');
    first.endTurn();
    rejected.claim.onSend('e1');
    rejected.claim.recordOutcome('rejected');
    for (const { claim } of [unsent, rejected]) claim.release({ kind: 'other' });
    first.endTurn();
    expect(startProcess().stored).toEqual([]);
  });

  test('counts as answered once its client has received the whole response', () => {
    const { startProcess } = startMachine();
    const first = startProcess();
    const { claim } = first.begin('order');
    first.endTurn();
    answer(claim);
    first.endTurn();
    expect(startProcess().stored).toMatchObject([[1, { state: 'unresolved' }]]);
    claim.close();
    first.endTurn();
    const second = startProcess();
    expect(second.stored).toMatchObject([[1, { state: 'answered', finalFor: 1 }]]);
    const repeat = second.begin('order');
    second.endTurn();
    expect(repeat.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: true, isFinal: true }]]);
    answer(repeat.claim);
    second.endTurn();
    expect(startProcess().stored).toMatchObject([[1, { state: 'answered' }]]);
  });

  test('is unresolved if its response was truncated', () => {
    const { startProcess } = startMachine();
    const first = startProcess();
    const { claim } = first.begin('order');
    first.endTurn();
    answer(claim);
    claim.onUndelivered();
    claim.close();
    first.endTurn();
    expect(startProcess().stored).toMatchObject([[1, { state: 'unresolved' }]]);
  });

  test('keeps its credentials and its order of arrival', () => {
    const { startProcess, wall } = startMachine();
    const first = startProcess();
    for (const [name, credential] of [
      ['a', 5],
      ['b', -6],
      ['a', 7],
    ] as const) {
      wall.time += 1;
      const { claim } = first.begin(name, credential);
      first.endTurn();
      answer(claim);
      claim.close();
      first.endTurn();
    }
    expect(startProcess().stored.map(([, { name, finalFor }]) => [name, finalFor])).toEqual([
      ['a', [5, 7]],
      ['b', -6],
    ]);
  });

  test('stays unresolved for a credential whose later attempt had no response', () => {
    const { startProcess } = startMachine();
    const first = startProcess();
    const done = first.begin('order', 5).claim;
    first.endTurn();
    answer(done);
    done.close();
    const lost = first.begin('order', 7).claim;
    first.endTurn();
    lost.onSend('e1');
    lost.recordOutcome('may_have_taken_effect');
    lost.release({ kind: 'other' });
    first.endTurn();
    const second = startProcess();
    const again = [5, 7].map((credential) => {
      const { claim, results } = second.begin('order', credential);
      second.endTurn();
      claim.release({ kind: 'other' });
      return results[0];
    });
    expect(again).toMatchObject([
      ['claimed', { isAnswered: true, isFinal: true }],
      ['claimed', { isAnswered: false, isFinal: false }],
    ]);
  });

  test('beyond the maximum number is removed', () => {
    const { startProcess, database } = startMachine();
    const first = startProcess();
    for (const name of ['a', 'b', 'c']) first.begin(name);
    first.endTurn();
    const second = startProcess(2);
    second.endTurn();
    expect(database.db.prepare('SELECT count(*) AS rows FROM writes').get()).toMatchObject({ rows: 2 });
  });

  describe('for which there is no room', () => {
    /** 2501 writes of an earlier process, of which the next processes keep the last. */
    function startWithSurplus() {
      const { startProcess, database } = startMachine();
      const first = startProcess();
      for (let n = 0; n < 2501; n += 1) first.begin(`name-${n}`);
      first.endTurn();
      const rows = () => Number(database.db.prepare('SELECT count(*) AS rows FROM writes').get()?.['rows']);
      return { database, rows, startNext: () => startProcess(1) };
    }

    test('is removed in steps of at most 1000, one after another until none is left', () => {
      const { startNext, rows } = startWithSurplus();
      const second = startNext();
      const counts: number[] = [];
      for (let turn = 0; turn < 8; turn += 1) {
        expect(second.counts()).toEqual({ unresolved: rows(), answered: 0 });
        expect([...second.keys.names()].map(({ name }) => name)).toEqual(['name-2500']);
        counts.push(rows());
        second.endTurn();
      }
      expect([...new Set(counts)]).toEqual([2501, 1501, 501, 1]);
      expect(startNext().stored).toMatchObject([[2501, { name: 'name-2500' }]]);
    });

    test('does not delay the commits between two steps', () => {
      const { startNext, rows } = startWithSurplus();
      const second = startNext();
      second.flush();
      expect(rows()).toBe(1501);
      for (let n = 0; n < 3; n += 1) second.flush();
      expect(rows()).toBe(1501);
    });

    test('is removed by the next process if this one is killed between two steps', () => {
      const { startNext, rows } = startWithSurplus();
      const counts: number[] = [];
      for (let kill = 0; kill < 4; kill += 1) {
        const next = startNext();
        expect(next.counts()).toEqual({ unresolved: rows(), answered: 0 });
        expect([...next.keys.names()].map(({ name }) => name)).toEqual(['name-2500']);
        next.endTurn();
        expect(next.counts()).toEqual({ unresolved: rows(), answered: 0 });
        counts.push(rows());
      }
      expect(counts).toEqual([1501, 501, 1, 1]);
    });

    test('is removed no faster after a time in which nothing could be stored', () => {
      const { startNext, rows, database } = startWithSurplus();
      database.db.exec('PRAGMA query_only = ON');
      const second = startNext();
      for (let turn = 0; turn < 8; turn += 1) second.endTurn();
      expect([rows(), second.pendingWrites()]).toEqual([2501, 1000]);
      database.db.exec('PRAGMA query_only = OFF');
      second.flush();
      expect(rows()).toBe(1501);
      for (let turn = 0; turn < 8; turn += 1) second.endTurn();
      expect([rows(), second.counts()]).toEqual([1, { unresolved: 1, answered: 0 }]);
    });
  });

  test('is read with a digest of its body beyond 2^53, as a body that is not known', () => {
    const { startProcess, database } = startMachine();
    const first = startProcess();
    for (const name of ['large', 'small']) first.begin(name);
    first.endTurn();
    database.db.exec('UPDATE writes SET body = 9007199254740993 WHERE id = 1');
    expect(startProcess().stored).toMatchObject([
      [1, { name: 'large', body: undefined }],
      [2, { name: 'small', body: 7 }],
    ]);
  });

  test('that cannot be decoded is reported with the file and the remedy', () => {
    const { startProcess, database } = startMachine();
    const first = startProcess();
    first.begin('order');
    first.endTurn();
    database.db.exec("UPDATE writes SET final_for = '['");
    expect(() => database.read(startProcess)).toThrow(
      new RegExp(`^state.file: ${database.file} is damaged: row 1 of writes cannot be read .*; move it away`),
    );
  });

  test('is not newer than the current time after the wall clock was set back', () => {
    const { startProcess, wall } = startMachine();
    const first = startProcess();
    first.begin('order');
    first.endTurn();
    wall.time -= 500;
    expect(startProcess().stored).toMatchObject([[1, { firstSentAt: 0 }]]);
  });
});

describe('the age of a stored write', () => {
  const ages = ({ stored }: { stored: readonly (readonly [number, { firstSentAt: number }])[] }) =>
    stored.map(([, { firstSentAt }]) => -firstSentAt);

  test('stays the same if the wall clock is set back or forward while the process runs', () => {
    const { startProcess, wall } = startMachine();
    const first = startProcess();
    first.begin('early');
    first.endTurn();
    wall.time += 1000;
    wall.set = -30_000;
    first.flush(); // nothing has changed but the clock
    wall.time += 1000;
    first.begin('late');
    first.endTurn();
    wall.time += 1000;
    const second = startProcess();
    expect(ages(second)).toEqual([3000, 1000]);
    second.begin('last');
    second.endTurn();
    wall.set = 60_000;
    wall.time += 1000;
    second.flush();
    expect(ages(startProcess())).toEqual([4000, 2000, 1000]);
  });

  test.each([-30_000, 30_000])(
    'and that of a kept response stays the same if the wall clock is set by %i ms',
    (step) => {
      const { startProcess, wall } = startMachine();
      const first = startProcess();
      first.keep('order', 10_000);
      first.endTurn();
      wall.set = step;
      wall.time += 9000;
      first.flush();
      const second = startProcess();
      expect([first.isKept('order'), second.isKept('order')]).toEqual([true, true]);
      wall.time += 1001;
      expect([first.isKept('order'), second.isKept('order')]).toEqual([false, false]);
    },
  );

  test('stays the same if the clock step and a change of the write are stored together, and after a failure', () => {
    const { startProcess, database, wall } = startMachine();
    const first = startProcess();
    const { claim } = first.begin('order');
    first.endTurn();
    wall.time += 1000;
    wall.set = -30_000;
    claim.onSend('e2');
    database.db.exec('PRAGMA query_only = ON');
    first.endTurn();
    database.db.exec('PRAGMA query_only = OFF');
    wall.time += 1000;
    first.endTurn();
    const second = startProcess();
    expect(ages(second)).toEqual([1000]); // since it was sent
    expect(second.stored).toMatchObject([[1, { endpoint: 'e2' }]]);
  });

  test('includes the time while the system was suspended', () => {
    const { startProcess, wall } = startMachine();
    const first = startProcess();
    first.begin('order');
    first.endTurn();
    wall.slept = 5000;
    wall.time += 1000;
    first.flush();
    wall.set = -300;
    first.flush();
    expect(ages(startProcess())).toEqual([6000]);
  });
});

test('open writes without a key are reported to the next process once', () => {
  const { startProcess } = startMachine();
  const first = startProcess();
  const write = (requestId: string, sentAt: number) => {
    const open = { requestId, route: 'POST /pay', upstream: 'api', method: 'POST', sentAt };
    first.openWrites.onSent(open);
    return open;
  };
  const later = write('later', 20);
  const early = write('early', 10);
  write('short', 5);
  first.openWrites.onEnd('short');
  first.endTurn();
  write('long', 15);
  first.endTurn();
  first.openWrites.onEnd('long');
  first.openWrites.onEnd('never sent');
  first.endTurn();
  write('not stored yet', 30);
  expect(startProcess().openWrites.load()).toEqual([early, later]);
  const second = startProcess();
  expect(second.openWrites.load()).toEqual([early, later]); // the first one has not reported them
  for (const { requestId } of second.openWrites.load()) second.openWrites.onEnd(requestId);
  second.endTurn();
  expect(startProcess().openWrites.load()).toEqual([]);
});

test.each([
  ['is stored if it is sent again in the turn in which its first attempt ended', 1],
  ['is deleted if it ends in that turn as well', 2],
] as const)('an open write without a key %s', (_, ends) => {
  const { startProcess } = startMachine();
  const { openWrites, endTurn } = startProcess();
  const open = { requestId: 'r', route: 'POST /pay', upstream: 'api', method: 'POST', sentAt: 10 };
  openWrites.onSent(open);
  endTurn();
  openWrites.onEnd('r');
  const again = { ...open, sentAt: 20 };
  openWrites.onSent(again);
  if (ends > 1) openWrites.onEnd('r');
  endTurn();
  expect(startProcess().openWrites.load()).toEqual(ends > 1 ? [] : [again]);
});

describe('a database that cannot be written', () => {
  test('refuses writes, stores the changes later, and reports each state once', () => {
    const { database, startProcess, problems } = startMachine();
    const first = startProcess();
    const kept = first.begin('kept');
    first.endTurn();
    database.db.exec('PRAGMA query_only = ON');
    const lost = first.begin('lost');
    const again = first.begin('lost');
    first.endTurn();
    expect(lost.results).toEqual([['refused', 'key_store_lost', false]]);
    kept.claim.onSend('e2');
    first.endTurn();
    first.endTurn();
    expect(again.results).toEqual([['refused', 'key_store_lost', false]]);
    expect(problems).toHaveLength(1);
    expect(first.pendingWrites()).toBe(1); // refused writes do not accumulate
    database.db.exec('PRAGMA query_only = OFF');
    first.endTurn();
    expect(problems).toEqual([expect.any(Error), undefined]);
    expect(startProcess().stored).toMatchObject([[1, { name: 'kept', endpoint: 'e2' }]]);
    const later = first.begin('lost');
    first.endTurn();
    expect(later.results).toEqual([['claimed', undefined]]);
  });
});

describe('a database on a full disk', () => {
  test('can be read', () => {
    const { database, startProcess } = startMachine();
    const first = startProcess();
    first.begin('order');
    first.endTurn();
    database.db.exec('PRAGMA query_only = ON');
    const second = startProcess();
    expect([second.stored.length, second.openWrites.load()]).toEqual([1, []]);
  });

  test('stores nothing until enough space is reserved', () => {
    const { db } = startMachine().database;
    const room = { isLeft: false };
    const commit = new GroupCommit({
      db,
      clock: { now: () => 0 },
      prepare: () => {
        if (!room.isLeft) throw new Error('database or disk is full');
      },
      schedule: () => undefined,
      onProblem: (error) => results.push(error),
    });
    const results: unknown[] = [];
    const applied: string[] = [];
    commit.add({ isEmpty: false, apply: () => applied.push('applied'), onStored: () => applied.push('stored') });
    commit.whenStored((isStored) => results.push(isStored));
    commit.flush();
    expect([results, applied]).toEqual([[new Error('database or disk is full'), false], []]);
    room.isLeft = true;
    commit.whenStored((isStored) => results.push(isStored));
    commit.flush();
    expect([results.slice(2), applied]).toEqual([
      [undefined, true],
      ['applied', 'stored'],
    ]);
  });
});

describe('the rows of writes', () => {
  test('are counted by state, without those that are forgotten', () => {
    const { startProcess, commits } = startMachine();
    const first = startProcess();
    const claims = ['paid', 'lost', 'paid too'].map((name) => first.begin(name).claim);
    expect(first.counts()).toEqual({ unresolved: 0, answered: 0 });
    first.endTurn();
    expect(first.counts()).toEqual({ unresolved: 3, answered: 0 });
    const [paid, lost, other] = claims;
    for (const claim of [paid, other]) {
      if (claim === undefined) throw new Error('there are three');
      answer(claim);
      claim.close();
    }
    lost?.onSend('e1');
    lost?.release({ kind: 'unknown' });
    first.endTurn();
    expect(first.counts()).toEqual({ unresolved: 1, answered: 2 });
    const second = startProcess();
    expect(second.counts()).toEqual({ unresolved: 1, answered: 2 });
    for (const write of second.keys.names()) {
      if (write.name !== 'paid too') second.keys.forget(write);
    }
    second.endTurn();
    expect(second.counts()).toEqual({ unresolved: 0, answered: 1 });
    expect(second.begin('paid').results).toEqual([]);
    second.endTurn();
    expect(second.counts()).toEqual({ unresolved: 1, answered: 1 });
    expect(startProcess().stored).toMatchObject([
      [3, { name: 'paid too' }],
      [4, { name: 'paid' }],
    ]);
    expect(commits.every(Boolean)).toBe(true);
  });

  test('of one turn of the event loop share a commit', () => {
    const { startProcess, commits } = startMachine();
    const first = startProcess();
    const begun = ['one', 'two', 'three'].map((name) => first.begin(name));
    first.endTurn();
    expect(begun.map(({ results }) => results.length)).toEqual([1, 1, 1]);
    expect(commits).toEqual([true]);
  });

  test('are stored once before a write is sent, and once its client has the response', () => {
    const { startProcess, commits, wall } = startMachine();
    const first = startProcess();
    const { claim } = first.begin('order');
    first.endTurn();
    wall.time += 30; // in the queue
    claim.onSend('e1');
    first.endTurn();
    expect(commits).toEqual([true]);
    wall.time += 200;
    claim.recordOutcome('answered');
    claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
    first.endTurn();
    expect([commits, startProcess().stored]).toEqual([[true], [[1, expect.objectContaining({ firstSentAt: -230 })]]]);
    claim.close();
    first.endTurn();
    expect(commits).toEqual([true, true]);
    expect(startProcess().stored).toMatchObject([[1, { state: 'answered', firstSentAt: -200 }]]);
  });

  test('have the exact time of the first send with the next commit', () => {
    const { startProcess, wall } = startMachine();
    const first = startProcess();
    const { claim } = first.begin('order');
    first.endTurn();
    wall.time += 1000;
    claim.onSend('e1');
    first.flush(); // as the process does every two seconds
    expect(startProcess().stored).toMatchObject([[1, { state: 'unresolved', firstSentAt: 0 }]]);
  });

  test('are stored again at once if a write was sent more than a second after its grant, or elsewhere', () => {
    const { startProcess, commits, wall } = startMachine();
    const first = startProcess();
    const [late, elsewhere] = ['late', 'elsewhere'].map((name) => first.begin(name).claim);
    first.endTurn();
    elsewhere?.onSend('e2');
    first.endTurn();
    expect(startProcess().stored).toMatchObject([
      [1, { endpoint: 'e1' }],
      [2, { endpoint: 'e2' }],
    ]);
    wall.time += 1001;
    late?.onSend('e1');
    first.endTurn();
    expect([commits.length, startProcess().stored]).toMatchObject([
      3,
      [
        [2, {}],
        [1, { name: 'late', firstSentAt: 0 }],
      ],
    ]);
  });

  test('are stored again at once if a request with another credential and body joins', () => {
    const { startProcess, commits } = startMachine();
    const first = startProcess();
    first.begin('order', 5);
    first.endTurn();
    first.begin('order', 6);
    first.keys.journal?.onChange([...first.keys.writesOf('order')][0]!); // there is one
    first.endTurn();
    expect([commits.length, startProcess().stored]).toMatchObject([2, [[1, { body: undefined }]]]);
  });

  test.each([
    ['full', 2],
    ['normal', 1],
  ] as const)('are synced to the disk as often as %s durability requires', (durability, synchronous) => {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const database = new StateDatabase({ file: join(folder, 'state.db'), durability });
    onTestFinished(() => database.close());
    expect(database.db.prepare('PRAGMA synchronous').get()).toEqual({ synchronous });
  });

  test('stay as they are while nothing can be stored, which is counted', () => {
    const { database, startProcess, commits } = startMachine();
    const first = startProcess();
    first.begin('order');
    database.db.exec('PRAGMA query_only = ON');
    first.endTurn();
    expect([first.counts(), commits]).toEqual([{ unresolved: 0, answered: 0 }, [false]]);
    database.db.exec('PRAGMA query_only = OFF');
    first.endTurn();
    expect(first.counts()).toEqual({ unresolved: 0, answered: 0 });
  });
});

describe('the database file', () => {
  const open = (file: string): StateDatabase => new StateDatabase({ file, durability: 'normal' });

  test('is private, and contains its secret and the learned state', () => {
    const file = makeFile();
    const first = open(file);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect([first.readLearned(), first.secret.length]).toEqual([undefined, 32]);
    first.writeLearned('one');
    first.writeLearned('two');
    first.close();
    const second = open(file);
    expect([second.readLearned(), second.secret]).toEqual(['two', first.secret]);
    second.close();
  });

  test('becomes private if others could read it', () => {
    const file = makeFile();
    const first = open(file);
    first.writeLearned('one');
    const copy = makeFile();
    for (const suffix of ['', '-wal']) {
      writeFileSync(`${copy}${suffix}`, readFileSync(`${file}${suffix}`));
      chmodSync(`${copy}${suffix}`, 0o644);
    }
    first.close();
    const database = open(copy);
    expect(database.readLearned()).toBe('one');
    const modes = [copy, `${copy}-wal`].map((each) => (statSync(each).mode & 0o777).toString(8));
    database.close();
    expect(modes).toEqual(['600', '600']);
  });

  test('is named with the remedy if its rows are damaged', () => {
    const { startProcess, database } = startMachine();
    const first = startProcess();
    for (let i = 0; i < 300; i += 1) first.begin(`order ${i}`);
    first.endTurn();
    database.close();
    const { file } = database;
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0xab, bytes.length - 4096));
    const damaged = open(file);
    const message = `state.file: ${file} is not a database, or is damaged; move it away`;
    expect(() => damaged.read(() => damaged.db.prepare('SELECT * FROM writes').all())).toThrow(message);
    damaged.close();
  });

  test('imports the learned state of a state file of its name, which is kept beside it', () => {
    const file = makeFile();
    writeFileSync(file, '{"version": 1}');
    const database = open(file);
    expect(database.readLearned()).toBe('{"version": 1}');
    expect(readFileSync(`${file}.json`, 'utf8')).toBe('{"version": 1}');
    database.close();
  });

  test.each([
    ['text', 'no database', 'is not a database, or is damaged; move it away'],
    ['a truncated database', undefined, 'is not a database, or is damaged; move it away'],
  ])('is rejected with a remedy: %s', (_, text, message) => {
    const file = makeFile();
    if (text !== undefined) writeFileSync(file, text.repeat(500));
    else {
      open(file).close();
      writeFileSync(file, readFileSync(file).subarray(0, 5000));
    }
    expect(() => open(file)).toThrow(message);
  });

  test('is rejected in a folder that does not exist, and with another layout', () => {
    const file = makeFile();
    expect(() => open(`${file}/no/state.db`)).toThrow(
      `state.file: ${file}/no/state.db cannot be opened: its folder does not exist: create it first`,
    );
    const database = open(file);
    database.db.exec("UPDATE meta SET value = 99 WHERE key = 'layout'");
    database.close();
    expect(() => open(file)).toThrow('was written by another version of Tidegate (layout 99)');
  });
});
