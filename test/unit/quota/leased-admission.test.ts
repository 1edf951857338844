/** A gate whose quotas are counted by another process. */
import { describe, expect, test } from 'vitest';
import type { CalendarQuotaSettings } from '../../../src/core/quota/calendar/calendar-quota.ts';
import { QuotaClient } from '../../../src/sharing/quotas/quota-client.ts';
import { QuotaKeeper } from '../../../src/sharing/quotas/quota-keeper.ts';
import type { MemoryStore } from '../../../src/store/memory-store.ts';
import { DAY, HOUR, quotaSettings } from '../../support/core/quota-builders.ts';
import { limitedTo, upstreamSettings } from '../../support/core/policy-builders.ts';
import { World, type WorldOptions } from '../../support/core/world.ts';

const ADMITTED = { kind: 'admitted' };
const LATENCY = 5;

interface Setup {
  readonly world: World;
  readonly keeper: QuotaKeeper;
  /** While false, calls get no response. */
  responds: boolean;
  latency: number;
  /** The names of the quotas that were called about. */
  readonly calls: readonly string[];
}

/** A world that begins at 11:00. Another worker has used `usedByOther` requests. */
function setUp(settings: Partial<CalendarQuotaSettings>, usedByOther = 0, options: WorldOptions = {}): Setup {
  const quota = quotaSettings(settings);
  const calls: string[] = [];
  const keeper = new QuotaKeeper({ wallTimeAt: (now) => now });
  keeper.configure([{ name: 'up', quotas: [quota], classQuotas: options.upstream?.classQuotas }]);
  for (const worker of [1, 2]) keeper.join(worker);
  const client: QuotaClient = new QuotaClient({
    clock: { now: () => world.now },
    schedule: (delay, run) => {
      let isCancelled = false;
      world.at(world.now + delay, () => {
        if (!isCancelled) run();
      });
      return () => {
        isCancelled = true;
      };
    },
    isKeeperForgetful: false,
    call: (call, onTerms) => {
      calls.push(call.name);
      world.at(world.now + setup.latency, () =>
        onTerms(setup.responds ? keeper.onCall(1, call, world.now) : undefined),
      );
    },
  });
  const quotas = { wallTimeAt: (now: number) => now, makeQuota: client.makeQuota, leaseWait: 1000 };
  const { upstream, ...rest } = options;
  const world: World = new World({ quotas, upstream: { quotas: [quota], ...upstream }, ...rest });
  const setup: Setup = { world, keeper, responds: true, latency: LATENCY, calls };
  world.now = 11 * HOUR;
  client.bind({
    store: Object.assign(world.store, { applyHold: () => undefined, has: () => true, isConfigured: () => true }),
    onTokensSupplied: (limit, now) => {
      world.gate.onTokensSupplied(limit, now);
      world.rearm();
    },
    onQuotaSupplied: (quota, now) => {
      world.gate.clientQuotas.onSupplied(quota, now);
      world.rearm();
    },
  });
  const of = { upstream: 'up', name: quota.name, period: 'day UTC' };
  const other = { want: 0, isOrdinary: true, mayUseReserve: false, overdrawn: usedByOther, returns: [], held: 0 };
  keeper.onCall(2, { ...of, ...other }, world.now);
  return setup;
}

