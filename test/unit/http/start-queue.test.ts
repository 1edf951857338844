import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { StartQueue } from '../../../src/http/server/start-queue.ts';

/** Each start takes 2 ms. */
function open() {
  let now = 0;
  const started: number[] = [];
  const queue = new StartQueue({ now: () => now, needsTimers: () => false });
  const add = (n: number): void =>
    queue.add(() => {
      started.push(n);
      now += 2;
    });
  return { queue, started, add };
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

test('starts run in order, after what arrives in this turn, and no longer than 5 ms in each turn', async () => {
  const { queue, started, add } = open();
  for (const n of upTo(7)) add(n);
  expect(started).toEqual([]);
  const seen: number[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    await nextTurn();
    seen.push(started.length);
  }
  expect(seen).toEqual([3, 6, 7]);
  expect(started).toEqual(upTo(7));
  expect(queue.size).toBe(0);
});

test('what a start causes runs before the next start', async () => {
  const done: string[] = [];
  const { queue } = open();
  queue.add(() => {
    done.push('first');
    void Promise.resolve().then(() => done.push('its promise'));
    process.nextTick(() => done.push('its tick'));
  });
  queue.add(() => done.push('second'));
  await nextTurn();
  expect(done).toEqual(['first', 'its tick', 'its promise', 'second']);
});

test('a request that arrives waits for those before it, and while timers are needed for the end of the turn', async () => {
  let isNeeded = false;
  const queue = new StartQueue({ now: () => 0, needsTimers: () => isNeeded });
  expect(queue.mustWait).toBe(false);
  queue.add(() => undefined);
  expect(queue.mustWait).toBe(true);
  await nextTurn();
  expect(queue.mustWait).toBe(false);
  isNeeded = true;
  expect(queue.mustWait).toBe(true);
});

test('keeps the order of thousands, of which some are added meanwhile', async () => {
  const { queue, started, add } = open();
  for (const n of upTo(3000)) add(n);
  for (let n = 3000; queue.size > 0; n += 1) {
    await nextTurn();
    if (n < 3100) add(n);
  }
  expect(started).toEqual(upTo(3100));
});
