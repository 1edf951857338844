import { describe, expect, test } from 'vitest';
import { fairLevel } from '../../../src/core/overload/fair-level.ts';
import { FairShedding } from '../../../src/core/overload/fair-shedding.ts';
import type { Millis, PerSecond } from '../../../src/core/scalars.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';

describe('the fair level', () => {
  test.each([
    { amounts: [100, 10, 10], available: 60, level: 40 },
    { amounts: [100, 10, 10], available: 30, level: 10 },
    { amounts: [100, 10, 10], available: 15, level: 5 },
    { amounts: [7], available: 3, level: 3 },
    { amounts: [4, 4, 0], available: 8, level: 4 },
    { amounts: [4, 4], available: 0, level: 0 },
    { amounts: [4, 4], available: 9, level: Number.POSITIVE_INFINITY },
    { amounts: [], available: 0, level: Number.POSITIVE_INFINITY },
  ])('of $amounts is $level if $available is available', ({ amounts, available, level }) => {
    expect(fairLevel(amounts, available)).toBeCloseTo(level, 10);
  });

  test('divides exactly what is available', () => {
    const random = seededRandom(1);
    for (let i = 0; i < 200; i += 1) {
      const amounts = Array.from({ length: 1 + Math.floor(50 * random()) }, () => Math.floor(100 * random() ** 4));
      const available = random() * amounts.reduce((sum, each) => sum + each, 0);
      const level = fairLevel(amounts, available);
      expect(amounts.reduce((sum, each) => sum + Math.min(each, level), 0)).toBeCloseTo(available, 6);
    }
  });
});

interface Traffic {
  /** Poisson arrivals of each address. */
  readonly rates: Readonly<Record<string, PerSecond>>;
  readonly shedShare: number;
  readonly seconds?: number;
}

/** The mean probability of being shed, of each address and of all requests, after two seconds to begin with. */
function run({ rates, shedShare, seconds = 10 }: Traffic): { byAddress: Record<string, number>; total: number } {
  const random = seededRandom(7);
  const shedding = new FairShedding();
  const addresses = Object.keys(rates);
  const total = Object.values(rates).reduce((sum, rate) => sum + rate, 0);
  const sums = new Map(addresses.map((address) => [address, { count: 0, shed: 0 }]));
  for (let now = 0; now < 1000 * (seconds + 2); ) {
    now += (-Math.log(1 - random()) * 1000) / total;
    let mark = random() * total;
    const address = addresses.find((each) => (mark -= rates[each] ?? 0) < 0) ?? '';
    const probability = shedding.onArrival(address, shedShare, now);
    const sum = sums.get(address);
    if (sum === undefined || now < 2000) continue;
    sum.count += 1;
    sum.shed += probability;
  }
  const all = [...sums.values()];
  return {
    byAddress: Object.fromEntries(Array.from(sums, ([address, { count, shed }]) => [address, shed / count])),
    total: all.reduce((sum, { shed }) => sum + shed, 0) / all.reduce((sum, { count }) => sum + count, 0),
  };
}

const many = (count: number, rate: PerSecond): Record<string, PerSecond> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`10.0.0.${i}`, rate]));

describe('the requests to shed', () => {
  test.each([0.2, 0.5, 0.8, 0.95])('are those of a flooding address, at a share of %s', (shedShare) => {
    const { byAddress, total } = run({ rates: { flood: 2000, ...many(3, 10) }, shedShare });
    expect(byAddress).toMatchObject({ '10.0.0.0': 0, '10.0.0.1': 0, '10.0.0.2': 0 });
    expect(total).toBeCloseTo(shedShare, 2);
  });

  test.each([0.2, 0.5, 0.95, 1])('are a share of %s of an address that is alone, as of all requests', (shedShare) => {
    const shedding = new FairShedding();
    for (let now: Millis = 0; now < 5000; now += 1 + (now % 3)) {
      expect(shedding.onArrival('10.0.0.1', shedShare, now)).toBeCloseTo(shedShare, 10);
    }
  });

  test.each([
    { count: 3, rate: 300 },
    { count: 100, rate: 20 },
    { count: 2000, rate: 0.5 },
  ])('are of all addresses alike, if $count send $rate a second each', ({ count, rate }) => {
    const { byAddress, total } = run({ rates: many(count, rate), shedShare: 0.5 });
    expect(total).toBeCloseTo(0.5, 1);
    if (count === 3) for (const share of Object.values(byAddress)) expect(share).toBeCloseTo(0.5, 1);
  });

  test('are of modest addresses too, if those above the level are not enough', () => {
    const { byAddress, total } = run({ rates: { flood: 400, ...many(4, 100) }, shedShare: 0.75 });
    expect(total).toBeCloseTo(0.75, 2);
    // 200 a second for five addresses: 40 for each.
    expect(byAddress['flood']).toBeCloseTo(0.9, 1);
    expect(byAddress['10.0.0.0']).toBeCloseTo(0.6, 1);
  });

  test('are all, at a share of 1', () => {
    expect(run({ rates: { flood: 100, ...many(3, 10) }, shedShare: 1, seconds: 3 })).toEqual({
      byAddress: { flood: 1, '10.0.0.0': 1, '10.0.0.1': 1, '10.0.0.2': 1 },
      total: 1,
    });
  });

  test('are not those of an address that has stopped flooding, a second later', () => {
    const shedding = new FairShedding();
    for (let i = 0; i < 1000; i += 1) shedding.onArrival('stopped', 0.5, i);
    expect(shedding.onArrival('stopped', 0.5, 1000)).toBeCloseTo(0.5, 10);
    for (let i = 0; i < 100; i += 1) shedding.onArrival('busy', 0.5, 2000 + i);
    expect(shedding.onArrival('stopped', 0.5, 2100)).toBe(0);
    expect(shedding.onArrival('busy', 0.5, 2100)).toBeGreaterThan(0.4);
  });

  test('change with the share at the next arrival', () => {
    const shedding = new FairShedding();
    for (let i = 0; i < 900; i += 1) shedding.onArrival(i % 9 === 0 ? 'calm' : 'busy', 0.2, i);
    expect(shedding.onArrival('calm', 0.2, 900)).toBe(0);
    expect(shedding.onArrival('calm', 1, 900)).toBe(1);
    expect(shedding.onArrival('calm', 0.2, 900)).toBe(0);
  });
});

test('counts a bounded number of arrivals, whatever the number of addresses, and forgets them', () => {
  const shedding = new FairShedding();
  for (let i = 0; i < 50_000; i += 1) shedding.onArrival(`address-${i}`, 0.5, 1000 + i / 1000);
  expect(shedding.size).toBe(2048);
  shedding.onArrival('late', 0.5, 5000);
  expect(shedding.size).toBe(1);
});
