import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { atEndOfTurn, sendInTurn } from '../../src/http/undici/write-batching.ts';
import { keepBusy } from '../support/keep-busy.ts';

test('what is to be done waits until its turn is over, and is done in its order', async () => {
  const done: string[] = [];
  atEndOfTurn(() => done.push('first'));
  atEndOfTurn(() => done.push('second'));
  process.nextTick(() => done.push('tick'));
  await Promise.resolve();
  expect(done).toEqual([]);
  await nextTurn();
  expect(done).toEqual(['tick', 'first', 'second']);
});

test('of very many the first do not wait for the last', async () => {
  const done: number[] = [];
  for (let i = 0; i < 100; i += 1) atEndOfTurn(() => done.push(i));
  expect(done).toEqual(Array.from({ length: 64 }, (_, i) => i));
  await nextTurn();
  expect(done).toEqual(Array.from({ length: 100 }, (_, i) => i));
});

test('what is begun while others are done is done too', async () => {
  const done: string[] = [];
  atEndOfTurn(() => {
    done.push('outer');
    atEndOfTurn(() => done.push('inner'));
  });
  await nextTurn();
  await nextTurn();
  expect(done).toEqual(['outer', 'inner']);
});

test('what is small is sent at once while the loop sleeps in between, and together while it is busy', async () => {
  const sent: string[] = [];
  for (let i = 0; i < 200; i += 1) {
    sendInTurn(() => undefined);
    await sleep(1);
  }
  sendInTurn(() => sent.push('at once'));
  expect(sent).toEqual(['at once']);
  await keepBusy();
  sendInTurn(() => sent.push('later'));
  expect(sent).toEqual(['at once']);
  await nextTurn();
  expect(sent).toEqual(['at once', 'later']);
});