describe('a gate with a quota that another process counts', () => {
  test('lets a request wait for its part, and admits it when that has come', () => {
    const { world } = setUp({ limit: 10 });
    const queued = world.arrive();
    expect(queued.admission).toBeUndefined();
    world.runUntil(11 * HOUR + LATENCY);
    expect([queued.admission, queued.at]).toEqual([ADMITTED, 11 * HOUR + LATENCY]);
  });

  test('does so without a queue, too', () => {
    const { world } = setUp({ limit: 10 }, 0, { upstream: { queue: { maxWait: 0, maxDepth: 10 } } });
    const queued = world.arrive();
    world.runUntil(11 * HOUR + LATENCY);
    expect(queued.admission).toEqual(ADMITTED);
  });

  test('refuses it until the reset when the others have used all', () => {
    const { world } = setUp({ limit: 10 }, 10);
    const first = world.arrive();
    world.runUntil(11 * HOUR + LATENCY);
    expect(first.admission).toEqual({ kind: 'refused', why: 'quota_exceeded', retryAfterMs: 13 * HOUR });
    expect(world.gate.decisionDetails(first.ticket, world.now).quota).toMatchObject({ name: 'day', resetAt: DAY });
    // What was just learned needs no call.
    expect(world.arrive().admission).toMatchObject({ why: 'quota_exceeded' });
    world.runUntil(DAY);
    const next = world.arrive();
    world.runUntil(DAY + LATENCY);
    expect(next.admission).toEqual(ADMITTED);
  });

  test('admits as many requests that arrive at once as are left, and refuses the others', () => {
    const { world } = setUp({ limit: 10 }, 6);
    const arrivals = Array.from({ length: 7 }, () => world.arrive());
    world.runUntil(11 * HOUR + 20 * LATENCY);
    expect(arrivals.filter(({ admission }) => admission?.kind === 'admitted')).toHaveLength(4);
    // The four have not been sent yet: if one cannot be, its part is free again.
    expect(arrivals.at(-1)?.admission).toEqual({ kind: 'refused', why: 'quota_exceeded', retryAfterMs: 1000 });
  });

  test('serves a request with priority from the reserve past others that wait', () => {
    const { world } = setUp({ limit: 10, reserve: 2 }, 8);
    const [ordinary, important] = [world.arrive(), world.arrive({ client: 'important', weight: 4 })];
    world.runUntil(11 * HOUR + 4 * LATENCY);
    expect(important.admission).toEqual(ADMITTED);
    expect(ordinary.admission).toMatchObject({ why: 'quota_exceeded' });
  });

  test('returns what is leased, and lets waiting requests go, when a reload removes the quota', () => {
    const { world, keeper } = setUp({ limit: 10 });
    const store = world.store as MemoryStore;
    const first = world.arrive();
    world.runUntil(11 * HOUR + LATENCY);
    expect(first.admission).toEqual(ADMITTED);
    const second = world.arrive();
    expect(second.admission).toBeUndefined();
    store.configure([upstreamSettings()], 100);
    world.gate.reevaluateQueues(world.now);
    expect(second.admission).toEqual(ADMITTED);
    world.gate.cancel(first.ticket, world.now);
    world.runUntil(12 * HOUR);
    expect(keeper.views(world.now)[0]?.remaining).toBe(10);
  });

  test('refuses requests soon while the count is not available, and says so', () => {
    const setup = setUp({ limit: 10 });
    setup.responds = false;
    const { world } = setup;
    const queued = world.arrive();
    world.runUntil(11 * HOUR + 1500);
    expect(queued.admission).toEqual({ kind: 'refused', why: 'quota_exceeded', retryAfterMs: 1000 });
    expect(world.gate.decisionDetails(queued.ticket, world.now).quota).toMatchObject({ isLost: true });
    setup.responds = true;
    world.runUntil(11 * HOUR + 3000);
    const next = world.arrive();
    world.runUntil(11 * HOUR + 3000 + LATENCY);
    expect(next.admission).toEqual(ADMITTED);
  });

  test('admits requests in observe mode, and counts them', () => {
    const { world, keeper } = setUp({ limit: 10 }, 9, { mode: 'observe' });
    for (let i = 0; i < 3; i += 1) world.serve(world.arrive());
    world.runUntil(11 * HOUR + 5000);
    expect(keeper.views(world.now)).toMatchObject([{ remaining: 0 }]);
  });

  test('spaces requests with pace even as one process does', () => {
    const { world } = setUp({ limit: 24 * 3600 * 2, pace: 'even' }, 0);
    const arrivals = Array.from({ length: 3 }, () => world.arrive());
    world.runUntil(11 * HOUR + 3000);
    const admitted = arrivals.flatMap(({ admission, at }) => (admission?.kind === 'admitted' ? [at - 11 * HOUR] : []));
    // 13 of 24 hours are left: 3.7 requests a second.
    expect(admitted.map((at) => Math.round(at / 10))).toEqual([1, 28, 56]);
  });
});

