/** The stores of responses to writes: what they keep, for how long, and what they evict. */
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import {
  MAX_EXPIRED,
  MAX_PER_WRITE,
  type ResponseBounds,
  type ResponseStore,
} from '../../../src/core/idempotency/response-store.ts';
import {
  decodeKeptResponse,
  encodeKeptResponse,
  selectKeptHeaders,
} from '../../../src/http/idempotency/kept-response.ts';
import { KeptResponses } from '../../../src/http/idempotency/kept-responses.ts';
import { keptHead } from '../../../src/http/response/kept-head.ts';
import type { ResponseHead } from '../../../src/http/response/response-head.ts';
import { ResponseClient } from '../../../src/sharing/keys/response-client.ts';
import { ResponseServer } from '../../../src/sharing/keys/response-server.ts';
import { MemoryResponseStore } from '../../../src/store/responses/memory-response-store.ts';
import { sealResponses } from '../../../src/store/responses/sealed-response-store.ts';
import { GroupCommit } from '../../../src/store/sqlite/group-commit.ts';
import { StoredResponses } from '../../../src/store/sqlite/stored-responses.ts';

const HOUR = 3_600_000;

function read(store: ResponseStore, id: string): string | undefined {
  let found: Buffer | undefined;
  store.read(id, (bytes) => (found = bytes));
  return found?.toString();
}

function keep(store: ResponseStore, id: string, text: string, lifetime = HOUR): void {
  store.keep(id, Buffer.from(text), lifetime, () => undefined);
}

const RESPONSES =
  'CREATE TABLE responses (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, bytes BLOB, until REAL) STRICT';

/** Runs at once what has no delay. */
const atOnce = (delay: number, run: () => void): void => void (delay === 0 && run());

interface Place {
  readonly store: ResponseStore;
  readonly wait: (ms: number) => void;
}

function inMemory(max: Partial<ResponseBounds> = {}): Place {
  let now = 0;
  return { store: new MemoryResponseStore({ now: () => now }, max), wait: (ms) => void (now += ms) };
}

function inDatabase(max: Partial<ResponseBounds> = {}): Place {
  let now = 0;
  const db = new DatabaseSync(':memory:');
  db.exec(RESPONSES);
  const commit = new GroupCommit({
    db,
    clock: { now: () => now },
    schedule: atOnce,
    onProblem: (error) => {
      throw error;
    },
  });
  return { store: new StoredResponses({ commit, steadyTime: () => now, ...max }), wait: (ms) => void (now += ms) };
}

/** Of a worker whose primary keeps them in memory. */
function inPrimary(max: Partial<ResponseBounds> = {}): Place {
  const { store, wait } = inMemory(max);
  const server = new ResponseServer(store, (_, reply) => client.onReply(reply));
  const client = new ResponseClient({
    send: (operation) => server.onOperation(1, operation),
    after: () => () => undefined,
  });
  return { store: client, wait };
}

