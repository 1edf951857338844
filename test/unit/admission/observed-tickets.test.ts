/** Tickets of observed routes beside tickets that are enforced, at one limit. */
import { expect, test } from 'vitest';
import type { QueuedTicket } from '../../support/core/call-record.ts';
import { limitedTo } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

/** One request each second, and no queue. */
const open = () => new World({ upstream: { ...limitedTo(1), queue: { maxWait: 0, maxDepth: 10 } }, random: () => 0.5 });

const retryAfterOf = ({ admission }: QueuedTicket) =>
  admission?.kind === 'refused' ? admission.retryAfterMs : undefined;

test('observed requests are admitted, with the decision that enforcing would have made', () => {
  const world = open();
  const decisions = [1, 2].map(() => world.arrive({ client: 'watched', mode: 'observe' }).admission);
  expect(decisions).toEqual([
    { kind: 'admitted', wouldHave: { decision: 'passed', why: undefined } },
    { kind: 'admitted', wouldHave: { decision: 'refused', why: 'over_share' } },
  ]);
});

test('refusals that were only observed do not postpone the Retry-After of clients that are refused', () => {
  const [calm, watched] = [open(), open()];
  for (const world of [calm, watched]) world.send(world.arrive({ client: 'first' }));
  for (let i = 0; i < 50; i += 1) watched.arrive({ client: `watched ${i}`, mode: 'observe' });
  expect(retryAfterOf(calm.arrive({ client: 'enforced' }))).toBe(2000);
  expect(retryAfterOf(watched.arrive({ client: 'enforced' }))).toBe(2000);
});
