/** Many keys of one address take no more from other clients than one key would. */
import { describe, expect, test } from 'vitest';
import type { Arrival, QueuedTicket } from '../../support/core/call-record.ts';
import { limitedTo, response, SHARED } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

describe('an address with many keys', () => {
  test('does not delay the slots of other clients', () => {
    const retryAfterBehind = (keys: number): number => {
      const world = new World({
        upstream: { ...limitedTo(10), queue: { maxWait: 0, maxDepth: 100 } },
        random: () => 0.5,
      });
      for (let at = 0; at < 2000; at += 100) {
        world.at(at, () => {
          for (let i = 0; i < keys; i += 1) world.arrive({ client: `${at}/${i}`, addressGroup: 'here' });
          for (const other of ['b', 'c', 'd']) world.arrive({ client: other, addressGroup: other });
        });
      }
      world.runUntil(1950);
      const { admission } = world.arrive({ client: 'e', addressGroup: 'e' });
      return admission?.kind === 'refused' ? admission.retryAfterMs : Number.NaN;
    };
    expect(retryAfterBehind(40)).toBeLessThan(retryAfterBehind(1) + 3000);
  });

  test('has the share of one key, also while its keys only wait', () => {
    const servedOf = (keys: number): number => {
      const world = new World({
        upstream: { ...limitedTo(40), queue: { maxWait: 30_000, maxDepth: 10_000 } },
        random: () => 0.5,
      });
      for (let i = 0; i < 600; i += 1) world.arrive({ client: `k${i % keys}`, addressGroup: 'here', deadline: 60_000 });
      world.runUntil(6000);
      const honest = Array.from({ length: 200 }, () =>
        world.arrive({ client: 'o', addressGroup: 'there', deadline: 60_000 }),
      );
      world.runUntil(9000);
      return honest.filter(({ admission }) => admission?.kind === 'admitted').length;
    };
    expect(servedOf(1)).toBeGreaterThan(50);
    expect(servedOf(200)).toBeGreaterThan(50);
  });

  test('is served in its turn, also if each of its keys waits no longer than one turn takes', () => {
    const world = new World({
      upstream: { ...limitedTo(10), queue: { maxWait: 30_000, maxDepth: 10_000 } },
      random: () => 0.5,
    });
    for (let i = 0; i < 400; i += 1) world.arrive({ client: `o${i % 4}`, addressGroup: `o${i % 4}`, deadline: 90_000 });
    const own: QueuedTicket[] = [];
    for (let at = 1000; at < 20_000; at += 100) {
      world.at(
        at,
        () => void own.push(world.arrive({ client: `k${at % 800}`, addressGroup: 'here', deadline: at + 1200 })),
      );
    }
    world.runUntil(20_000);
    // One of five addresses at 10/s.
    expect(own.filter(({ admission }) => admission?.kind === 'admitted').length).toBeGreaterThan(30);
  });

  test('shares its turns among its keys, at limits nested in one that they share too', () => {
    const served = (keys: number): number => {
      const world = new World({ upstream: { ...limitedTo(20), queue: { maxWait: 60_000, maxDepth: 10_000 } } });
      const nested = (name: string) => ({ ...SHARED, nested: name });
      const of = (client: string, addressGroup: string): Arrival => ({
        client,
        addressGroup,
        refs: [SHARED, nested(addressGroup === 'here' ? client : addressGroup)],
        deadline: 90_000,
      });
      const own = Array.from({ length: 200 }, (_, i) => world.arrive(of(`k${i % keys}`, 'here')));
      for (let i = 0; i < 200; i += 1) world.arrive(of('b', 'there'));
      world.runUntil(5000);
      return own.filter(({ admission }) => admission?.kind === 'admitted').length;
    };
    expect(served(20)).toBeGreaterThan(served(1) - 10);
    expect(served(20)).toBeLessThan(served(1) + 10);
  });

  test('does not delay other clients while it is blocked alone, however many of its keys wait', () => {
    const served = (keys: number): number => {
      const world = new World({
        upstream: { ...limitedTo(100), queue: { maxWait: 20_000, maxDepth: 10_000 } },
        maxTracked: 10_000,
        random: () => 0.5,
      });
      let count = 0;
      const ask = (arrival: Arrival, status: number): void => {
        const queued = world.arrive({ ...arrival, deadline: world.now + 30_000 });
        const send = (): void => {
          if (queued.admission === undefined) return void world.at(world.now + 100, send);
          if (queued.admission.kind === 'refused') return world.gate.onExchangeEnd(queued.ticket);
          if (status === 200 && world.now >= 6000) count += 1;
          world.send(queued);
          world.at(world.now + 10, () => {
            world.answer(queued, response(status));
            world.gate.onExchangeEnd(queued.ticket);
          });
        };
        send();
      };
      for (let at = 0; at < 10_000; at += 8) {
        const client = `o${(at / 8) % 12}`;
        world.at(at, () => ask({ client, addressGroup: client }, 200));
      }
      for (let i = 0; i < keys; i += 1) {
        const at = i < 20 ? 4000 + 20 * i : 5000 + i / 10;
        world.at(at, () => ask({ client: `k${i}`, addressGroup: 'here' }, 429));
      }
      world.runUntil(10_000);
      expect(world.limit.meter.block?.(world.now)?.isPartial).toBe(true);
      return count;
    };
    expect(served(100)).toBeGreaterThan(350);
    expect(served(500)).toBeGreaterThan(350);
  });

  test('leaves places in the queue', () => {
    const world = new World({ upstream: { ...limitedTo(1000), queue: { maxWait: 10_000, maxDepth: 90 } } });
    const own = Array.from(
      { length: 200 },
      (_, i) => world.arrive({ client: `k${i}`, addressGroup: 'here' }).admission,
    );
    expect(own.filter((retryAfter) => retryAfter === undefined)).toHaveLength(80);
    expect(own.at(-1)).toMatchObject({ kind: 'refused', why: 'queue_full' });
    const others = Array.from(
      { length: 12 },
      (_, i) => world.arrive({ client: `o${i}`, addressGroup: `there ${i}` }).admission,
    );
    expect(others.filter((retryAfter) => retryAfter === undefined)).toHaveLength(10);
    expect(others.at(-1)).toMatchObject({ kind: 'refused', why: 'queue_full' });
    world.runUntil(1000);
    expect(world.arrive({ client: 'k', addressGroup: 'here' }).admission).toMatchObject({ kind: 'admitted' });
  });
});
