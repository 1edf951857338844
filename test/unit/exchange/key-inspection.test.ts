import { describe, expect, test } from 'vitest';
import { RegistryKeyInspection } from '../../../src/admin/operations/registry-key-inspection.ts';
import type { WriteQuery } from '../../../src/core/idempotency/key-inspection.ts';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import type { KeyedWrite, WriteIdentity } from '../../../src/core/idempotency/keyed-write.ts';
import { UNKNOWN_ENDPOINT } from '../../../src/core/idempotency/keyed-write.ts';
import { idOfName, parseWriteId, withCredential } from '../../../src/core/idempotency/write-id.ts';
import { WriteSearch } from '../../../src/core/idempotency/write-search.ts';
import { WriteDigests } from '../../../src/http/idempotency/write-digests.ts';

const digests = new WriteDigests('secret');

function identify(
  key: string,
  { upstream = 'up', path = '/pay', credential = 'alice', body = '1' } = {},
): WriteIdentity {
  const name = { name: `${upstream}\0${path}\0${key}`, key };
  const header = {
    kind: 'header',
    header: 'authorization',
    value: credential,
    owner: credential,
    keyOwner: undefined,
  } as const;
  return digests.identify(upstream, name, header, Buffer.from(body));
}

function setUp() {
  const keys = new KeyRegistry();
  const inspection = new RegistryKeyInspection(keys, { remove: () => undefined }, (key) => digests.digestKey(key));
  const send = (identity: WriteIdentity, at: number, endpoint = 'e1'): KeyedWrite => {
    const write = keys.join(identity);
    keys.onSent(write, at, endpoint);
    return write;
  };
  const end = (write: KeyedWrite, isAnswered: boolean, credential = write.credential): void => {
    const { firstSentAt } = write;
    keys.record(write, { firstSentAt, isAnswered, isFinal: isAnswered }, credential);
    keys.onAttemptEnd(write);
    keys.leave(write);
  };
  const remember = (identity: WriteIdentity, at: number, isAnswered: boolean): KeyedWrite => {
    const write = send(identity, at);
    end(write, isAnswered);
    return write;
  };
  const list = (query: Partial<WriteQuery> = {}) => inspection.list({ order: 'newest', limit: 50, ...query });
  return { keys, inspection, send, end, remember, list };
}

