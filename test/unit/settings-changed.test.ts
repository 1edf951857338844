import { expect, test } from 'vitest';
import { LocalMeter } from '../../src/core/limits/meter.ts';
import type { LiveRate } from '../../src/store/upstream-state.ts';

function meterOf(settings: Partial<LiveRate> = {}) {
  const live: LiveRate = { initialRate: undefined, maxRate: Infinity, minRate: 0.1, cooldown: 1000, ...settings };
  const meter = new LocalMeter(live, () => 0.5);
  const at = (now: number) => {
    meter.advance(now, false);
    return meter.rate(now);
  };
  return { live, meter, at };
}

test('a bound that comes, moves and goes holds at once while no limit is felt', () => {
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

test('a limit that was felt stays where it was, within its bounds', () => {
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

test('a limit that is known now is used where none was felt, and changes nothing where one was', () => {
  const open = meterOf();
  open.live.initialRate = 40;
  expect(open.at(1)).toBe(40);
  expect(open.meter.phase).toBe('restoring');
  const felt = meterOf();
  felt.meter.resume(50, 60, 0);
  felt.live.initialRate = 40;
  expect(felt.at(1)).toBe(50);
});

test('places in flight that were known before are the limit at once', () => {
  const { meter } = meterOf();
  meter.resume(50, 60, 0, 2);
  expect(meter.places).toBe(2);
  for (let i = 0; i < 2; i += 1) {
    meter.take(1000 * i, 1000 * i);
    meter.giveBack();
    meter.sent(1000 * i);
  }
  expect(meter.delay(5000)).toBe(Infinity);
  meter.ended();
  expect(meter.delay(5000)).toBe(0);
});
