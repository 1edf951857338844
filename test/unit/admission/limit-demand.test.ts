import { describe, expect, test } from 'vitest';
import { AwaitedReturns } from '../../../src/core/limits/awaited-returns.ts';
import type { Limit } from '../../../src/core/limits/limit.ts';
import { LimitDemand, type WeightShares } from '../../../src/core/limits/limit-demand.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import { limitedTo, SHARED } from '../../support/core/policy-builders.ts';
import type { QueuedTicket } from '../../support/core/call-record.ts';
import { World } from '../../support/core/world.ts';

function demandOf(): LimitDemand {
  return new LimitDemand(new AwaitedReturns(() => undefined));
}

/** Returns the names of `count` groups. */
function groupsOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `group ${i}`);
}

describe('the weight of the groups that wait or will return', () => {
  test('a group counts once while any of its requests waits, with the weight of the last one', () => {
    const demand = demandOf();
    demand.onQueued('a', 1);
    demand.onQueued('a', 3);
    demand.onQueued('b', 2);
    expect(demand.totalWeight(0)).toBe(5);
    demand.onDequeued('a');
    expect(demand.totalWeight(0)).toBe(5);
    demand.onDequeued('b', 7);
    expect(demand.totalWeight(0)).toBe(3);
    demand.onDequeued('a', 1);
    expect([demand.totalWeight(0), demand.hasWaiting, demand.isEmpty(0)]).toEqual([0, false, true]);
  });

  test('the weight of a served request applies to the requests of its group that still wait', () => {
    const demand = demandOf();
    demand.onQueued('a', 4);
    demand.onQueued('a', 4);
    demand.onDequeued('a', 1);
    expect(demand.totalWeight(0)).toBe(1);
  });

  test('a group that waits no longer counts as one that will return', () => {
    const demand = demandOf();
    demand.onQueued('a', 1);
    demand.awaitReturn('a', 1, 1000, 0);
    demand.awaitReturn('b', 1, 1000, 0);
    expect(demand.totalWeight(0)).toBe(2);
    demand.onQueued('b', 1);
    demand.onDequeued('a');
    expect(demand.totalWeight(0)).toBe(1);
    demand.onDequeued('b');
    expect(demand.isEmpty(0)).toBe(true);
  });

  test('a share applies at once, until other shares replace it', () => {
    const demand = demandOf();
    demand.onQueued('a', 4);
    demand.onQueued('b', 1);
    demand.setWaitingShares(new Map([['a', 0.25]]));
    expect([demand.totalWeight(0), demand.waitingShare('a'), demand.waitingShare('b')]).toEqual([2, 0.25, 1]);
    demand.onQueued('a', 8);
    expect(demand.totalWeight(0)).toBe(3);
    demand.onDequeued('a');
    demand.onDequeued('a');
    demand.onQueued('a', 4);
    expect(demand.totalWeight(0)).toBe(2);
    demand.setWaitingShares(new Map([['b', 0.5]]));
    expect(demand.totalWeight(0)).toBe(4.5);
    demand.setWaitingShares(new Map());
    expect(demand.totalWeight(0)).toBe(5);
  });

  test('a group that will return has no weight while it waits in another process, and will still return', () => {
    const demand = demandOf();
    demand.awaitReturn('a', 2, 1000, 0);
    demand.awaitReturn('b', 1, 1000, 0);
    demand.returns?.setShares(new Map([['a', 0]]));
    expect(demand.totalWeight(0)).toBe(1);
    demand.returns?.remove('b');
    expect([demand.totalWeight(0), demand.isEmpty(0)]).toEqual([0, false]);
    demand.awaitReturn('a', 3, 2000, 0);
    expect(demand.totalWeight(0)).toBe(0);
    demand.returns?.setShares(new Map([['a', 0.5]]));
    expect(demand.totalWeight(0)).toBe(1.5);
    expect(demand.isEmpty(2001)).toBe(true);
  });
});

