/** An account's limit whose rejections name no limit, with nested limits of endpoints. */
import { expect, test } from 'vitest';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { Hints } from '../../../src/core/hints/hints.ts';
import { response, SEND_ONCE, SHARED } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const NESTED: LimitRef = { upstream: 'up', nested: 'endpoint', scope: 'upstream', key: '' };

/** Half of all requests are rejected. One client matches no nested limit. Returns the rate of the account's limit then. */
function learnRate(hints: Partial<Hints>): number {
  let count = 0;
  const world: World = new World({
    seed: 3,
    upstream: {
      rate: { initialRate: 100, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 },
      nested: [
        {
          name: 'endpoint',
          scope: 'upstream',
          isKeyed: false,
          rate: { initialRate: 1000, maxRate: Number.POSITIVE_INFINITY, minRate: 500, cooldown: 1000 },
        },
      ],
    },
    respond: ({ client }) => {
      count += 1;
      return { outcome: count % 2 === 0 ? response(200) : response(429, client === 'outside' ? {} : hints), after: 10 };
    },
  });
  const end = 20_000;
  const ask = (client: string, refs: readonly LimitRef[], perSecond: number): void => {
    for (let at = 0; at < end; at += 1000 / perSecond) {
      world.at(at, () => void world.call({ client, refs, policy: { retry: SEND_ONCE } }));
    }
  };
  ask('outside', [SHARED], 20);
  for (let i = 0; i < 7; i += 1) ask(`inside-${i}`, [SHARED, NESTED], 3);
  world.runUntil(end);
  return world.limit.meter.rate(end);
}

test('that name no limit show that not only the requests outside the nested limits are rejected', () => {
  expect(learnRate({})).toBeLessThan(40);
});

test('that name the nested limit say nothing about the account', () => {
  expect(learnRate({ limit: 'endpoint' })).toBeGreaterThan(60);
});
