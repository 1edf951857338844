import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findEquilibria } from '../../src/laboratory/aloha/equilibria.ts';
import type { AlohaChannel } from '../../src/laboratory/aloha/lam-chain.ts';
import { slotProbabilities, solveLamChain } from '../../src/laboratory/aloha/lam-chain.ts';

/** Channels in which every state can be left in both directions. */
const channels = fc
  .record({
    users: fc.integer({ min: 2, max: 9 }),
    spread: fc.integer({ min: 2, max: 50 }),
    part: fc.double({ min: 0.01, max: 0.9, noNaN: true }),
  })
  .map(({ users, spread, part }): AlohaChannel => ({ users, spread, load: users * part }));

function binomial(n: number, k: number, p: number): number {
  let ways = 1;
  for (let i = 0; i < k; i += 1) ways = (ways * (n - i)) / (i + 1);
  return ways * p ** k * (1 - p) ** (n - k);
}

/** One step of the chain from its definition: new packets, resent packets, and a success if exactly one is sent. */
function step(distribution: readonly number[], channel: AlohaChannel): number[] {
  const { users } = channel;
  const { arrival, retry } = slotProbabilities(channel);
  const next = distribution.map(() => 0);
  for (const [n, here] of distribution.entries()) {
    for (let begun = 0; begun <= users - n; begun += 1) {
      for (let again = 0; again <= n; again += 1) {
        const chance = here * binomial(users - n, begun, arrival) * binomial(n, again, retry);
        const isAlone = begun + again === 1;
        const to = isAlone ? n - again : n + begun;
        next[to] = (next[to] ?? 0) + chance;
      }
    }
  }
  return next;
}

test('a stationary distribution is unchanged by one more slot', () => {
  fc.assert(
    fc.property(channels, (channel) => {
      const distribution = [...solveLamChain(channel).distribution];
      const after = step(distribution, channel);
      for (const [n, chance] of distribution.entries()) expect(after[n]).toBeCloseTo(chance, 10);
    }),
  );
});

test("throughput equals arrivals in equilibrium, and Little's law holds", () => {
  fc.assert(
    fc.property(channels, (channel) => {
      const { throughput, backlog, delay } = solveLamChain(channel);
      expect(((channel.users - backlog) * channel.load) / channel.users).toBeCloseTo(throughput, 9);
      expect((delay - 1) * throughput).toBeCloseTo(backlog, 9);
    }),
  );
});

test('equilibria are stable and unstable in turn, and the first and the last are stable', () => {
  fc.assert(
    fc.property(channels, (channel) => {
      const equilibria = findEquilibria(channel);
      expect(equilibria.length % 2).toBe(1);
      for (const [index, { stable, backlog }] of equilibria.entries()) {
        expect(stable).toBe(index % 2 === 0);
        expect(backlog).toBeGreaterThanOrEqual(0);
        expect(backlog).toBeLessThanOrEqual(channel.users);
      }
    }),
  );
});
