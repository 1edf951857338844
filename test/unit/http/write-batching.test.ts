import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { afterPoll, batchWhenBusy } from '../../../src/http/undici/write-batching.ts';
import { simulateLoad } from '../../support/keep-busy.ts';

test('tasks run after the current turn, in order', async () => {
  const done: string[] = [];
  afterPoll(() => done.push('first'));
  afterPoll(() => done.push('second'));
  process.nextTick(() => done.push('tick'));
  await Promise.resolve();
  expect(done).toEqual([]);
  await nextTurn();
  expect(done).toEqual(['tick', 'first', 'second']);
});

test('the first 64 of many tasks run at once', async () => {
  const done: number[] = [];
  for (let i = 0; i < 100; i += 1) afterPoll(() => done.push(i));
  expect(done).toEqual(Array.from({ length: 64 }, (_, i) => i));
  await nextTurn();
  expect(done).toEqual(Array.from({ length: 100 }, (_, i) => i));
});

test('a task added by another task runs too', async () => {
  const done: string[] = [];
  afterPoll(() => {
    done.push('outer');
    afterPoll(() => done.push('inner'));
  });
  await nextTurn();
  await nextTurn();
  expect(done).toEqual(['outer', 'inner']);
});

test('small writes are sent at once while the loop is idle, and together while it is busy', async () => {
  const sent: string[] = [];
  for (let i = 0; i < 200; i += 1) {
    batchWhenBusy(() => undefined);
    await sleep(1);
  }
  batchWhenBusy(() => sent.push('at once'));
  expect(sent).toEqual(['at once']);
  await simulateLoad();
  batchWhenBusy(() => sent.push('later'));
  expect(sent).toEqual(['at once']);
  await nextTurn();
  expect(sent).toEqual(['at once', 'later']);
});
