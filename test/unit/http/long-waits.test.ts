/** Waits that exceed the longest timer of Node, 24.8 days. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { Deadline } from '../../../src/http/deadline.ts';
import { WakeTimer } from '../../../src/http/wake-timer.ts';

const DAY = 86_400_000;
const clock = { now: () => Date.now() };

/** Replaces the timers and the clock until the test ends. Returns the delays of the timers that were set. */
function fakeTimers(): () => readonly number[] {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const timers = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => timers.mockRestore());
  return () => timers.mock.calls.map(([, delay = 0]) => delay);
}

test('a deadline after 30 days takes two timers, and is kept', () => {
  const timers = fakeTimers();
  const since = Date.now();
  const fired: number[] = [];
  const deadline = new Deadline(clock);
  deadline.arm(30 * DAY, () => fired.push(Date.now() - since));
  vi.advanceTimersByTime(1000);
  expect(timers()).toHaveLength(1); // a timer that is too long fires at once, again and again
  vi.advanceTimersByTime(30 * DAY);
  expect(fired).toEqual([30 * DAY]);
  expect(timers()).toHaveLength(2);
  deadline.close();
});

test('a deadline after 30 days is replaced by an earlier one', () => {
  fakeTimers();
  let fired = 0;
  const deadline = new Deadline(clock);
  deadline.arm(30 * DAY, () => undefined);
  deadline.arm(1000, () => (fired += 1));
  vi.advanceTimersByTime(1000);
  expect(fired).toBe(1);
  deadline.close();
});

test('work that is due in 100 days takes few timers, and is done in time', () => {
  const timers = fakeTimers();
  let dueAt: number | undefined = Date.now() + 100 * DAY;
  const doneAt: number[] = [];
  const timer = new WakeTimer(
    {
      nextWake: () => dueAt,
      wake: (now) => {
        if (dueAt === undefined || now < dueAt) return;
        doneAt.push(now);
        dueAt = undefined;
      },
    },
    clock,
  );
  const due = dueAt;
  timer.rearm();
  vi.advanceTimersByTime(1000);
  expect(timers()).toHaveLength(1);
  vi.advanceTimersByTime(100 * DAY);
  expect(doneAt).toEqual([due]);
  expect(timers()).toHaveLength(5);
  timer.stop();
});
