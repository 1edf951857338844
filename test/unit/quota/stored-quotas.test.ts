import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CalendarQuota } from '../../../src/core/quota/calendar/calendar-quota.ts';
import { StateDatabase } from '../../../src/store/sqlite/state-database.ts';
import { StoredQuotas } from '../../../src/store/sqlite/stored-quotas.ts';
import { HOUR, quotaSettings } from '../../support/core/quota-builders.ts';

function makeFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'state.db');
}

function open(file: string, problems: unknown[] = []) {
  const database = new StateDatabase({ file, durability: 'full' });
  onTestFinished(() => database.close());
  return { database, quotas: new StoredQuotas(database.db, (error) => void problems.push(error)) };
}

const at = { now: HOUR, at: HOUR };
const settings = quotaSettings({ limit: 10_000 });

test('continues after an end of the process, exactly after a clean one and with at most 0.1 % more after a kill', () => {
  const file = makeFile();
  const first = open(file);
  const quota = new CalendarQuota('api', settings, first.quotas);
  for (let i = 0; i < 25; i += 1) quota.onSent(at);
  first.quotas.close();
  first.database.close();

  const second = open(file);
  const next = new CalendarQuota('api', settings, second.quotas);
  expect(next.view(at).remaining).toBe(10_000 - 25);
  next.onSent(at);
  second.database.close(); // without the exact count, as after a kill

  const third = new CalendarQuota('api', settings, open(file).quotas);
  expect(third.view(at).remaining).toBe(10_000 - 35);
});

test('keeps the counts of each upstream and name apart', () => {
  const { quotas } = open(makeFile());
  quotas.store('a', 'day', { period: 'day UTC', counts: [[0, 1]] });
  quotas.store('b', 'day', { period: 'day UTC', counts: [[0, 2]] });
  quotas.store('a', 'month', { period: 'month UTC', counts: [[0, 3]] });
  expect([quotas.load('a', 'day'), quotas.load('b', 'day'), quotas.load('c', 'day')]).toEqual([
    { period: 'day UTC', counts: [[0, 1]] },
    { period: 'day UTC', counts: [[0, 2]] },
    undefined,
  ]);
});

test('reports counts that cannot be stored once, and that they can be stored again', () => {
  const problems: unknown[] = [];
  const { database, quotas } = open(makeFile(), problems);
  const store = (): void => quotas.store('a', 'day', { period: 'day UTC', counts: [[0, 1]] });
  database.db.exec('PRAGMA query_only = ON');
  store();
  store();
  database.db.exec('PRAGMA query_only = OFF');
  store();
  expect(problems).toEqual([expect.any(Error), undefined]);
  expect(quotas.load('a', 'day')).toBeDefined();
});

test('stores all counts at the end, in one commit', () => {
  const file = makeFile();
  const { database, quotas } = open(file);
  const [one, two] = ['a', 'b'].map((name) => new CalendarQuota('api', { ...settings, name }, quotas));
  one?.onSent(at);
  two?.onSent(at);
  const sizeOf = (): number => statSync(`${file}-wal`).size;
  const before = sizeOf();
  quotas.store('api', 'one', { period: 'day UTC', counts: [[0, 1]] });
  const ofOneCommit = sizeOf() - before;
  quotas.close();
  expect(sizeOf() - before).toBe(2 * ofOneCommit);
  expect(database.db.isTransaction).toBe(false);
  expect([quotas.load('api', 'a'), quotas.load('api', 'b')]).toMatchObject([
    { counts: [[0, 1]] },
    { counts: [[0, 1]] },
  ]);
});

test('counts on when a commit of several counts fails, reports that once, and can store them later', () => {
  const problems: unknown[] = [];
  const { database, quotas } = open(makeFile(), problems);
  const store = (): void => quotas.store('a', 'day', { period: 'day UTC', counts: [[0, 1]] });
  database.db.exec('PRAGMA query_only = ON');
  quotas.storeTogether(() => {
    store();
    store();
  });
  expect([problems, database.db.isTransaction]).toEqual([[expect.any(Error)], false]);
  database.db.exec('PRAGMA query_only = OFF');
  quotas.storeTogether(store);
  expect(problems).toEqual([expect.any(Error), undefined]);
  expect(quotas.load('a', 'day')).toBeDefined();
});

