/** Deadlines, and waits that exceed the longest timer of Node, 24.8 days. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { Deadline } from '../../../src/http/deadline.ts';
import { WakeTimer } from '../../../src/http/wake-timer.ts';

const DAY = 86_400_000;
const clock = { now: () => Date.now() };

/** Replaces the timers and the clock until the test ends. They are not spied on as well, because the fake ones would remain. */
function fakeTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  onTestFinished(() => void vi.useRealTimers());
}

/** Fires all timers that are set, and those that these set. Returns their number. */
function fireTimers(): number {
  let fired = 0;
  for (; vi.getTimerCount() > 0 && fired < 100; fired += 1) vi.advanceTimersToNextTimer(); // a timer that is too long fires at once, again and again
  return fired;
}

test('a deadline after 30 days takes two timers, and fires on time', () => {
  fakeTimers();
  const since = Date.now();
  const fired: number[] = [];
  const deadline = new Deadline(clock);
  deadline.arm(30 * DAY, () => fired.push(Date.now() - since));
  expect(fireTimers()).toBe(2);
  expect(fired).toEqual([30 * DAY]);
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

test('a deadline that was closed can be armed again', () => {
  fakeTimers();
  let fired = 0;
  const deadline = new Deadline(clock);
  deadline.arm(1000, () => (fired += 1));
  deadline.close();
  deadline.arm(2000, () => (fired += 10));
  expect(fireTimers()).toBe(1);
  expect(fired).toBe(10);
});

test('work that is due in 100 days takes five timers, and is done on time', () => {
  fakeTimers();
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
  expect(fireTimers()).toBe(5);
  expect(doneAt).toEqual([due]);
  timer.stop();
});