describe('a list of writes', () => {
  test('shows what is stored of each write, but neither its key nor its credential', async () => {
    const { keys, send, end, remember, list } = setUp();
    remember(identify('order-1'), 10, false);
    const answered = remember(identify('order-2'), 20, true);
    const repeat = send(identify('order-2', { credential: 'alice again' }), 25, 'e2');
    end(repeat, true, identify('order-2', { credential: 'alice again' }).credential);
    const held = send(identify('order-3'), 30);
    keys.join(identify('order-3'));
    const delivered = remember(identify('order-4'), 40, true);
    keys.onResponse(delivered, delivered.credential, true);
    keys.join(identify('order-5'));
    const fields = { upstream: 'up', endpoint: 'e1', upstreamKey: undefined, requests: 0, responses: 0, finalFor: 0 };
    const { total, matching, writes } = await list();
    expect({ total, matching }).toEqual({ total: 5, matching: 5 });
    expect(writes).toEqual([
      {
        ...{
          ...fields,
          id: idOfName(identify('order-5').name),
          state: 'in_progress',
          endpoint: undefined,
          requests: 1,
        },
        firstSentAt: undefined,
      },
      { ...fields, id: idOfName(delivered.name), state: 'in_progress', firstSentAt: 40, responses: 1, finalFor: 1 },
      { ...fields, id: idOfName(held.name), state: 'in_progress', firstSentAt: 30, requests: 2 },
      { ...fields, id: idOfName(answered.name), state: 'answered', firstSentAt: 20, finalFor: 2 },
      { ...fields, id: idOfName(identify('order-1').name), state: 'unresolved', firstSentAt: 10 },
    ]);
    expect(writes.every(({ id }) => /^[0-9a-f]{16}$/.test(id))).toBe(true);
    expect(JSON.stringify(writes)).not.toMatch(/order|alice/);
  });

  test('is filtered by upstream, state or key, and begins with the newest or the oldest', async () => {
    const { remember, list } = setUp();
    for (let i = 0; i < 9; i += 1) {
      remember(identify(`order-${i}`, { upstream: i < 5 ? 'up' : 'other' }), (i * 4) % 9, i % 2 === 0);
    }
    const sentAt = async (query: Partial<WriteQuery>) => {
      const { writes, matching } = await list(query);
      return [matching, writes.map(({ firstSentAt }) => firstSentAt)];
    };
    expect(await sentAt({ limit: 3 })).toEqual([9, [8, 7, 6]]);
    expect(await sentAt({ limit: 4, order: 'oldest' })).toEqual([9, [0, 1, 2, 3]]);
    expect(await sentAt({ upstream: 'other' })).toEqual([4, [6, 5, 2, 1]]);
    expect(await sentAt({ upstream: 'other', states: ['unresolved'] })).toEqual([2, [2, 1]]);
    expect(await sentAt({ states: ['unresolved', 'answered'], limit: 1 })).toEqual([9, [8]]);
    expect(await sentAt({ states: ['in_progress'] })).toEqual([0, []]);
    expect(await sentAt({ key: 'order-4' })).toEqual([1, [7]]);
    expect(await sentAt({ key: 'order' })).toEqual([0, []]);
    expect(await sentAt({ id: idOfName(identify('order-4').name).slice(0, 8) })).toEqual([1, [7]]);
    expect(await sentAt({ id: 'order-4' })).toEqual([0, []]);
  });

  test('includes a key at all targets, and distinguishes the writes of two accounts', async () => {
    const { remember, list, inspection } = setUp();
    remember(identify('order', { path: '/refund' }), 1, true);
    remember(identify('order'), 2, true);
    remember(identify('order', { credential: 'bob', body: '2' }), 3, false);
    const { writes } = await list({ key: 'order' });
    const id = idOfName(identify('order').name);
    const [bob, alice] = ['bob', 'alice'].map((credential) =>
      withCredential(id, identify('order', { credential }).credential),
    );
    expect(writes.map((each) => each.id)).toEqual([bob, alice, idOfName(identify('order', { path: '/refund' }).name)]);
    expect(await inspection.find(id)).toEqual({ kind: 'ambiguous', ids: [bob, alice] });
    expect(await inspection.find(bob ?? '')).toMatchObject({ kind: 'found', write: { id: bob, firstSentAt: 3 } });
    expect(await inspection.forget(id)).toMatchObject({ kind: 'ambiguous' });
    expect(await inspection.forget(bob ?? '')).toMatchObject({ kind: 'forgotten', write: { id: bob } });
    expect(await inspection.find(id)).toMatchObject({ kind: 'found', write: { id, firstSentAt: 2 } });
  });

  test('shows a write as unresolved if it is for one credential', async () => {
    const { send, end, remember, list } = setUp();
    const write = remember(identify('order'), 1, true);
    const other = identify('order', { credential: 'bob' });
    expect(send(other, 2)).toBe(write);
    end(write, false, other.credential);
    expect((await list()).writes).toMatchObject([{ state: 'unresolved', finalFor: 1 }]);
  });

  test('has writes of the same time in order of arrival, whether the newest or the oldest are first', async () => {
    const { remember, list } = setUp();
    const ids = [7, 5, 7, 5, 7].map((at, i) => idOfName(remember(identify(`order-${i}`), at, true).name));
    const listed = async (query: Partial<WriteQuery>) => (await list(query)).writes.map(({ id }) => ids.indexOf(id));
    expect(await listed({})).toEqual([0, 2, 4, 1, 3]);
    expect(await listed({ order: 'oldest' })).toEqual([1, 3, 0, 2, 4]);
    expect(await listed({ limit: 2 })).toEqual([0, 2]);
    expect(await listed({ limit: 3, order: 'oldest' })).toEqual([1, 3, 0]);
  });

  test('has no endpoint for a write whose endpoint is unknown', async () => {
    const { send, end, list } = setUp();
    end(send(identify('order'), 1, UNKNOWN_ENDPOINT), false);
    expect((await list()).writes).toMatchObject([{ state: 'unresolved', endpoint: undefined }]);
  });

  test('is created in steps', () => {
    const { keys, remember } = setUp();
    for (let i = 0; i < 4; i += 1) remember(identify(`order-${i}`), i, true);
    const search = new WriteSearch(keys, { order: 'newest', limit: 1 });
    expect([search.step(3), search.matches.total, search.matches.matching]).toEqual([true, 3, 3]);
    expect([search.step(3), search.matches.total]).toEqual([false, 4]);
  });

  test('is created in turns with requests, which may remove what was found', async () => {
    const { keys, remember, list } = setUp();
    const writes = Array.from({ length: 25_000 }, (_, i) => remember(identify(`order-${i}`), i, i < 15_000));
    const listed = list({ limit: 3, order: 'oldest' });
    let turns = 0;
    setImmediate(() => {
      turns += 1;
      for (const write of writes.slice(0, 2)) keys.forget(write);
    });
    expect((await listed).writes.map(({ firstSentAt }) => firstSentAt)).toEqual([2]);
    expect(turns).toBe(1);
  });
});

