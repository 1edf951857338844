import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { callInTime } from '../../src/process/cluster/coalesced-timer.ts';
import { eventually } from '../support/tidegate.ts';

let calls: number;
let within: (millis: number) => void;

beforeEach(() => {
  calls = 0;
  within = callInTime(() => (calls += 1));
});

/** Timers of others that are due by then have run. */
async function wait(millis: number): Promise<void> {
  await sleep(millis);
  await new Promise(setImmediate);
}

test.each([
  ['a later one', [50_000, 300]],
  ['an earlier one', [300, 50_000]],
])('what is asked for first is when it is called, whatever is asked besides: %s', async (_, asked) => {
  for (const each of asked) within(each);
  await wait(1);
  expect(calls).toBe(0);
  await eventually(
    () => calls,
    (seen) => seen === 1,
  );
});

test('at once means at the end of this turn, whatever was asked for before, and once', async () => {
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

test('it may be asked for again, by what it calls too', async () => {
  const again = callInTime(() => {
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
