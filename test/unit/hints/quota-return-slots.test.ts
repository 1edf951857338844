/** Return slots that were reserved while a spent quota stopped all requests. */
import { describe, expect, test } from 'vitest';
import type { Millis } from '../../../src/core/scalars.ts';
import type { Quota } from '../../../src/core/hints/hints.ts';
import type { Arrival, QueuedTicket } from '../../support/core/call-record.ts';
import { limitedTo, response } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const SPENT: Quota = { remaining: 0, limit: 10, resetIn: 60_000, window: undefined };

function worldWithoutQueue(): World {
  return new World({ upstream: { ...limitedTo(10), queue: { maxWait: 0, maxDepth: 100 } }, random: () => 0.5 });
}

/** One client has spent a quota, and other requests of its own have been refused for it. */
function afterQuota(own: Arrival, refused: number): World {
  const world = worldWithoutQueue();
  const first = world.arrive(own);
  world.send(first);
  world.answer(first, response(429, { quota: SPENT }));
  expect(world.gate.retries.retryAfterRejection(first.ticket, 0, world.now)).toBeGreaterThan(59_000);
  for (let i = 0; i < refused; i += 1) expect(retryAfterOf(world.arrive(own))).toBeGreaterThan(59_000);
  return world;
}

function retryAfterOf({ admission }: QueuedTicket): Millis | undefined {
  return admission?.kind === 'refused' ? admission.retryAfterMs : undefined;
}

describe('a spent quota that covers one client', () => {
  test.each([0, 1, 20])('does not delay the Retry-After of others, after %i refusals of that client', (refused) => {
    const world = afterQuota({ client: 'own' }, refused);
    const others = Array.from({ length: 20 }, (_, i) => world.arrive({ client: `c${i}` }));
    const delays = others.map(retryAfterOf).filter((delay) => delay !== undefined);
    expect(delays.length).toBeGreaterThan(10);
    expect(Math.max(...delays)).toBeLessThan(10_000);
  });

  test('does not delay the Retry-After of other keys of its address', () => {
    const world = afterQuota({ client: 'own', addressGroup: 'a' }, 1);
    const others = Array.from({ length: 20 }, (_, i) => world.arrive({ client: `c${i}`, addressGroup: 'a' }));
    const delays = others.map(retryAfterOf).filter((delay) => delay !== undefined);
    expect(delays.length).toBeGreaterThan(10);
    expect(Math.min(...delays)).toBeLessThan(10_000);
  });

  test('releases none of the slots that others had before', () => {
    const world = worldWithoutQueue();
    const first = world.arrive({ client: 'own' });
    world.send(first);
    const before = Array.from({ length: 20 }, (_, i) => retryAfterOf(world.arrive({ client: `b${i}` })) ?? 0);
    world.answer(first, response(429, { quota: SPENT }));
    world.gate.retries.retryAfterRejection(first.ticket, 0, world.now);
    world.arrive({ client: 'releases' });
    expect(retryAfterOf(world.arrive({ client: 'after' }))).toBeGreaterThan(Math.max(...before));
  });
});

test('a spent quota keeps the slots of clients that return at its reset', () => {
  const world = afterQuota({ client: 'own' }, 20);
  const last = world.limit.lastReturnSlot;
  world.runUntil(60_000);
  expect(last).toBeGreaterThan(60_000);
  world.arrive({ client: 'first' });
  expect(retryAfterOf(world.arrive({ client: 'other' }))).toBeGreaterThan(last - 60_000);
});
