import { expect, test } from 'vitest';
import { toRequestTotals } from '../../../src/admin/operations/admin-rows.ts';
import { CounterRates } from '../../../src/admin/operations/counter-rates.ts';
import { ZERO_REQUEST_COUNTS } from '../../../src/telemetry/metrics/request-counts.ts';

/** The rate of 5xx responses in each second, for this many of them in each second. */
function ratesOf(perSecond: readonly number[]): number[] {
  const rates = new CounterRates();
  rates.record(ZERO_REQUEST_COUNTS, 0);
  let serverErrors = 0;
  return perSecond.map((count, second) => {
    serverErrors += count;
    const counts = { ...ZERO_REQUEST_COUNTS, serverErrors };
    const at = (second + 1) * 1000;
    const { failedPerSecond } = toRequestTotals(rates.window(counts, at));
    rates.record(counts, at);
    return failedPerSecond;
  });
}

test('the rate of 5xx responses covers ten seconds, so that it stays above zero during an outage', () => {
  const outage = Array.from({ length: 40 }, (_, second) => (second % 2 === 0 ? 3 : 0));
  const settled = ratesOf(outage).slice(10);
  expect(Math.min(...settled)).toBeGreaterThan(1);
  expect(Math.max(...settled)).toBeLessThan(2);
});

test('the rate of 5xx responses is zero ten seconds after the last of them', () => {
  const rates = ratesOf([5, ...Array.from({ length: 12 }, () => 0)]);
  expect(rates[0]).toBe(5);
  expect(rates.at(-1)).toBe(0);
});
