import { describe, expect, test } from 'vitest';
import { ClientTimeouts } from '../../../src/core/exchange/client-timeouts.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';

const APP = { upstream: 'orders', client: 'app' };
const MINUTES = 60_000;

/** Abandons requests at these ages, in a row. Returns what each showed. */
function abandon(timeouts: ClientTimeouts, ages: readonly number[], client = APP, from = 0): boolean[] {
  return ages.map((age, i) => timeouts.onAbandoned(client, age, from + i));
}

describe('the timeouts of clients', () => {
  test('are shown by the third request in a row that is abandoned at the same age', () => {
    const timeouts = new ClientTimeouts();
    expect(abandon(timeouts, [1000, 1010])).toEqual([false, false]);
    expect(timeouts.timeoutOf(APP, 2)).toBe(Number.POSITIVE_INFINITY);
    expect(abandon(timeouts, [990, 1005], APP, 2)).toEqual([true, true]);
    expect(timeouts.timeoutOf(APP, 4)).toBeCloseTo(1000, -1);
  });

  test('are not shown by ages that differ by more than 5 %', () => {
    const timeouts = new ClientTimeouts();
    expect(abandon(timeouts, [1000, 1060, 1000, 940, 1000, 1060])).not.toContain(true);
  });

  test('may differ by a few milliseconds if they are short', () => {
    expect(abandon(new ClientTimeouts(), [20, 22, 21])).toEqual([false, false, true]);
    expect(abandon(new ClientTimeouts(), [20, 24, 20])).toEqual([false, false, false]);
  });

  test('are not shown if a request in between is answered at that age or later', () => {
    const timeouts = new ClientTimeouts();
    for (const answeredAt of [1500, 1000, 960]) {
      abandon(timeouts, [1000, 1000]);
      timeouts.onAnswered(APP, answeredAt);
    }
    expect(abandon(timeouts, [1000, 1000])).toEqual([false, false]);
    timeouts.onAnswered(APP, 100);
    expect(abandon(timeouts, [1000])).toEqual([true]);
  });

  test('are forgotten once a request is answered later, and then need twice as many requests', () => {
    const timeouts = new ClientTimeouts();
    abandon(timeouts, [1000, 1000, 1000]);
    timeouts.onAnswered(APP, 1040);
    expect(timeouts.timeoutOf(APP, 3)).toBe(1000);
    timeouts.onAnswered(APP, 1100);
    expect(timeouts.timeoutOf(APP, 3)).toBe(Number.POSITIVE_INFINITY);
    expect(abandon(timeouts, [1000, 1000, 1000, 1000, 1000, 1000])).toEqual([false, false, false, false, false, true]);
  });

  test('are forgotten once a request is abandoned later', () => {
    const timeouts = new ClientTimeouts();
    abandon(timeouts, [1000, 1000, 1000, 5000]);
    expect(timeouts.timeoutOf(APP, 4)).toBe(Number.POSITIVE_INFINITY);
  });

  test('stay known while other requests are abandoned earlier, and change once those agree', () => {
    const timeouts = new ClientTimeouts();
    abandon(timeouts, [1000, 1000, 1000, 300, 700, 500]);
    expect(timeouts.timeoutOf(APP, 6)).toBe(1000);
    abandon(timeouts, [500, 500]);
    expect(timeouts.timeoutOf(APP, 8)).toBe(500);
  });

  test('follow a timeout that drifts', () => {
    const timeouts = new ClientTimeouts();
    abandon(timeouts, [1000, 1000, 1000, 1040, 1040, 1040, 1040, 1040, 1040, 1040, 1080]);
    expect(timeouts.timeoutOf(APP, 11)).toBeGreaterThan(1035);
  });

  test('are forgotten after ten minutes without a request that shows them', () => {
    const timeouts = new ClientTimeouts();
    abandon(timeouts, [1000, 1000, 1000]);
    timeouts.onAbandoned(APP, 1000, 9 * MINUTES);
    timeouts.onAbandoned(APP, 400, 18 * MINUTES);
    expect(timeouts.timeoutOf(APP, 18 * MINUTES)).toBe(1000);
    expect(timeouts.timeoutOf(APP, 19 * MINUTES + 1)).toBe(Number.POSITIVE_INFINITY);
    expect(timeouts.onAbandoned(APP, 1000, 20 * MINUTES)).toBe(false);
  });

  test('concern one client of one upstream', () => {
    const timeouts = new ClientTimeouts();
    abandon(timeouts, [1000, 1000, 1000]);
    expect(timeouts.timeoutOf({ ...APP, client: 'other' }, 3)).toBe(Number.POSITIVE_INFINITY);
    expect(timeouts.timeoutOf({ ...APP, upstream: 'search' }, 3)).toBe(Number.POSITIVE_INFINITY);
    timeouts.onAnswered({ ...APP, client: 'other' }, 9000);
    expect(timeouts.timeoutOf(APP, 3)).toBe(1000);
  });

  test('are kept for the ten thousand clients that abandoned a request last', () => {
    const timeouts = new ClientTimeouts();
    abandon(timeouts, [1000, 1000, 1000]);
    const others = Array.from({ length: 10_000 }, (_, i) => ({ ...APP, client: `other ${i}` }));
    for (const client of others.slice(1)) abandon(timeouts, [1000, 1000, 1000], client);
    expect(timeouts.timeoutOf(APP, 3)).toBe(1000);
    abandon(timeouts, [1000, 1000, 1000], others[0]);
    expect(timeouts.timeoutOf(APP, 3)).toBe(Number.POSITIVE_INFINITY);
    expect(timeouts.timeoutOf(others[1] ?? APP, 3)).toBe(1000);
  });

  test('are hardly ever shown by users who leave at random, while others are answered', () => {
    const timeouts = new ClientTimeouts();
    const random = seededRandom(7);
    let shown = 0;
    let boundedRequests = 0;
    for (let i = 0; i < 20_000; i += 1) {
      if (timeouts.timeoutOf(APP, i) < Number.POSITIVE_INFINITY) boundedRequests += 1;
      const latency = 100 * (0.5 + random());
      if (random() >= 0.3) timeouts.onAnswered(APP, latency);
      else if (timeouts.onAbandoned(APP, random() * latency, i)) shown += 1;
    }
    expect(shown).toBeLessThan(10);
    expect(boundedRequests).toBeLessThan(200);
  });

  test('are not shown by the slower of two hedged requests, whose client has the answer of the other', () => {
    const timeouts = new ClientTimeouts();
    let shown = 0;
    for (let i = 0; i < 1000; i += 1) {
      timeouts.onAnswered(APP, 50);
      if (timeouts.onAbandoned(APP, 50, i)) shown += 1;
    }
    expect(shown).toBe(0);
  });
});
