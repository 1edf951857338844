/** Members of one limit whose clients return at the time that their Retry-After names. */
import { describe, expect, test } from 'vitest';
import { runPoliteClients } from '../../support/core/polite-clients.ts';

const RATE = 5;
const MEASURED = { from: 40_000, until: 120_000 };

describe.each(['workers', 'replicas'] as const)('%s', (sharing) => {
  test.each([
    { clients: [15, 15], startAt: [0, 0] },
    { clients: [15, 15], startAt: [0, 4000] },
    { clients: [45, 15], startAt: [0, 0] },
    { clients: [15, 45], startAt: [0, 4000] },
    { clients: [15, 15, 15], startAt: [0, 2000, 4000] },
  ])('serve all clients at the same rate: $clients clients, which begin after $startAt ms', ({ clients, startAt }) => {
    const fairInterval = clients.reduce((sum, count) => sum + count, 0) / RATE;
    for (const seed of [1, 2, 3]) {
      const results = runPoliteClients({ sharing, rate: RATE, clients, startAt, ...MEASURED, seed });
      for (const [member, { served, retryAfters }] of results.entries()) {
        const interval = ((MEASURED.until - MEASURED.from) / 1000 / served) * (clients[member] ?? 0);
        expect(interval / fairInterval).toBeGreaterThan(0.9);
        expect(interval / fairInterval).toBeLessThan(1.1);
        expect(Math.max(...retryAfters)).toBeLessThanOrEqual(Math.ceil(1.2 * fairInterval));
      }
    }
  });

  test('reserve no share of the rate for clients that never return', () => {
    const [crowded, other] = runPoliteClients({
      sharing,
      rate: 20,
      clients: [30, 30],
      startAt: [0, 0],
      from: 30_000,
      until: 40_000,
      seed: 1,
      oneShot: { count: 1000, at: 30_000 },
    });
    expect(other?.served).toBeGreaterThan(95);
    expect((crowded?.served ?? 0) + (other?.served ?? 0)).toBeGreaterThan(190);
  });

  test('reserve little of the rate for clients that return once and then never again', () => {
    const [, other] = runPoliteClients({
      sharing,
      rate: 20,
      clients: [30, 30],
      startAt: [0, 0],
      from: 36_000,
      until: 46_000,
      seed: 1,
      oneShot: { count: 1000, at: 30_000, asks: 2 },
    });
    expect(other?.served).toBeGreaterThan(80);
  });
});