describe('a gate with quotas of clients that another process counts', () => {
  const perClient = [quotaSettings({ name: 'class:partners/client/day', limit: 2 })];
  const classQuotas = [{ className: 'partners', shared: [], perClient }];
  const partner = (client: string) => ({ client, className: 'partners', isProven: true });

  test('admits and refuses each of several waiting clients as soon as its own part has come, or was denied', () => {
    const { world, keeper } = setUp({ limit: 1000 }, 0, { upstream: { classQuotas } });
    const call = { upstream: 'up', name: 'class:partners/client/day', period: 'day UTC', want: 0, isOrdinary: true };
    keeper.onCall(2, { ...call, key: 'b', mayUseReserve: false, overdrawn: 2, returns: [], held: 0 }, world.now);
    const queued = ['a', 'b', 'c'].map((client) => world.arrive(partner(client)));
    world.runUntil(11 * HOUR + 3 * LATENCY); // its own part comes first, then one of the upstream
    expect(queued.map(({ admission }) => admission?.kind)).toEqual(['admitted', 'refused', 'admitted']);
    expect(queued[1]?.admission).toMatchObject({ why: 'client_quota_exceeded', retryAfterMs: DAY - 11 * HOUR });
  });

  test('lets no request wait for a part that it does not need, whatever quotas others have', () => {
    const { world } = setUp({ limit: 1000 }, 0, {
      upstream: { quotas: [], classQuotas, queue: { maxWait: 0, maxDepth: 10 } },
    });
    const waiting = world.arrive(partner('a'));
    expect(waiting.admission).toBeUndefined();
    const other = world.arrive({ client: 'd' });
    world.runUntil(world.now + 1);
    expect(other.admission).toEqual(ADMITTED);
    world.runUntil(world.now + LATENCY);
    expect(waiting.admission).toEqual(ADMITTED);
  });

  test('keeps the requests that wait for a part out of the queue, where they would delay others', () => {
    const { world } = setUp({ limit: 1000 }, 0, {
      upstream: { quotas: [], classQuotas, ...limitedTo(1000), queue: { maxWait: 100, maxDepth: 100 } },
    });
    const waiting = ['a', 'b', 'c', 'a'].map((client) => world.arrive(partner(client)));
    expect(waiting.map(({ admission }) => admission)).toEqual([undefined, undefined, undefined, undefined]);
    expect(world.limit.queue.size).toBe(0);
    expect(world.arrive({ client: 'd' }).admission).toEqual(ADMITTED);
    world.runUntil(world.now + 3 * LATENCY + 4);
    expect(waiting.map(({ admission }) => admission)).toEqual([ADMITTED, ADMITTED, ADMITTED, ADMITTED]);
  });

  test('refuses requests while the count is not available as the quota of the upstream would', () => {
    const setup = setUp({ limit: 1000 }, 0, { upstream: { quotas: [], classQuotas } });
    setup.responds = false;
    const queued = setup.world.arrive(partner('a'));
    setup.world.runUntil(11 * HOUR + 1500);
    expect(queued.admission).toEqual({ kind: 'refused', why: 'quota_exceeded', retryAfterMs: 1000 });
    expect(setup.world.gate.decisionDetails(queued.ticket, setup.world.now).quota).toMatchObject({ isLost: true });
  });

  test('does not claim after the reset that a client has used its quota when another process may still send the rest', () => {
    const { world, keeper } = setUp({ limit: 1000 }, 0, { upstream: { quotas: [], classQuotas } });
    const call = { upstream: 'up', name: 'class:partners/client/day', key: 'a', period: 'day UTC', isOrdinary: true };
    const lease = { ...call, want: 1, mayUseReserve: false, overdrawn: 0, returns: [] };
    for (const held of [0, 1]) keeper.onCall(2, { ...lease, held }, DAY - 1000);
    world.runUntil(DAY);
    const early = world.arrive(partner('a'));
    world.runUntil(DAY + LATENCY);
    expect(early.admission).toEqual({ kind: 'refused', why: 'quota_exceeded', retryAfterMs: 1000 });
    expect(world.gate.decisionDetails(early.ticket, world.now).quota).toMatchObject({ isLost: true });
    keeper.onCall(2, { ...lease, want: 0, held: 0 }, DAY + 10);
    world.runUntil(DAY + 1000);
    const next = world.arrive(partner('a'));
    world.runUntil(DAY + 1000 + LATENCY);
    expect(next.admission).toEqual(ADMITTED);
  });

  test('admits requests of a client again once the count that was not available is', () => {
    const setup = setUp({ limit: 1000 }, 0, { upstream: { quotas: [], classQuotas } });
    const { world } = setup;
    setup.responds = false;
    world.arrive(partner('a'));
    world.runUntil(11 * HOUR + 100);
    // A call is made every half second at most: until then, nothing else is known.
    expect(world.arrive(partner('a')).admission).toMatchObject({ why: 'quota_exceeded' });
    setup.responds = true;
    world.runUntil(11 * HOUR + 3000);
    const next = world.arrive(partner('a'));
    world.runUntil(11 * HOUR + 3000 + LATENCY);
    expect(next.admission).toEqual(ADMITTED);
  });

  test('decides once about a request that lacks parts of two quotas whose counts were not available', () => {
    const shared = [quotaSettings({ name: 'class:partners/day', limit: 100 })];
    const setup = setUp({ limit: 1000 }, 0, {
      upstream: { quotas: [], classQuotas: [{ className: 'partners', shared, perClient }] },
    });
    const { world } = setup;
    setup.responds = false;
    const lost = world.arrive(partner('a'));
    world.runUntil(11 * HOUR + 2000);
    expect(lost.admission).toMatchObject({ why: 'quota_exceeded' });
    setup.responds = true;
    const waiting = ['a', 'a', 'a'].map((client) => world.arrive(partner(client)));
    world.runUntil(11 * HOUR + 2000 + 8 * LATENCY);
    expect(waiting.map(({ admission }) => admission?.kind)).toEqual(['admitted', 'admitted', 'refused']);
    expect(waiting[2]?.admission).toMatchObject({ why: 'client_quota_exceeded' });
  });

  test('refuses a request once it has waited for the parts of all its quotas as long as it may, and reports each wait', () => {
    const shared = [quotaSettings({ name: 'class:partners/day', limit: 100 })];
    const setup = setUp({ limit: 1000 }, 0, {
      upstream: {
        ...{ quotas: [], classQuotas: [{ className: 'partners', shared, perClient }] },
        queue: { maxWait: 0, maxDepth: 10 },
      },
    });
    const { world } = setup;
    setup.latency = 600;
    const [first, second] = [world.arrive(partner('a')), world.arrive(partner('a'))];
    world.runUntil(11 * HOUR + 2000);
    expect([first.admission, first.at]).toEqual([ADMITTED, 11 * HOUR + 600]);
    // Its parts come after another 600 ms.
    expect([second.admission, second.at]).toEqual([
      { kind: 'refused', why: 'queue_timeout', retryAfterMs: 1000 },
      11 * HOUR + 1000,
    ]);
    const waits = world.ofType('decision').filter(({ decision }) => decision === 'queued');
    expect(waits.length).toBeGreaterThan(1);
    expect(world.ofType('dequeued')).toHaveLength(waits.length);
    expect(world.ofType('dequeued').at(-1)?.waited).toBe(400);
  });

  test('calls once for each of many clients that wait', () => {
    const { world, calls } = setUp({ limit: 1000 }, 0, { upstream: { quotas: [], classQuotas } });
    const queued = Array.from({ length: 50 }, (_, i) => world.arrive(partner(`c${i}`)));
    world.runUntil(11 * HOUR + LATENCY);
    expect(queued.every(({ admission }) => admission?.kind === 'admitted')).toBe(true);
    expect(calls).toHaveLength(50);
  });

  test('calls no more than once for each request when more clients than the bound wait', () => {
    const { world, calls } = setUp({ limit: 1000 }, 0, { maxTracked: 1, upstream: { quotas: [], classQuotas } });
    const queued = ['a', 'b', 'c'].map((client) => world.arrive(partner(client)));
    world.runUntil(11 * HOUR + 2 * LATENCY);
    expect(queued.map(({ admission }) => admission)).toEqual([ADMITTED, ADMITTED, ADMITTED]);
    expect(calls).toHaveLength(3);
  });

  test('lets waiting requests go when a reload removes the quota', () => {
    const { world } = setUp({ limit: 10 }, 0, { upstream: { quotas: [], classQuotas } });
    const waiting = world.arrive(partner('a'));
    expect(waiting.admission).toBeUndefined();
    (world.store as MemoryStore).configure([upstreamSettings()], 100);
    world.gate.reevaluateQueues(world.now);
    expect(waiting.admission).toEqual(ADMITTED);
  });

  test('forgets a request that is cancelled while it waits, and refuses one whose wait ends', () => {
    const setup = setUp({ limit: 10 }, 0, {
      upstream: { quotas: [], classQuotas, queue: { maxWait: 0, maxDepth: 1 } },
    });
    const { world } = setup;
    const cancelled = world.arrive(partner('a'));
    world.gate.cancel(cancelled.ticket, world.now);
    const late = world.arrive({ ...partner('a'), deadline: world.now + 2 });
    expect(world.arrive(partner('b')).admission).toMatchObject({ why: 'queue_full' });
    world.runUntil(11 * HOUR + 2);
    expect(late.admission).toEqual({ kind: 'refused', why: 'queue_timeout', retryAfterMs: 1000 });
    world.runUntil(11 * HOUR + 100);
    expect(cancelled.admission).toBeUndefined();
    expect(world.arrive(partner('a')).admission).toEqual(ADMITTED);
  });

  test('asks nothing about a client that sends nothing', () => {
    const calls: string[] = [];
    const client = new QuotaClient({
      clock: { now: () => 0 },
      schedule: (_, run) => {
        run();
        return () => undefined;
      },
      isKeeperForgetful: true,
      call: ({ name }) => calls.push(name),
    });
    client.makeQuota('up', quotaSettings());
    client.makeQuota('up', { ...quotaSettings({ name: 'class:partners/client/day' }), key: 'a' });
    expect(calls).toEqual(['day']);
  });
});
