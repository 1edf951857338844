import { describe, expect, test } from 'vitest';
import type { BackOffSpec } from '../../../src/core/backoff/strategies.ts';
import { makeBackOff } from '../../../src/core/backoff/strategies.ts';
import type { DeliveryProgress, DeliverySchedule } from '../../../src/core/delivery/delivery-schedule.ts';
import { makeBackOffSchedule, makeTableSchedule, nextAttemptAt } from '../../../src/core/delivery/delivery-schedule.ts';
import type { SchedulePreset } from '../../../src/core/delivery/schedule-presets.ts';
import { SCHEDULE_PRESETS, schedulePresetNames } from '../../../src/core/delivery/schedule-presets.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** A time on the wall clock. */
const FIRST = Date.UTC(2026, 0, 31, 23, 59, 58);

const middle = () => 0.5;

function backOffSchedule(spec: BackOffSpec, total: Millis): DeliverySchedule {
  return makeBackOffSchedule(makeBackOff(spec), total);
}

const threeDays = backOffSchedule(
  { strategy: 'exponential-jitter', baseInterval: 10 * SECOND, maxInterval: 6 * HOUR },
  3 * DAY,
);

const ended = (progress: Partial<DeliveryProgress>): DeliveryProgress => ({
  attempts: 1,
  firstAt: FIRST,
  lastEndedAt: FIRST,
  retryAfterMs: undefined,
  ...progress,
});

/** When each attempt begins, from the first one on, if none is acknowledged and each takes `took`. */
function attemptTimes(schedule: DeliverySchedule, { random = middle, took = 0 } = {}): Millis[] {
  const times: Millis[] = [];
  let at: Millis | undefined = FIRST;
  while (at !== undefined) {
    times.push(at - FIRST);
    at = nextAttemptAt(schedule, ended({ attempts: times.length, lastEndedAt: at + took }), random);
  }
  return times;
}

/** As a provider writes it: hours, minutes and seconds after the first attempt. */
const clock = (times: readonly Millis[]): string[] =>
  times.map((time) =>
    [Math.floor(time / HOUR), Math.floor((time % HOUR) / MINUTE), (time % MINUTE) / SECOND]
      .map((part) => String(part).padStart(2, '0'))
      .join(':'),
  );

describe('a backoff with a total', () => {
  test('doubles from 10 s to 6 h for three days', () => {
    expect(clock(attemptTimes(threeDays))).toEqual([
      '00:00:00',
      '00:00:10',
      '00:00:30',
      '00:01:10',
      '00:02:30',
      '00:05:10',
      '00:10:30',
      '00:21:10',
      '00:42:30',
      '01:25:10',
      '02:50:30',
      '05:41:10',
      '11:22:30',
      '17:22:30',
      '23:22:30',
      '29:22:30',
      '35:22:30',
      '41:22:30',
      '47:22:30',
      '53:22:30',
      '59:22:30',
      '65:22:30',
      '71:22:30',
    ]);
  });

  test('begins no attempt after the total, and one exactly at it', () => {
    const hourly = backOffSchedule({ strategy: 'fixed', baseInterval: HOUR }, 3 * HOUR);
    expect(attemptTimes(hourly)).toEqual([0, HOUR, 2 * HOUR, 3 * HOUR]);
    expect(attemptTimes(hourly, { took: 1 })).toEqual([0, HOUR + 1, 2 * HOUR + 2]);
  });

  test('ends as its strategy gives up', () => {
    const schedule = backOffSchedule({ strategy: 'doubling', baseInterval: SECOND, maxInterval: 4 * SECOND }, DAY);
    expect(attemptTimes(schedule)).toEqual([0, 1000, 3000, 7000]);
  });

  test('leaves at least a second between two attempts', () => {
    const schedule = backOffSchedule({ strategy: 'full-jitter', baseInterval: 100, maxInterval: 5000 }, 3 * SECOND);
    expect(attemptTimes(schedule, { random: () => 0 })).toEqual([0, 1000, 2000, 3000]);
    expect(schedule.band(0)).toEqual({ min: 1000, mean: 1000, max: 1000 });
    expect(schedule.band(6)).toEqual({ min: 1000, mean: 2500, max: 5000 });
  });

  test('spreads the attempts of many deliveries over the band of each delay', () => {
    const random = seededRandom(1);
    const delays = Array.from({ length: 1000 }, () => threeDays.delay(3, random) ?? 0);
    expect(Math.min(...delays)).toBeLessThan(45 * SECOND);
    expect(Math.max(...delays)).toBeGreaterThan(115 * SECOND);
  });
});

describe('a strategy whose delays depend on each other', () => {
  const strategies = ['decorrelated-jitter', 'decorrelated-jitter-v2'] as const;

  test.each(strategies)('%s has the mean of the whole chain, from the number of attempts alone', (strategy) => {
    const schedule = backOffSchedule({ strategy, baseInterval: 10 * SECOND, maxInterval: 6 * HOUR }, 3 * DAY);
    const random = seededRandom(7);
    for (const n of [0, 1, 5, 12, 200]) {
      const draws = Array.from({ length: 4000 }, () => schedule.delay(n, random) ?? 0);
      const mean = draws.reduce((sum, delay) => sum + delay, 0) / draws.length;
      expect(mean / (schedule.band(n)?.mean ?? 0), `delay ${n}`).toBeCloseTo(1, 1);
    }
  });

  test('draws a bounded number of times', () => {
    const schedule = backOffSchedule({ strategy: 'decorrelated-jitter', baseInterval: SECOND, maxInterval: 2000 }, DAY);
    let draws = 0;
    const counted = () => {
      draws += 1;
      return 0.5;
    };
    schedule.delay(50_000, counted);
    expect(draws).toBeLessThan(100);
  });
});

