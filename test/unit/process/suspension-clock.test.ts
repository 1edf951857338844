import { expect, test } from 'vitest';
import { SuspensionClock } from '../../../src/process/suspension-clock.ts';

/** A system whose uptime has a resolution of 10 ms. */
function system() {
  const time = { monotonic: 5000, suspended: 0 };
  const sources = {
    monotonic: () => time.monotonic,
    uptime: () => Math.floor((time.monotonic + time.suspended + 123_456) / 10) * 10,
  };
  return { time, sources };
}

test('counts the time in which the system was suspended, within 10 ms', () => {
  const { time, sources } = system();
  const clock = new SuspensionClock(0, sources);
  time.monotonic += 1000.7;
  expect(clock.now()).toBe(6000.7);
  time.suspended += 3_600_000;
  time.monotonic += 20;
  expect(clock.now()).toBeGreaterThanOrEqual(3_606_010.7);
  expect(clock.now()).toBeLessThanOrEqual(3_606_030.7);
  time.suspended += 250;
  time.monotonic += 20;
  expect(clock.suspended).toBeGreaterThanOrEqual(3_600_240);
  expect(clock.suspended).toBeLessThanOrEqual(3_600_260);
});

test('is the monotonic clock while the system runs: the coarse uptime moves nothing', () => {
  const { time, sources } = system();
  const clock = new SuspensionClock(0, sources);
  for (let step = 0; step < 10_000; step += 1) {
    time.monotonic += 33.3;
    expect(clock.now()).toBe(time.monotonic);
  }
});

test('never goes back, also when the uptime does', () => {
  const { time, sources } = system();
  const clock = new SuspensionClock(700, sources);
  expect(clock.now()).toBe(5700);
  time.suspended -= 100_000;
  time.monotonic += 30;
  expect(clock.now()).toBe(5730);
  time.suspended += 5000;
  time.monotonic += 30;
  expect(clock.now()).toBeGreaterThanOrEqual(10_750);
});
