/** A key that an operator forgets while processes use it, know it, or lose the connection, in a real Redis. */
import { expect, test } from 'vitest';
import type { KeyStateBackend } from '../../../src/sharing/keys/key-state-backend.ts';
import { NO_VERSION } from '../../../src/sharing/keys/key-state-backend.ts';
import { removeWrite } from '../../../src/sharing/redis/keys/redis-key-removal.ts';
import { RedisLost } from '../../../src/sharing/redis/keys/redis-name-reader.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { connectKeys, idOf, nameOf, openKeys, requestFor } from '../../support/redis/stored-keys.ts';

const NAME = { upstream: 'up', name: nameOf(0) };

async function setUp() {
  const redis = await startRedis();
  const keys = openKeys(await connectKeys(redis));
  const { reader, nextVersion, backendOf } = keys;
  const backend = backendOf('asked', () => 0);
  /** Removes the write; `swap` carries out the change. */
  const remove = (swap: KeyStateBackend['swap']) =>
    removeWrite(NAME, idOf(0), { reader, nextVersion, backend: { swap } });
  return { ...keys, redis, backend, remove };
}

test('a write that a request claims after the look-up is not forgotten', async () => {
  const { store, swap, remove, backend, list } = await setUp();
  const { version, session } = await store(0, 'unknown');
  let attempts = 0;
  const removal = await remove((name, change, onSwapped) => {
    attempts += 1;
    session.claim('other/1', 'other', requestFor(0));
    const claim = swap(0, session, { expected: version, next: 'claimed' }, { owner: 'other' });
    void claim.then((result) => {
      expect(result).toEqual({ kind: 'stored' });
      backend.swap(name, change, onSwapped);
    });
  });
  expect([attempts, removal]).toMatchObject([1, { kind: 'in_progress', write: { requests: 1 } }]);
  expect((await list()).writes).toMatchObject([{ state: 'in_progress' }]);
});

test('a write that changes after the look-up is forgotten as it is then', async () => {
  const { store, swap, remove, backend, list } = await setUp();
  const { version, session } = await store(0, 'unknown');
  let attempts = 0;
  const removal = await remove((name, change, onSwapped) => {
    attempts += 1;
    if (attempts > 1) return backend.swap(name, change, onSwapped);
    session.claim('other/1', 'other', requestFor(0));
    session.change('other/1', (claim) => claim.release({ kind: 'answered', isFinal: true, isDelivered: true }));
    session.close('other/1');
    void swap(0, session, { expected: version, next: 'answered' }).then(() => backend.swap(name, change, onSwapped));
  });
  expect([attempts, removal]).toMatchObject([2, { kind: 'forgotten', write: { state: 'answered' } }]);
  expect(await list()).toMatchObject({ total: 0 });
});

test('a write that changes again and again is not forgotten, with a hint', async () => {
  const { store, remove, reader, list } = await setUp();
  await store(0, 'unknown');
  const removal = await remove((name, _change, onSwapped) => {
    void reader.readOne(name).then((found) => onSwapped({ kind: 'changed', found }));
  });
  const why = 'Requests change what is known of the key all the time: it is not forgotten. Try again.';
  expect(removal).toEqual({ kind: 'unavailable', why });
  expect(await list()).toMatchObject({ total: 1 });
});

test('a removal whose response is lost is looked up, and repeated if it was not carried out', async () => {
  const { store, remove, backend, list } = await setUp();
  await store(0, 'unknown');
  const lost = { kind: 'lost', isUnsent: false } as const;
  let attempts = 0;
  const removal = await remove((name, change, onSwapped) => {
    attempts += 1;
    if (attempts === 1) onSwapped(lost);
    else backend.swap(name, change, () => onSwapped(lost));
  });
  expect([attempts, removal]).toMatchObject([2, { kind: 'forgotten', write: { state: 'unresolved' } }]);
  expect(await list()).toMatchObject({ total: 0 });
});

test('without a response, it is not known whether the write is forgotten; if nothing was sent, it is not', async () => {
  const { store, remove, redis } = await setUp();
  await store(0, 'unknown');
  await expect(remove((_name, _change, onSwapped) => onSwapped({ kind: 'lost', isUnsent: true }))).rejects.toThrow(
    RedisLost,
  );
  const removal = await remove((_name, _change, onSwapped) => {
    void redis.kill().then(() => onSwapped({ kind: 'lost', isUnsent: false }));
  });
  expect(removal).toMatchObject({ kind: 'unconfirmed', write: { id: idOf(0), state: 'unresolved' } });
});

test('a process cannot store again what it knew of a write that was forgotten', async () => {
  const { store, swap, inspection } = await setUp();
  const { version, session } = await store(0, 'answered');
  expect(await inspection.forget(idOf(0))).toMatchObject({ kind: 'forgotten' });
  for (const expected of [version, NO_VERSION]) {
    expect(await swap(0, session, { expected, next: 'again' })).toMatchObject({
      kind: 'changed',
      found: { version: 'version-2', state: undefined, forgets: 1 },
    });
  }
  // From the present version on, it is stored like any other. Without state, the mark stays.
  expect(await swap(0, session, { expected: 'version-2', next: 'new' })).toEqual({ kind: 'stored' });
  expect(await inspection.find(idOf(0))).toMatchObject({ kind: 'found' });
  const nothing = { state: undefined, unresolvedOwner: undefined };
  expect(await swap(0, nothing, { expected: 'new', next: 'empty' })).toEqual({ kind: 'stored' });
  expect(await swap(0, session, { expected: 'new', next: 'later' })).toMatchObject({
    kind: 'changed',
    found: { version: 'empty', forgets: 1 },
  });
  expect(await inspection.find(idOf(0))).toEqual({ kind: 'unknown' });
});
