/** Tickets of an upstream in observe mode. */
import { expect, test } from 'vitest';
import { limitedTo } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

/** One request each second, and no queue. */
const open = () => new World({ upstream: { ...limitedTo(1), queue: { maxWait: 0, maxDepth: 10 } }, random: () => 0.5 });

test('observed requests are admitted, with the decision that enforcing would have made', () => {
  const world = open();
  const decisions = [1, 2].map(() => world.arrive({ client: 'watched', mode: 'observe' }).admission);
  expect(decisions).toEqual([
    { kind: 'admitted', wouldHave: { decision: 'passed', why: undefined } },
    { kind: 'admitted', wouldHave: { decision: 'refused', why: 'over_share' } },
  ]);
});