describe.each([
  ['memory', inMemory],
  ['a database', inDatabase],
  ['the primary', inPrimary],
] as const)('responses in %s', (_, open) => {
  test('are found until their time is over, and are replaced by later ones', () => {
    const { store, wait } = open();
    expect(read(store, 'a')).toBeUndefined();
    keep(store, 'a', 'one', 1000);
    wait(999);
    expect(read(store, 'a')).toBe('one');
    keep(store, 'a', 'two', 1000);
    wait(999);
    expect(read(store, 'a')).toBe('two');
    wait(1);
    expect(read(store, 'a')).toBeUndefined();
  });

  test('are removed without any others', () => {
    const { store } = open();
    keep(store, 'a', 'one');
    keep(store, 'b', 'two');
    store.remove('a');
    store.remove('c');
    expect([read(store, 'a'), read(store, 'b')]).toEqual([undefined, 'two']);
  });

  test('of a write are removed for all clients', () => {
    const { store } = open();
    for (const id of ['a.one', 'a.two', 'aa.one', 'b.one']) keep(store, id, id);
    store.remove('a');
    expect(['a.one', 'a.two', 'aa.one', 'b.one'].map((id) => read(store, id))).toEqual([
      ...[undefined, undefined, 'aa.one', 'b.one'],
    ]);
    keep(store, 'a.two', 'later');
    expect([read(store, 'a.one'), read(store, 'a.two')]).toEqual([undefined, 'later']);
  });

  test('are evicted beyond the bound, the oldest first', () => {
    const { store } = open({ maxBytes: 20_000 });
    const ids = Array.from({ length: 20 }, (_each, i) => `id-${i}`);
    for (const id of ids) keep(store, id, 'x'.repeat(4000));
    const kept = ids.filter((id) => read(store, id) !== undefined);
    expect(kept.length).toBeGreaterThanOrEqual(3);
    expect(kept.length).toBeLessThanOrEqual(5);
    expect(kept).toEqual(ids.slice(-kept.length));
  });

  test('are evicted beyond the number of responses, the oldest first', () => {
    const { store } = open({ maxCount: 3 });
    const find = (ids: readonly string[]) => ids.filter((id) => read(store, id) !== undefined);
    for (const id of ['a', 'b', 'c', 'a']) keep(store, id, 'x');
    expect(find(['a', 'b', 'c'])).toEqual(['a', 'b', 'c']);
    keep(store, 'd', 'x');
    expect(find(['a', 'b', 'c', 'd'])).toEqual(['a', 'c', 'd']);
    store.remove('c');
    keep(store, 'e', 'x');
    expect(find(['a', 'c', 'd', 'e'])).toEqual(['a', 'd', 'e']);
  });

  test('of one write are kept for so many clients only, and the others in the place of expired ones', () => {
    const { store, wait } = open();
    for (let n = 0; n < MAX_PER_WRITE; n += 1) keep(store, `a.${n}`, 'first');
    for (const id of ['a.more', 'b.one', 'a.7']) keep(store, id, 'later');
    expect(['a.0', 'a.7', 'a.more', 'b.one'].map((id) => read(store, id))).toEqual([
      ...['first', 'later', undefined, 'later'],
    ]);
    wait(HOUR);
    for (let step = 0; step < 2; step += 1) keep(store, 'a.more', 'last');
    expect(['a.0', 'a.7', 'a.more', 'b.one'].map((id) => read(store, id))).toEqual([
      ...[undefined, undefined, 'last', undefined],
    ]);
    store.remove('a');
    expect(read(store, 'a.more')).toBeUndefined();
  });

  test('count what an entry takes besides its bytes', () => {
    const { store } = open({ maxBytes: 10_000 });
    const ids = Array.from({ length: 100 }, (_each, i) => `id-${i}`);
    for (const id of ids) keep(store, id, 'x');
    const kept = ids.filter((id) => read(store, id) !== undefined);
    expect(kept).toEqual(ids.slice(-19));
  });
});

test.each([
  ['memory', inMemory],
  ['a database', inDatabase],
] as const)('expired responses in %s are not found, and a step removes so many of them at most', (_, open) => {
  const maxCount = 10 * MAX_EXPIRED;
  const { store, wait } = open({ maxCount });
  const count = () => Math.round((store.bounds[0]?.used ?? 0) * maxCount);
  const ids = Array.from({ length: 3.5 * MAX_EXPIRED }, (_each, i) => `id-${i}`);
  for (const id of ids) keep(store, id, 'x');
  wait(HOUR);
  const counts: number[] = [];
  for (let step = 1; step <= 5; step += 1) {
    keep(store, `new-${step}`, 'x');
    counts.push(count());
    expect(ids.filter((id) => read(store, id) !== undefined)).toEqual([]);
  }
  expect(counts).toEqual([2.5, 1.5, 0.5, 0, 0].map((left, i) => left * MAX_EXPIRED + i + 1));
  expect(store.bounds[0]?.reached).toBe(0);
});

test('a database that may keep fewer responses than before removes at most 200 for each new one', () => {
  const db = new DatabaseSync(':memory:');
  db.exec(RESPONSES);
  const open = (max: Partial<ResponseBounds>): ResponseStore => {
    const options = { db, clock: { now: () => 0 }, onProblem: () => undefined };
    const commit = new GroupCommit({ ...options, schedule: atOnce });
    return new StoredResponses({ commit, steadyTime: () => 0, ...max });
  };
  const first = open({});
  for (let n = 0; n < 450; n += 1) keep(first, `id-${n}`, 'x');
  const later = open({ maxCount: 10 });
  const counts: unknown[] = [];
  for (let n = 0; n < 4; n += 1) {
    keep(later, `new-${n}`, 'x');
    counts.push(db.prepare('SELECT count(*) AS count FROM responses').get()?.['count']);
  }
  expect(counts).toEqual([251, 52, 10, 10]);
});