test('ends the transaction when what stores several counts fails, and keeps those that were stored before', () => {
  const { database, quotas } = open(makeFile());
  const storeOne = (): void => {
    quotas.store('a', 'day', { period: 'day UTC', counts: [[0, 1]] });
    throw new Error('the second fails');
  };
  expect(() => quotas.storeTogether(storeOne)).toThrow('the second fails');
  expect(database.db.isTransaction).toBe(false);
  expect(quotas.load('a', 'day')).toBeDefined();
});

test.each(['', '[[0, 1]', 'null', '{}', '[null, [0], ["a", "b"]]'])(
  'loads no counts from a damaged row: %j',
  (counts) => {
    const { database, quotas } = open(makeFile());
    database.db.prepare('INSERT INTO quotas VALUES (?, ?, ?, ?)').run('a', 'day', 'day UTC', counts);
    expect(quotas.load('a', 'day')).toEqual({ period: 'day UTC', counts: [] });
  },
);

test('removes the counts of clients that were not seen for longer than any period, and no others', () => {
  const { quotas } = open(makeFile());
  const now = 100 * 24 * HOUR;
  const old = { period: 'day UTC', counts: [[now - 33 * 24 * HOUR, 1]] as const };
  const recent = { period: 'month UTC', counts: [[now - 31 * 24 * HOUR, 1]] as const };
  quotas.store('a', 'day', old);
  quotas.store('a', 'class:partners/client/day 0123', old);
  quotas.store('a', 'class:partners/client/month 0123', recent);
  quotas.store('a', 'class:partners/client/day 4567', { period: 'day UTC', counts: [] });
  quotas.removeEnded(now);
  expect(quotas.load('a', 'day')).toEqual(old);
  expect(quotas.load('a', 'class:partners/client/day 0123')).toBeUndefined();
  expect(quotas.load('a', 'class:partners/client/day 4567')).toBeUndefined();
  expect(quotas.load('a', 'class:partners/client/month 0123')).toEqual(recent);
});

test('removes them in steps of 1000 rows, of all upstreams, and then begins again', () => {
  const { database, quotas } = open(makeFile());
  const now = 100 * 24 * HOUR;
  const old = { period: 'day UTC', counts: [[HOUR, 1]] as const };
  const store = (): void =>
    quotas.storeTogether(() => {
      for (const upstream of ['a', 'b']) {
        for (let i = 0; i < 1200; i += 1) quotas.store(upstream, `class:partners/client/day ${i}`, old);
      }
    });
  const count = (): number => Number(database.db.prepare('SELECT count(*) AS n FROM quotas').get()?.['n']);
  store();
  const left = [1, 2, 3].map(() => {
    quotas.removeEnded(now);
    return count();
  });
  expect(left).toEqual([1400, 400, 0]);
  store();
  quotas.removeEnded(now);
  expect(count()).toBe(1400);
});

test('a client whose stored count was removed counts on', () => {
  const { quotas } = open(makeFile());
  const quota = new CalendarQuota('api', { ...settings, key: 'a', limit: 2 }, quotas);
  const later = { now: 100 * 24 * HOUR, at: 100 * 24 * HOUR };
  quota.onSent(at);
  quotas.removeEnded(later.at);
  for (let i = 0; i < 2; i += 1) quota.onSent(later);
  expect(quotas.load('api', 'day a')?.counts).toEqual([[later.at, 2]]);
});

test('reports rows that cannot be removed, and removes them later', () => {
  const problems: unknown[] = [];
  const { database, quotas } = open(makeFile(), problems);
  quotas.store('a', 'class:partners/client/day 0', { period: 'day UTC', counts: [[0, 1]] });
  database.db.exec('PRAGMA query_only = ON');
  quotas.removeEnded(100 * 24 * HOUR);
  expect(problems).toEqual([expect.any(Error)]);
  database.db.exec('PRAGMA query_only = OFF');
  quotas.removeEnded(100 * 24 * HOUR);
  expect(quotas.load('a', 'class:partners/client/day 0')).toBeUndefined();
});
