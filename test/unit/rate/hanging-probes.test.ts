/** Senders whose requests get no response leave the probes of a block to others: minutes of virtual time. */
import { describe, expect, test } from 'vitest';
import type { CallRecord } from '../../support/core/call-record.ts';
import { isSuccess } from '../../support/core/call-record.ts';
import { response } from '../../support/core/policy-builders.ts';
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
