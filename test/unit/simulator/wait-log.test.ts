import { expect, test } from 'vitest';
import { WaitLog } from '../../../src/simulator/practice/wait-log.ts';

test('lists waits in the order in which the work ended', () => {
  const log = new WaitLog(3);
  log.add(10, 0);
  log.add(20, 5);
  expect(log.list()).toEqual([
    { at: 10, wait: 0 },
    { at: 20, wait: 5 },
  ]);
});

test('drops the oldest wait once it is full', () => {
  const log = new WaitLog(3);
  for (const at of [1, 2, 3, 4, 5]) log.add(at, at);
  expect(log.list().map(({ at }) => at)).toEqual([3, 4, 5]);
});