describe('a table', () => {
  const schedule = makeTableSchedule([5 * SECOND, MINUTE, HOUR]);

  test('has one retry for each delay', () => {
    expect(attemptTimes(schedule)).toEqual([0, 5 * SECOND, 65 * SECOND, HOUR + 65 * SECOND]);
  });

  test('counts each delay from the end of the attempt before, and makes all attempts', () => {
    expect(attemptTimes(schedule, { took: 30 * SECOND })).toEqual([0, 35 * SECOND, 125 * SECOND, HOUR + 155 * SECOND]);
  });
});

describe('the schedules of providers', () => {
  const timesOf = (name: SchedulePreset) => clock(attemptTimes(makeTableSchedule(SCHEDULE_PRESETS[name])));

  test('alipay: eight notifications in 24 hours and 24 minutes', () => {
    expect(timesOf('alipay')).toEqual([
      '00:00:00',
      '00:04:00',
      '00:14:00',
      '00:24:00',
      '01:24:00',
      '03:24:00',
      '09:24:00',
      '24:24:00',
    ]);
  });

  test('wechat-pay: 24 hours and 4 minutes in all', () => {
    expect(timesOf('wechat-pay')).toEqual([
      '00:00:00',
      '00:00:15',
      '00:00:30',
      '00:01:00',
      '00:04:00',
      '00:14:00',
      '00:34:00',
      '01:04:00',
      '01:34:00',
      '02:04:00',
      '03:04:00',
      '06:04:00',
      '09:04:00',
      '12:04:00',
      '18:04:00',
      '24:04:00',
    ]);
  });

  test('standard-webhooks: the times of the specification', () => {
    expect(timesOf('standard-webhooks')).toEqual([
      '00:00:00',
      '00:00:05',
      '00:05:05',
      '00:35:05',
      '02:35:05',
      '07:35:05',
      '17:35:05',
      '31:35:05',
      '51:35:05',
      '75:35:05',
    ]);
  });

  test('stripe: the reported times, up to three days', () => {
    expect(timesOf('stripe')).toEqual([
      '00:00:00',
      '00:05:00',
      '00:30:00',
      '02:00:00',
      '04:00:00',
      '08:00:00',
      '16:00:00',
      '40:00:00',
      '64:00:00',
      '72:00:00',
    ]);
  });

  test('are listed by name', () => {
    expect(schedulePresetNames).toEqual(['stripe', 'alipay', 'wechat-pay', 'standard-webhooks']);
  });
});

describe('a Retry-After', () => {
  test('postpones the attempt, and a shorter one does not bring it forward', () => {
    const lastEndedAt = FIRST + 2 * SECOND;
    const at = (retryAfterMs: Millis) => nextAttemptAt(threeDays, ended({ lastEndedAt, retryAfterMs }), middle);
    expect(at(HOUR)).toBe(lastEndedAt + HOUR);
    expect(at(SECOND)).toBe(lastEndedAt + 10 * SECOND);
  });

  test('beyond the end postpones the attempt to the end, where it is the last one', () => {
    const end = FIRST + 3 * DAY;
    expect(nextAttemptAt(threeDays, ended({ retryAfterMs: 365 * DAY }), middle)).toBe(end);
    const atEnd = ended({ attempts: 2, lastEndedAt: end + SECOND, retryAfterMs: 365 * DAY });
    expect(nextAttemptAt(threeDays, atEnd, middle)).toBeUndefined();
  });

  test('makes no attempt where the schedule is used up', () => {
    const late = ended({ attempts: 20, lastEndedAt: FIRST + 3 * DAY - HOUR, retryAfterMs: MINUTE });
    expect(nextAttemptAt(threeDays, late, middle)).toBeUndefined();
    const schedule = makeTableSchedule([MINUTE]);
    expect(nextAttemptAt(schedule, ended({ attempts: 2, retryAfterMs: MINUTE }), middle)).toBeUndefined();
  });

  test('is bounded by the length of a table, without moving a delay of it forward', () => {
    const schedule = makeTableSchedule([MINUTE, HOUR]);
    expect(nextAttemptAt(schedule, ended({ retryAfterMs: DAY }), middle)).toBe(FIRST + HOUR + MINUTE);
    const lastEndedAt = FIRST + 2 * HOUR;
    expect(nextAttemptAt(schedule, ended({ attempts: 2, lastEndedAt, retryAfterMs: DAY }), middle)).toBe(
      lastEndedAt + HOUR,
    );
  });
});

test('a process that was down for days makes the attempt that was due, and no other', () => {
  const lastEndedAt = FIRST + 5 * DAY;
  expect(nextAttemptAt(threeDays, ended({ attempts: 2, lastEndedAt }), middle)).toBeUndefined();
});