describe('a database with too many responses, or expired ones', () => {
  const COUNT = 1050;

  /** Opens a database with COUNT responses, of which the bound or their time lets ten stay. */
  function openFull(kind: 'too many' | 'expired') {
    const db = new DatabaseSync(':memory:');
    db.exec(RESPONSES);
    const put = db.prepare('INSERT INTO responses (id, bytes, until) VALUES (?, ?, ?)');
    const until = (n: number) => (kind === 'expired' && n < COUNT - 10 ? 0 : HOUR);
    for (let n = 0; n < COUNT; n += 1) put.run(`id-${n}`, Buffer.from('x'), until(n));
    const rows = () => Number(db.prepare('SELECT count(*) AS count FROM responses').get()?.['count']);
    const maxCount = kind === 'expired' ? 10 * COUNT : 10;
    const startProcess = () => {
      const delays: number[] = [];
      let due: (() => void)[] = [];
      const commit = new GroupCommit({
        ...{ db, clock: { now: () => 0 }, onProblem: () => undefined },
        schedule: (delay, run) => {
          delays.push(delay);
          due.push(run);
        },
      });
      const store = new StoredResponses({ commit, steadyTime: () => 0, maxCount });
      const endTurn = (): void => {
        const now = due;
        due = [];
        for (const run of now) run();
      };
      return { store, endTurn, delays, counted: () => Math.round((store.bounds[0]?.used ?? 0) * maxCount) };
    };
    return { db, rows, startProcess };
  }

  test.each(['too many', 'expired'] as const)('removes at most 200 in a step, until none is left: %s', (kind) => {
    const { rows, startProcess } = openFull(kind);
    const { endTurn, delays, counted } = startProcess();
    const counts: number[] = [];
    for (let turn = 0; turn < 30; turn += 1) {
      counts.push(rows());
      expect(counted()).toBe(rows());
      endTurn();
    }
    expect([...new Set(counts)]).toEqual([1050, 850, 650, 450, 250, 50, 10]);
    expect(delays.filter((delay) => delay > 0)).toEqual(Array.from({ length: 6 }, () => 50));
  });

  test('removes no more for many new responses, which take their place', () => {
    const { rows, startProcess } = openFull('too many');
    const { store, endTurn, counted } = startProcess();
    for (let n = 0; n < 300; n += 1) keep(store, `new-${n}`, 'x');
    endTurn();
    expect([rows(), counted()]).toEqual([COUNT, COUNT]);
    endTurn();
    expect(read(store, 'new-299')).toBe('x');
  });

  test('goes on in the next process after a kill between two steps', () => {
    const { rows, startProcess } = openFull('too many');
    const counts: number[] = [];
    for (let kill = 0; kill < 7; kill += 1) {
      const { endTurn, counted } = startProcess();
      expect(counted()).toBe(rows());
      for (let turn = 0; turn < 3; turn += 1) endTurn();
      expect(counted()).toBe(rows());
      counts.push(rows());
    }
    expect(counts).toEqual([850, 650, 450, 250, 50, 10, 10]);
  });

  test('has nothing to store if none is to be removed', () => {
    const { db, startProcess } = openFull('too many');
    db.exec('DELETE FROM responses WHERE number > 10');
    expect(startProcess().delays).toEqual([]);
  });
});

