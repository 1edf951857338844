import { expect, test } from 'vitest';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { LiveRateSettings } from '../../../src/store/upstream-state.ts';

function meterOf(settings: Partial<LiveRateSettings> = {}) {
  const live: LiveRateSettings = {
    initialRate: undefined,
    maxRate: Infinity,
    minRate: 0.1,
    cooldown: 1000,
    ...settings,
  };
  const meter = new LocalMeter(live, () => 0.5);
  const at = (now: number) => {
    meter.advance(now, false);
    return meter.rate(now);
  };
  return { live, meter, at };
}

test('a bound that is added, changed or removed applies at once while no limit is met', () => {
  const { live, meter, at } = meterOf();
  expect(at(0)).toBe(Infinity);
  live.maxRate = 100;
  expect(at(1)).toBe(100);
  live.maxRate = 300;
  expect(at(2)).toBe(300);
  live.maxRate = Infinity;
  expect(at(3)).toBe(Infinity);
  expect(meter.phase).toBe('open');
});

test('a limit that was met keeps its rate, within its bounds', () => {
  const { live, meter, at } = meterOf();
  meter.resume(50, 60, 0);
  live.maxRate = 200;
  expect(at(1)).toBe(50);
  live.maxRate = 20;
  expect(at(2)).toBe(20);
  expect(meter.ceiling).toBe(20);
  live.maxRate = 200;
  expect(at(3)).toBe(20); // and grows from there
  live.minRate = 30;
  expect(at(4)).toBe(30);
  expect(meter.phase).toBe('cooldown');
});

test('a newly configured limit applies if none was met, and changes nothing if one was', () => {
  const open = meterOf();
  open.live.initialRate = 40;
  expect(open.at(1)).toBe(40);
  expect(open.meter.phase).toBe('restoring');
  const limited = meterOf();
  limited.meter.resume(50, 60, 0);
  limited.live.initialRate = 40;
  expect(limited.at(1)).toBe(50);
});

test('concurrency places that were configured before apply at once', () => {
  const { meter } = meterOf();
  meter.resume(50, 60, 0, 2);
  expect(meter.concurrencyLimit).toBe(2);
  for (let i = 0; i < 2; i += 1) {
    meter.take(1000 * i, 1000 * i);
    meter.release();
    meter.onSent(1000 * i);
  }
  expect(meter.delay(5000)).toBe(Infinity);
  meter.onEnded(5000);
  expect(meter.delay(5000)).toBe(0);
});
