/** Senders whose requests get no response leave the probes of a block to others: minutes of virtual time. */
import { describe, expect, test } from 'vitest';
import type { CallRecord, QueuedTicket } from '../../support/core/call-record.ts';
import { isSuccess } from '../../support/core/call-record.ts';
import { blockedBy, from } from '../../support/core/attributed-line.ts';
import { failure, response } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { formatRetryAfter } from '../../../src/core/hints/format-retry-after.ts';

/** Clients with one request at a time, which return in the second that their Retry-After names. */
class PoliteClients {
  readonly #world: World;
  readonly #pause: Millis;
  served = 0;
  /** How long the slowest request took, from its first try to its response. */
  longest: Millis = 0;
  /** The most refusals of one request. */
  mostRefusals = 0;

  /** @param pause between a response and the next request */
  constructor(world: World, count: number, pause: Millis) {
    this.#world = world;
    this.#pause = pause;
    for (let i = 0; i < count; i += 1) world.at(world.random() * pause, () => this.#call(`polite ${i}`));
  }

  #call(client: string, begunAt = this.#world.now, refusals = 0): void {
    const world = this.#world;
    const onVerdict = (record: CallRecord): void => {
      const { verdict } = record;
      this.longest = Math.max(this.longest, world.now - begunAt);
      if (verdict?.kind === 'refuse') {
        const seconds = Number(formatRetryAfter(verdict.retryAfterMs ?? 0, world.random));
        this.mostRefusals = Math.max(this.mostRefusals, refusals + 1);
        world.at(world.now + 1000 * seconds + 20, () => this.#call(client, begunAt, refusals + 1));
        return;
      }
      expect(isSuccess(record)).toBe(true);
      this.served += 1;
      world.at(world.now + this.#pause * (0.75 + 0.5 * world.random()), () => this.#call(client));
    };
    world.call({ client, onVerdict });
  }
}

/** Requests of clients whose names begin with `hang` get no response. */
function worldOfHanging(seed: number): World {
  const world = new World({ seed });
  world.respond = ({ client }) => (client.startsWith('hang') ? 'silence' : { outcome: response(200), after: 20 });
  return world;
}

/** Runs a minute, and returns how often the upstream becomes blocked. */
function countBlocks(world: World): number {
  let blocks = 0;
  for (let wasBlocked = false; world.now < 60_000; world.runUntil(world.now + 10)) {
    const isBlocked = world.limit.meter.phase === 'blocked';
    if (isBlocked && !wasBlocked) blocks += 1;
    wasBlocked = isBlocked;
  }
  return blocks;
}

describe.each([2, 3])('while 40 requests a second of each of %i addresses hang', (hanging) => {
  test.each([1, 2, 3, 4])('three clients are hardly delayed (seed %i)', (seed) => {
    const world = worldOfHanging(seed);
    const polite = new PoliteClients(world, 3, 200);
    world.runUntil(3000);
    for (let i = 0; i < hanging; i += 1) world.stream(40, 60_000, { client: `hang ${i}` });
    expect(countBlocks(world)).toBeLessThanOrEqual(1);
    expect(polite.longest).toBeLessThan(200);
    expect(polite.mostRefusals).toBe(0);
    expect(polite.served).toBeGreaterThan(800); // of about 820
  });

  test.each([1, 2, 3, 4])('clients that send rarely are served when they return (seed %i)', (seed) => {
    const world = worldOfHanging(seed);
    const polite = new PoliteClients(world, 3, 3000);
    world.runUntil(3000);
    for (let i = 0; i < hanging; i += 1) world.stream(40, 60_000, { client: `hang ${i}` });
    expect(countBlocks(world)).toBeGreaterThan(0);
    expect(polite.longest).toBeLessThan(3000);
    expect(polite.mostRefusals).toBeLessThanOrEqual(1);
    expect(polite.served).toBeGreaterThan(40); // of about 57
  });
});

const isOut = ({ admission }: QueuedTicket): boolean => admission?.kind === 'admitted';

/** Blocked by errors of the clients `failed 0` to `failed 7`. It is now 3000, and a probe is due for any sender. */
function blockedWorld(): World {
  const world = new World({ random: () => 0.5 });
  world.now = 2900;
  const requests = Array.from({ length: 8 }, (_, i) => world.arrive({ client: `failed ${i}` }));
  for (const request of requests) world.send(request);
  for (const request of requests) world.answer(request, failure('reset', true));
  for (const { ticket } of requests) world.gate.onExchangeEnd(ticket);
  expect(world.limit.meter.phase).toBe('blocked');
  world.now = 3000;
  return world;
}

describe('after a probe without a response', () => {
  test('its sender sends the next one 4 s later than others may', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'slow' })); // the next is due at 5000
    world.runUntil(8500);
    const again = world.arrive({ client: 'slow' });
    world.runUntil(8990);
    expect(isOut(again)).toBe(false);
    world.runUntil(9000);
    expect(isOut(again)).toBe(true);
  });

  test('one that had failed sends the next one 2 s later than others may', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'slow' }));
    world.runUntil(6500);
    const again = world.arrive({ client: 'failed 1' });
    world.runUntil(6990);
    expect(isOut(again)).toBe(false);
    world.runUntil(7000);
    expect(isOut(again)).toBe(true);
  });

  test('another sender that returns within 2 s sends the next one, although earlier ones wait', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'slow' }));
    world.runUntil(6500);
    const earlier = [world.arrive({ client: 'slow' }), world.arrive({ client: 'failed 1' })];
    world.runUntil(6900);
    const other = world.arrive({ client: 'other' });
    expect([...earlier, other].map(isOut)).toEqual([false, false, true]);
    world.serve(other);
    expect(world.limit.meter.phase).toBe('restoring');
  });

  test('of a sender that had failed, others need not avoid its path', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'failed 0', path: '/charges' }));
    world.runUntil(4900);
    const failed = world.arrive({ client: 'failed 1', path: '/refunds' });
    const other = world.arrive({ client: 'other', path: '/charges' });
    world.runUntil(5000);
    expect([failed, other].map(isOut)).toEqual([false, true]);
  });

  test('of a sender that had failed, those that have failed too send requests of other paths first', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'failed 0', path: '/charges' }));
    world.runUntil(6900);
    const same = world.arrive({ client: 'failed 1', path: '/charges' });
    const other = world.arrive({ client: 'failed 2', path: '/refunds' });
    world.runUntil(7000);
    expect([same, other].map(isOut)).toEqual([false, true]);
  });

  test('of a client of an address that is blocked alone, it and the clients that had failed give way to the others', () => {
    const line = blockedBy((i) => ({ client: `failed ${i}`, path: `/${i}` }));
    expect(line.part).toBe('address');
    line.now = 2000;
    line.rate.admit(2000, from({ client: 'slow', path: '/slow' }));
    const delayOf = (client: string): Millis => line.rate.delay(2000, from({ client, path: '/other' }));
    expect(['other', 'failed 1', 'slow'].map(delayOf)).toEqual([2000, 4000, 6000]);
  });

  test('of a client that is blocked alone, its next request comes as soon as that of others would', () => {
    const line = blockedBy((i) => ({ path: `/${i}` }));
    expect(line.part).toBe('client');
    line.now = 2000;
    line.rate.admit(2000, from({ path: '/slow' }));
    expect(line.rate.delay(2000, from({ path: '/other' }))).toBe(2000);
  });
});
