import { expect, test } from 'vitest';
import { ProgressWatch } from '../../checker/progress-watch.ts';

function watched(seconds: number, chargesAt: (second: number) => number, isFaulty = (_second: number) => false) {
  const watch = new ProgressWatch(0);
  for (let second = 1; second <= seconds; second += 1) {
    watch.observe(chargesAt(second), isFaulty(second), 1000 * second);
  }
  return watch.violations;
}

const isEven = (second: number): boolean => second % 2 === 0;

test('writes that stay without effect for more than a minute, faults not counted, are a violation', () => {
  expect(watched(300, (second) => Math.floor(second / 50))).toEqual([]);
  expect(watched(61, () => 0)).toEqual(['nothing was executed in 61 s without a fault']);
  expect(watched(120, () => 0, isEven)).toEqual([]);
  expect(watched(130, () => 0, isEven)).toEqual(['nothing was executed in 65 s without a fault']);
});

test('a violation remains one when writes go on later', () => {
  const violations = watched(100, (second) => (second < 80 ? 0 : second));
  expect(violations).toEqual(['nothing was executed in 79 s without a fault']);
});
