import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { createCoalescedTimer } from '../../../src/process/cluster/coalesced-timer.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

let calls: number;
let within: (millis: number) => void;

beforeEach(() => {
  calls = 0;
  within = createCoalescedTimer(() => (calls += 1));
});

/** Waits until other timers due by then have run. */
async function wait(millis: number): Promise<void> {
  await sleep(millis);
  await new Promise(setImmediate);
}

test.each([
  ['a later one', [50_000, 300]],
  ['an earlier one', [300, 50_000]],
])('runs at the earliest requested time, whatever other times are requested: %s', async (_, requested) => {
  for (const each of requested) within(each);
  await wait(1);
  expect(calls).toBe(0);
  await eventually(
    () => calls,
    (seen) => seen === 1,
  );
});

test('runs an immediate call once, at the end of this turn, whatever was requested before', async () => {
  within(20);
  within(0);
  within(0);
  within(5);
  expect(calls).toBe(0);
  await new Promise(setImmediate);
  expect(calls).toBe(1);
  await wait(100);
  expect(calls).toBe(1);
});

test('runs again if it is requested again, also by its own callback', async () => {
  const again = createCoalescedTimer(() => {
    calls += 1;
    if (calls < 3) again(calls);
  });
  again(0);
  await eventually(
    () => calls,
    (seen) => seen === 3,
  );
  again(1);
  await eventually(
    () => calls,
    (seen) => seen === 4,
  );
  await wait(50);
  expect(calls).toBe(4);
});