test('responses that are replaced again and again take no more memory, nor time', () => {
  const { store } = inMemory({ maxBytes: 100_000 });
  keep(store, 'old', 'one');
  for (let i = 0; i < 50_000; i += 1) keep(store, `id-${i % 7}`, `${i}`);
  expect(read(store, 'old')).toBe('one');
  expect(Array.from({ length: 7 }, (_, i) => Number(read(store, `id-${i}`)) % 7)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(store.bounds[0]?.reached).toBe(0);
  for (let i = 0; i < 2000; i += 1) keep(store, `new-${i}`, 'x');
  expect(read(store, 'old')).toBeUndefined();
  expect(store.bounds[0]?.used).toBeLessThanOrEqual(1);
});

test('the bound shows the share of bytes, and evictions', () => {
  for (const { store } of [inMemory({ maxBytes: 20_000 }), inDatabase({ maxBytes: 20_000 })]) {
    for (let i = 0; i < 10; i += 1) keep(store, `id-${i}`, 'x'.repeat(4000));
    const [bound] = store.bounds;
    expect(bound?.name).toBe('kept_responses');
    expect(bound?.used).toBeGreaterThan(0.6);
    expect(bound?.used).toBeLessThanOrEqual(1);
    expect(bound?.reached).toBeGreaterThanOrEqual(5);
  }
});

test('the bound shows the share of the number if that is larger', () => {
  for (const { store } of [inMemory({ maxCount: 4 }), inDatabase({ maxCount: 4 })]) {
    for (let i = 0; i < 3; i += 1) keep(store, `id-${i}`, 'x');
    expect(store.bounds).toEqual([{ name: 'kept_responses', used: 0.75, reached: 0 }]);
    for (let i = 3; i < 6; i += 1) keep(store, `id-${i}`, 'x');
    expect(store.bounds).toEqual([{ name: 'kept_responses', used: 1, reached: 2 }]);
  }
});

test('a database counts the responses of earlier processes', () => {
  const db = new DatabaseSync(':memory:');
  db.exec(RESPONSES);
  const open = (max: Partial<ResponseBounds>): ResponseStore => {
    const options = { db, clock: { now: () => 0 }, onProblem: () => undefined };
    const commit = new GroupCommit({ ...options, schedule: atOnce });
    return new StoredResponses({ commit, steadyTime: () => 0, ...max });
  };
  const first = open({});
  for (const id of ['a', 'b', 'c']) keep(first, id, id);
  expect(open({ maxCount: 4 }).bounds).toMatchObject([{ used: 0.75 }]);
  const later = open({ maxCount: 2 });
  keep(later, 'd', 'd');
  expect(['a', 'b', 'c', 'd'].map((id) => read(later, id))).toEqual([undefined, undefined, 'c', 'd']);
});

test('responses that a database cannot store are not kept in memory, and its earlier responses are removed later', () => {
  const db = new DatabaseSync(':memory:');
  db.exec(RESPONSES);
  let isFull = false;
  const waiting: (() => void)[] = [];
  const commit = new GroupCommit({
    ...{ db, clock: { now: () => 0 }, onProblem: () => undefined },
    prepare: () => {
      if (isFull) throw new Error('full');
    },
    schedule: (_, run) => void waiting.push(run),
  });
  const flush = (): void => {
    for (const run of waiting.splice(0)) run();
  };
  const store = new StoredResponses({ commit, steadyTime: () => 0 });
  keep(store, 'a.one', 'earlier');
  flush();
  isFull = true;
  store.remove('a');
  keep(store, 'a.one', 'later');
  expect(read(store, 'a.one')).toBe('later');
  flush();
  for (const id of ['a.one', 'b.one']) {
    keep(store, id, 'x'.repeat(60_000));
    flush();
    expect([id, read(store, id)]).toEqual([id, undefined]);
  }
  isFull = false;
  flush();
  expect(db.prepare('SELECT count(*) AS count FROM responses').get()).toMatchObject({ count: 0 });
  expect([read(store, 'a.one'), store.isEmpty]).toEqual([undefined, true]);
});

test.each([
  ['memory', inMemory],
  ['a database', inDatabase],
  ['the primary', inPrimary],
])('a response in %s has the time for which it is still kept', (_, open) => {
  const { store, wait } = open();
  const sealed = sealResponses(store, 'secret');
  keep(sealed, 'a', 'one');
  wait(1000);
  let left: number | undefined;
  sealed.read('a', (_bytes, keptFor) => (left = keptFor));
  expect(left).toBe(HOUR - 1000);
});

test('a kept 429 has a Retry-After by the clock of its store, whatever the clocks of the processes are', () => {
  const { store, wait } = inMemory();
  const responses = new KeptResponses(store);
  const kept = {
    status: 429,
    reasonPhrase: '',
    headers: [],
    body: Buffer.alloc(0),
    fingerprint: 'f',
    acceptEncoding: '',
  };
  responses.keep('a', kept, HOUR, () => undefined);
  wait(600_000);
  const heads: ResponseHead[] = [];
  responses.read(
    'a',
    (found) => found && heads.push(keptHead(found, { replayedHeader: undefined, keepResponsesFor: HOUR })),
  );
  expect(heads.map(({ addedHeaders }) => addedHeaders)).toEqual([['Retry-After', '3000']]);
});

test('a worker does not wait for a primary that does not respond', () => {
  const timers: (() => void)[] = [];
  const client = new ResponseClient({
    send: () => undefined,
    after: (_, run) => {
      timers.push(run);
      return () => undefined;
    },
  });
  const ends: unknown[] = [];
  client.read('a', (bytes) => ends.push(bytes));
  client.keep('a', Buffer.from('one'), HOUR, () => ends.push('kept'));
  for (const run of timers) run();
  expect(ends).toEqual([undefined, 'kept']);
  client.onReply({ query: 1, bytes: 'late' });
  expect(ends).toHaveLength(2);
});

describe('sealed responses', () => {
  const kept = (place: ResponseStore, id: string): Buffer => {
    let found: Buffer | undefined;
    place.read(id, (bytes) => (found = bytes));
    return found ?? Buffer.alloc(0);
  };

  test('are readable with the same secret only', () => {
    const { store } = inMemory();
    const sealed = sealResponses(store, 'secret');
    keep(sealed, 'a', 'top secret');
    expect(kept(store, 'a').toString('latin1')).not.toContain('top secret');
    expect(read(sealResponses(store, 'secret'), 'a')).toBe('top secret');
    expect(read(sealResponses(store, 'other'), 'a')).toBeUndefined();
  });

  test('are rejected if they are changed, shortened, or stored as another response', () => {
    const { store } = inMemory();
    const sealed = sealResponses(store, 'secret');
    keep(sealed, 'a', 'top secret');
    const bytes = kept(store, 'a');
    for (let i = 0; i < bytes.length; i += 7) {
      const changed = Buffer.from(bytes);
      changed[i] = (changed[i] ?? 0) ^ 1;
      store.keep('a', changed, HOUR, () => undefined);
      expect([i, read(sealed, 'a')]).toEqual([i, undefined]);
    }
    for (const length of [0, 10, 47, bytes.length - 1]) {
      store.keep('a', bytes.subarray(0, length), HOUR, () => undefined);
      expect([length, read(sealed, 'a')]).toEqual([length, undefined]);
    }
    store.keep('b', bytes, HOUR, () => undefined);
    expect(read(sealed, 'b')).toBeUndefined();
    store.keep('a', bytes, HOUR, () => undefined);
    expect(read(sealed, 'a')).toBe('top secret');
  });

  test('are not stored without a secret', () => {
    const { store } = inMemory();
    const none = sealResponses(store, undefined);
    keep(none, 'a', 'top secret');
    expect([read(none, 'a'), read(store, 'a'), none.bounds]).toEqual([undefined, undefined, []]);
  });
});

describe('an encoded response', () => {
  const response = {
    status: 201,
    reasonPhrase: 'Créé',
    headers: ['X-Name', 'caf\xe9', 'X-Name', ''],
    body: Buffer.from([0, 255, 10]),
    fingerprint: 'f',
    acceptEncoding: 'gzip',
  };

  test('decodes to what was encoded', () => {
    expect(decodeKeptResponse(encodeKeptResponse(response))).toEqual(response);
  });

  test('is rejected if it is of another version, or damaged', () => {
    const bytes = encodeKeptResponse(response);
    const other = Buffer.from(bytes.toString('latin1').replace('"version":1', '"version":2'), 'latin1');
    for (const each of [other, bytes.subarray(0, 3), bytes.subarray(0, 20), Buffer.alloc(4)]) {
      expect(decodeKeptResponse(each)).toBeUndefined();
    }
  });
});

test('headers about a single exchange are not stored', () => {
  const kept = ['Content-Type', 'a/b', 'Location', '/x', 'Date', 'today', 'RateLimited-By', 'x', 'Request-Id', 'r'];
  const dropped = [
    ...['Connection', 'close, X-Hop', 'X-Hop', '1', 'Keep-Alive', 'timeout=1', 'Transfer-Encoding', 'chunked'],
    ...['Content-Length', '3', 'Set-Cookie', 'a=b', 'Retry-After', '1', 'RateLimit-Remaining', '1', 'RateLimit', 'x'],
    ...['X-RateLimit-Reset', '1', 'X-Rate-Limit-Limit', '1', 'Via', '1.1 x', 'Tidegate-Attempts', '2', 'Age', '1'],
  ];
  expect(selectKeptHeaders([...dropped, ...kept])).toEqual(kept);
});
