import { expect, test } from 'vitest';
import type { UpstreamRates } from '../../../src/admin/operations/process-api.ts';
import { RateHistory } from '../../../src/admin/operations/rate-history.ts';

function rates(sent: number, change: Partial<UpstreamRates> = {}): UpstreamRates {
  return { name: 'payments', sent, throttled: 0, failed: 0, failure: undefined, rate: 50, ceiling: 60, ...change };
}

/** Samples `count` seconds of traffic at `perSecond`, from a full minute on. */
function busy(count: number, perSecond: number): RateHistory {
  const history = new RateHistory();
  for (let i = 0; i <= count; i += 1) history.record(new Map([[0, [rates(i * perSecond)]]]), 600_000 + i * 1000);
  return history;
}

test('keeps a sample for each second', () => {
  const samples = busy(3, 7).samples().get('payments') ?? [];
  expect(samples).toEqual(
    [1, 2, 3].map((second) => ({
      at: 600_000 + second * 1000,
      seconds: 1,
      rate: 50,
      ceiling: 60,
      sentPerSecond: 7,
      throttledPerSecond: 0,
      failedPerSecond: 0,
    })),
  );
});

test('keeps five minutes in seconds and the rest of an hour in minutes, however long it runs', () => {
  const samples =
    busy(3 * 3600, 7)
      .samples()
      .get('payments') ?? [];
  const seconds = samples.filter((sample) => sample.seconds === 1);
  const minutes = samples.filter((sample) => sample.seconds === 60);
  expect([seconds.length, minutes.length]).toEqual([300, samples.length - 300]);
  expect(minutes.length).toBeGreaterThanOrEqual(54);
  expect(minutes.length).toBeLessThanOrEqual(60);
  expect(new Set(samples.map(({ sentPerSecond }) => sentPerSecond))).toEqual(new Set([7]));
  const times = samples.map(({ at }) => at);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
});

test('sums the processes, and counts a process that starts or ends neither twice nor below zero', () => {
  const history = new RateHistory();
  history.record(
    new Map([
      [0, []],
      [1, [rates(100)]],
      [2, [rates(500, { rate: undefined })]],
    ]),
    1000,
  );
  history.record(
    new Map([
      [0, []],
      [2, [rates(504, { rate: undefined })]],
      [1, [rates(103)]],
    ]),
    2000,
  );
  history.removeProcess(2);
  history.record(
    new Map([
      [0, []],
      [1, [rates(105)]],
      [3, [rates(1)]],
    ]),
    3000,
  );
  const samples = history.samples().get('payments') ?? [];
  expect(samples.map(({ sentPerSecond, rate }) => [sentPerSecond, rate])).toEqual([
    [7, 50],
    [3, 50],
  ]);
});

test('drops an upstream that a reload has removed, and adds no samples for a clock that was set back', () => {
  const history = busy(3, 7);
  history.record(new Map([[0, [rates(100)]]]), 1000);
  expect(history.samples().get('payments')).toHaveLength(3);
  history.record(new Map([[0, [rates(1, { name: 'ledger' })]]]), 2000);
  expect([...history.samples().keys()]).toEqual(['ledger']);
});

test('sums the failed attempts of the processes, also in the samples of minutes', () => {
  const history = new RateHistory();
  for (let second = 0; second <= 600; second += 1) {
    const failed = [0, 1].map((process) => [process, [rates(second * 5, { failed: second * 2 })]] as const);
    history.record(new Map(failed), 600_000 + second * 1000);
  }
  const samples = history.samples().get('payments') ?? [];
  expect(samples.some(({ seconds }) => seconds === 60)).toBe(true);
  expect(new Set(samples.map(({ failedPerSecond }) => failedPerSecond))).toEqual(new Set([4]));
});
