/** What the client of a refused request is told, where the upstream has refused it and says no time. */
import { describe, expect, test } from 'vitest';
import type { Millis, Outcome } from '../../src/core/exchange/attempt-outcome.ts';
import type { Respond, Story } from '../support/policy.ts';
import { response, SEND_ONCE, World } from '../support/policy.ts';

const ONCE = { plan: { retry: SEND_ONCE } };

function bare(status: number, impliedWait: Millis = 0, hints: Parameters<typeof response>[1] = {}): Outcome {
  return { ...response(status, hints), impliedWait } as Outcome;
}

/** All are sent at once, and refused together. */
const refuse =
  (outcome: Outcome): Respond =>
  () => ({ outcome, after: 100 });

function toldOf({ verdict }: Story): Millis | undefined {
  return verdict?.kind === 'forward' ? verdict.retryAfter : undefined;
}

describe('the time that a bare refusal is given', () => {
  test('is a place of its own for each, at the rate that is left', () => {
    const world = new World({ respond: refuse(bare(429)), random: () => 0.5 });
    const stories = Array.from({ length: 20 }, (_, i) => world.call({ client: `c${i}`, ...ONCE }));
    world.runUntil(100);
    const times = stories.map(toldOf).filter((told) => told !== undefined);
    expect(times).toHaveLength(20);
    expect(times.slice(1).every((told, i) => told > (times[i] ?? 0))).toBe(true);
  });

  test('finds each client a place in the queue when it comes back at that time', () => {
    const refused = new Set<string>();
    const respond: Respond = ({ client }) => {
      const isFirst = !refused.has(client);
      refused.add(client);
      return { outcome: isFirst ? bare(429) : response(200), after: 50 };
    };
    const world = new World({ respond, upstream: { queue: { maxWait: 0, maxDepth: 1000 } }, random: () => 0.5 });
    const again: Story[] = [];
    for (let i = 0; i < 20; i += 1) {
      const onVerdict = (story: Story): void => {
        const seconds = Math.max(1, Math.round((toldOf(story) ?? 0) / 1000));
        world.at(world.now + 1000 * seconds, () => void again.push(world.call({ client: `c${i}`, ...ONCE })));
      };
      world.call({ client: `c${i}`, ...ONCE, onVerdict });
    }
    world.runUntil(60_000);
    expect(again.map(({ verdict }) => verdict?.kind)).toEqual(Array.from({ length: 20 }, () => 'forward'));
  });

  test('is not earlier than what the upstream asks for, in whole seconds, and moves nobody else', () => {
    let n = 0;
    const respond: Respond = () => ({ outcome: (n += 1) === 1 ? bare(429, 20_400) : bare(429), after: 10 });
    const world = new World({ respond, random: () => 0.5 });
    const [first, second] = ['a', 'b'].map((client) => world.call({ client, ...ONCE }));
    world.runUntil(10);
    expect(toldOf(first!)).toBe(21_000);
    expect(toldOf(second!)).toBeLessThan(5000);
  });

  test('is the end of the hold, where the upstream holds the client by another field', () => {
    const world = new World({ respond: refuse(bare(429, 2500, { retryAfter: 2500 })), random: () => 0.5 });
    const story = world.call(ONCE);
    world.runUntil(100);
    expect(toldOf(story)).toBe(3000);
    expect(world.arrive().told).toMatchObject({ kind: 'refused', why: 'held' });
    world.runUntil(3100);
    expect(world.arrive().told).not.toMatchObject({ kind: 'refused' });
  });

  test('is no earlier than they ask for, once the refusals have blocked the upstream', () => {
    const world = new World({ respond: refuse(bare(503, 4000, { retryAfter: 4000 })), random: () => 0.5 });
    const stories = Array.from({ length: 20 }, (_, i) => world.call({ client: `c${i}`, ...ONCE }));
    world.runUntil(100);
    const [limit] = world.gate.view(world.now).limits;
    expect(limit?.state).toBe('blocked');
    expect(toldOf(stories.at(-1)!)).toBeGreaterThanOrEqual(4000);
  });

  test('cuts nobody’s allowance: the gate had let the requests pass', () => {
    const world = new World({ respond: refuse(bare(429)), random: () => 0.5 });
    for (let i = 0; i < 100; i += 1) world.call({ client: i % 10 === 0 ? 'other' : 'flood', ...ONCE });
    world.runUntil(100);
    expect(world.events.filter(({ type }) => type === 'throttled')).toHaveLength(100);
    expect(world.events.filter(({ type }) => type === 'client-cut')).toEqual([]);
  });

  test('is none where we only observe, where the answer has one, and where it needs none', () => {
    const observed = new World({ respond: refuse(bare(429)), mode: 'observe' });
    const story = observed.call(ONCE);
    observed.runUntil(100);
    expect(story.verdict).not.toHaveProperty('retryAfter');
    for (const outcome of [response(429), response(200), response(503)]) {
      const world = new World({ respond: refuse(outcome) });
      const other = world.call(ONCE);
      world.runUntil(100);
      expect(other.verdict).not.toHaveProperty('retryAfter');
    }
  });
});