describe('a report of groups', () => {
  test('names all groups, each once, if they are few', () => {
    const demand = demandOf();
    for (const group of ['a', 'b', 'a', 'c', 'b']) demand.onQueued(group, 1);
    demand.onDequeued('c');
    for (const group of ['d', 'e']) demand.awaitReturn(group, 1, 1000, 0);
    expect([...demand.sampleWaiting(32)].toSorted()).toEqual(['a', 'b']);
    expect([...(demand.returns?.sample(32, 0) ?? [])].toSorted()).toEqual(['d', 'e']);
    expect(demand.returns?.sample(32, 1001)).toEqual([]);
  });

  test('names other groups each time if they are many', () => {
    const demand = demandOf();
    for (const group of groupsOf(100)) demand.onQueued(group, 1);
    const named = [demand.sampleWaiting(32), demand.sampleWaiting(32), demand.sampleWaiting(36)];
    expect(named.map(({ length }) => length)).toEqual([32, 32, 36]);
    expect(new Set(named.flat()).size).toBe(100);
    const returning = demandOf();
    for (const group of groupsOf(64)) returning.awaitReturn(group, 1, 1000, 0);
    const samples = [returning.returns?.sample(32, 0) ?? [], returning.returns?.sample(32, 0) ?? []];
    expect(new Set(samples.flat()).size).toBe(64);
  });

  test('names each group that waits in several processes, but leaves a quarter of its entries to others', () => {
    const demand = demandOf();
    for (const group of groupsOf(100)) demand.onQueued(group, 1);
    demand.setWaitingShares(new Map([['group 99', 0.5]]));
    for (let report = 0; report < 5; report += 1) expect(demand.sampleWaiting(8)).toContain('group 99');
    demand.setWaitingShares(new Map(groupsOf(32).map((group) => [group, 0.5])));
    const named = new Set<string>();
    for (let report = 0; report < 50; report += 1) for (const group of demand.sampleWaiting(8)) named.add(group);
    expect(named.size).toBe(100);
  });
});

describe('nested limits of a shared one', () => {
  const meter = (rate: number): LocalMeter =>
    new LocalMeter({ initialRate: rate, maxRate: rate, minRate: 0.1, cooldown: 1000 }, () => 0.5);
  const INNER: LimitRef = { upstream: 'up', nested: 'inner', scope: 'credential', key: 'inner' };
  const SIBLING: LimitRef = { upstream: 'up', nested: 'sibling', scope: 'credential', key: 'sibling' };

  /** A limit of 1/s that processes share, and two nested in it. */
  function open(): { readonly world: World; readonly outer: Limit } {
    const world = new World({
      meters: { '': meter(1), inner: meter(100), sibling: meter(100) },
      random: () => 0.5,
      upstream: { queue: { maxWait: 60_000, maxDepth: 100 } },
    });
    const outer = world.store.findLimit(SHARED);
    if (outer === undefined) throw new Error('there is no shared limit');
    outer.demand = demandOf();
    return { world, outer };
  }

  test('a client that waits at both, and at the outer limit, counts as one client that waits for the outer one', () => {
    const { world, outer } = open();
    world.arrive({ refs: [SHARED, INNER], client: 'first' });
    const requests = [[SHARED, INNER], [SHARED, SIBLING], [SHARED]].map((refs) =>
      world.arrive({ refs, client: 'one' }),
    );
    requests.push(world.arrive({ refs: [SHARED, SIBLING], client: 'other' }));
    expect(outer.demandWeight(world.now)).toBe(2);
    expect([...(outer.demand?.sampleWaiting(32) ?? [])].toSorted()).toEqual(['one', 'other']);
    world.runUntil(30_000);
    expect(requests.every(({ admission }) => admission !== undefined)).toBe(true);
    expect([outer.demandWeight(world.now), outer.demand?.hasWaiting]).toEqual([0, false]);
  });

  test('a client that waits in two processes gets half of the turns of another, at whichever nested limits they wait', () => {
    const { world, outer } = open();
    world.arrive({ refs: [SHARED, INNER], client: 'first' });
    outer.demand?.setWaitingShares(new Map([['divided', 0.5]]));
    const ask = (client: string, inner: LimitRef): readonly QueuedTicket[] =>
      Array.from({ length: 12 }, () => world.arrive({ refs: [SHARED, inner], client, deadline: 60_000 }));
    const divided = ask('divided', INNER);
    const whole = ask('whole', SIBLING);
    world.runUntil(9500);
    const served = (requests: readonly QueuedTicket[]): number =>
      requests.filter(({ admission }) => admission?.kind === 'admitted').length;
    expect([served(divided), served(whole)]).toEqual([3, 6]);
  });

  test('the wait for the outer limit is estimated by the parts of the weights of clients that count there', () => {
    const { world, outer } = open();
    world.arrive({ refs: [SHARED, INNER], client: 'first' });
    outer.demand?.setWaitingShares(new Map([['divided', 0.5]]));
    const ask = (client: string, inner: LimitRef): QueuedTicket =>
      world.arrive({ refs: [SHARED, inner], client, deadline: 60_000 });
    for (let i = 0; i < 3; i += 1) ask('divided', INNER);
    // One turn of its own, and half a turn of the client that has half of its weight here; the next token is due in a second.
    expect(ask('whole', SIBLING).ticket.estimatedWait).toBeCloseTo(1500, 0);
    // Its fourth request: four turns of its own and, with each, two of the other client, which has one request only.
    expect(ask('divided', INNER).ticket.estimatedWait).toBeCloseTo(5000, 0);
  });

  test('the wait for the outer limit is estimated by the part of the turns of its address that a client has there', () => {
    const { world, outer } = open();
    world.arrive({ refs: [SHARED, INNER], client: 'first' });
    outer.demand?.setWaitingShares(
      new Map([
        ['there', 0.5],
        ['divided', 0.5],
      ]),
    );
    const ask = (client: string, addressGroup: string, inner: LimitRef): QueuedTicket =>
      world.arrive({ refs: [SHARED, inner], client, addressGroup, deadline: 60_000 });
    for (let i = 0; i < 10; i += 1) ask('whole', 'here', SIBLING);
    ask('sibling', 'there', INNER);
    // Its address has one of three turns, and it has one of three of these: the ninth turn is its own. The next token is due in a second.
    expect(ask('divided', 'there', INNER).ticket.estimatedWait).toBeCloseTo(9000, 0);
  });
});