describe('an operator that forgets a write', () => {
  test('makes it new from then on, whether it was unresolved or answered', async () => {
    const { keys, inspection, remember } = setUp();
    for (const isAnswered of [false, true]) {
      const { name } = remember(identify('order'), 5, isAnswered);
      const state = isAnswered ? 'answered' : 'unresolved';
      const id = idOfName(name);
      expect(await inspection.forget(id.slice(0, 8))).toMatchObject({ kind: 'forgotten', write: { id, state } });
      expect(await inspection.find(id)).toEqual({ kind: 'unknown' });
      expect(await inspection.forget(id)).toEqual({ kind: 'unknown' });
      expect([keys.hasUnresolved, keys.isUnresolved(name)]).toEqual([false, false]);
      const again = keys.join(identify('order'));
      expect(keys.recall(again, 1000, 6)).toBeUndefined();
      keys.leave(again);
    }
  });

  test('is refused while a request uses it, or while its response is being sent', async () => {
    const { keys, inspection, remember } = setUp();
    const write = remember(identify('order'), 5, true);
    const id = idOfName(write.name);
    keys.join(identify('order'));
    expect(await inspection.forget(id)).toMatchObject({ kind: 'in_progress', write: { requests: 1 } });
    keys.onResponse(write, write.credential, true);
    keys.leave(write);
    expect(await inspection.forget(id)).toMatchObject({ kind: 'in_progress', write: { requests: 0, responses: 1 } });
    keys.onResponseEnd(write, write.credential, true);
    expect(await inspection.forget(id)).toMatchObject({ kind: 'forgotten' });
  });

  test('gets no result before the removal is stored', async () => {
    const { keys, inspection, remember } = setUp();
    const waiting: ((isStored: boolean) => void)[] = [];
    const changed: (readonly [string, string])[] = [];
    keys.resume([], {
      onChange: ({ name, state }) => changed.push([name, state]),
      onSurplus: () => undefined,
      whenStored: (run) => waiting.push(run),
    });
    for (const [isStored, kind] of [
      [true, 'forgotten'],
      [false, 'not_stored'],
    ] as const) {
      const { name } = remember(identify('order'), 5, true);
      let result: unknown;
      const forgotten = inspection.forget(idOfName(name)).then((value) => (result = value.kind));
      await new Promise(setImmediate);
      expect([result, changed.at(-1)]).toEqual([undefined, [name, 'new']]);
      waiting.pop()?.(isStored);
      expect(await forgotten).toBe(kind);
    }
  });
});

test('an id is recognised by eight or more digits, in capitals too', () => {
  const { name, credential } = identify('order');
  const id = idOfName(name);
  const full = withCredential(id, credential);
  const matches = (text: string): unknown => {
    const pattern = parseWriteId(text);
    return pattern && [pattern.matchesName(name), pattern.matchesCredential(credential)];
  };
  for (const text of [id, id.slice(0, 8), id.slice(0, 9), id.toUpperCase(), full, full.slice(0, 20)]) {
    expect(matches(text)).toEqual([true, true]);
  }
  const other = id.endsWith('0') ? '1' : '0';
  expect([matches(`${id.slice(0, 15)}${other}`), matches(`${id.slice(0, 8)}${id[8] === '0' ? '1' : '0'}`)]).toEqual([
    [false, true],
    [false, true],
  ]);
  expect(matches(`${full.slice(0, -1)}${full.endsWith('0') ? '1' : '0'}`)).toEqual([true, false]);
  const others = ['', id.slice(0, 7), `${id}0`, `${id}-`, 'order-42', `${id}\n`, `x${id}`, `-${id}`];
  expect(others.map(matches)).toEqual(others.map(() => undefined));
});

test('an id ends with eight digits of the credential if several writes have one name', () => {
  expect(withCredential('ab', 0x1234)).toBe('ab-00001234');
  expect(withCredential('ab', 0x12_3456_789a)).toBe('ab-3456789a');
  expect(withCredential('ab', -0x12_3456_789a)).toBe('ab-3456789a');
});