test('clients that share the turns of their address are named too, and count only within it', () => {
  const demand = new LimitDemand();
  for (const client of ['x', 'y', 'x']) demand.onQueued('address', 2, client);
  demand.onQueued('alone', 1, 'alone');
  expect(demand.totalWeight(0)).toBe(3);
  expect([...demand.sampleWaiting(32)].toSorted()).toEqual(['address', 'alone', 'x', 'y']);
  demand.setWaitingShares(new Map([['x', 0.5]]));
  expect([demand.totalWeight(0), demand.waitingShare('x'), demand.waitingShare('y')]).toEqual([3, 0.5, 1]);
  // However many clients an address has, each report keeps entries for groups.
  for (let i = 0; i < 100; i += 1) demand.onQueued('address', 2, `key ${i}`);
  expect(demand.sampleWaiting(8)).toEqual(expect.arrayContaining(['address', 'alone', 'x']));
  demand.onDequeued('address', 2, 'x');
  demand.onDequeued('address', 2, 'x');
  expect(demand.sampleWaiting(200)).not.toContain('x');
});

describe('the shares of a client with a key of its own', () => {
  /** Returns how many requests of each client are served at 20/s in 10 s, of 200 that wait from the start. */
  function servedOf(clients: readonly (readonly [client: string, address: string])[], shares: WeightShares): number[] {
    const world = new World({ upstream: { ...limitedTo(20), queue: { maxWait: 60_000, maxDepth: 10_000 } } });
    world.limit.demand = demandOf();
    world.limit.demand.setWaitingShares(shares);
    world.arrive({ client: 'first', addressGroup: 'first' });
    const requests = clients.map(([client, addressGroup]) =>
      Array.from({ length: 200 }, () => world.arrive({ client, addressGroup, deadline: 90_000 })),
    );
    world.runUntil(10_000);
    return requests.map((each) => each.filter(({ admission }) => admission?.kind === 'admitted').length);
  }

  test('apply once, to one that waits in two processes, alone at its address', () => {
    const shares = new Map([
      ['there', 0.5],
      ['divided', 0.5],
    ]);
    const [divided = 0, whole = 0] = servedOf(
      [
        ['divided', 'there'],
        ['whole', 'here'],
      ],
      shares,
    );
    expect(Math.abs(whole / divided - 2)).toBeLessThan(0.1);
  });

  test('apply to its part of the turns of its address', () => {
    const shares = new Map([
      ['there', 0.5],
      ['divided', 0.5],
    ]);
    const [divided = 0, sibling = 0, whole = 0] = servedOf(
      [
        ['divided', 'there'],
        ['sibling', 'there'],
        ['whole', 'here'],
      ],
      shares,
    );
    expect(Math.abs(whole / (divided + sibling) - 2)).toBeLessThan(0.1);
    expect(Math.abs(sibling / divided - 2)).toBeLessThan(0.1);
  });
});
