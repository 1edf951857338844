import type { UpstreamSettings } from '../../../src/store/upstream-state.ts';
import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { makeLimitModel } from '../../../src/simulator/limit-models/limit-model-spec.ts';
import { pause } from '../../support/pause.ts';
import { failure, limitedTo, response, SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';
import type { StoreHarness, HarnessTicket } from '../../support/core/store-harness.ts';
import { STORES, openStoreHarnesses } from '../../support/core/store-harness.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';

const OWN: Partial<UpstreamSettings> = { ...limitedTo(1000), scope: 'client' };

function ofClient(key: string): LimitRef {
  return { upstream: 'up', nested: '', scope: 'client', key };
}

function allDecided(tickets: readonly HarnessTicket[]): Promise<unknown> {
  return Promise.all(tickets.map(({ decided }) => decided));
}

function countAdmitted(tickets: readonly HarnessTicket[]): number {
  return tickets.filter((ticket) => ticket.admission?.kind === 'admitted').length;
}

function arrivals(replica: StoreHarness, name: string, count: number): HarnessTicket[] {
  return Array.from({ length: count }, (_, i) => replica.arrive(`${name}-${i}`));
}

describe.each(STORES)('limits kept by %s', (kind) => {
  let replicas: readonly [StoreHarness, StoreHarness];

  const openReplicas = async (settings?: Partial<UpstreamSettings>, maxLimits?: number): Promise<void> => {
    replicas = await openStoreHarnesses(kind, settings, maxLimits === undefined ? {} : { maxLimits });
  };

  test('admit every request at once where no limit is known', async () => {
    await openReplicas();
    for (const replica of replicas) {
      const first = replica.arrive();
      await allDecided([first]);
      replica.send(first);
      replica.answer(first);
      const next = replica.arrive();
      expect(next.admission).toEqual({ kind: 'admitted' });
      replica.cancel(next);
    }
  });

  test('pace all replicas together at a known limit', AGAIN_IF_STALLED, async () => {
    const stalls = watchStalls();
    // Low enough for a busy machine whose timers are late.
    const rate = 20;
    await openReplicas(limitedTo(rate));
    const since = performance.now();
    const tickets = replicas.flatMap((replica, i) => arrivals(replica, `client-${i}`, 10));
    await allDecided(tickets);
    expect(countAdmitted(tickets)).toBe(20);
    const took = Math.max(...tickets.map(({ at }) => at)) - since;
    expect(took).toBeGreaterThan((0.9 * 1000 * 19) / rate);
    stalls.unlessStalled(() => expect(took).toBeLessThan((3 * 1000 * 19) / rate));
  });

  test('cut the rate of all after a rejection at one, and queue the next requests', async () => {
    await openReplicas(limitedTo(100));
    const [one, other] = replicas;
    const rejected = one.arrive();
    await allDecided([rejected]);
    one.send(rejected);
    one.answer(rejected, response(429));
    for (const replica of replicas) {
      await eventually(
        () => replica.gate.view(performance.now()).limits[0]?.rate ?? 0,
        (rate) => rate > 0 && rate < 100,
      );
    }
    const tickets = arrivals(other, 'late', 10);
    expect(countAdmitted(tickets)).toBeLessThan(3);
    await allDecided(tickets);
    expect(countAdmitted(tickets)).toBe(10);
  });

  test('stop all for the same Retry-After', AGAIN_IF_STALLED, async () => {
    const stalls = watchStalls();
    await openReplicas(OWN);
    const refs = [ofClient('key')];
    const [one, other] = replicas;
    const rejected = one.arrive('key', refs);
    await allDecided([rejected]);
    // The other replica knows the limit before.
    const early = other.arrive('key', refs);
    await allDecided([early]);
    other.cancel(early);
    one.send(rejected);
    const since = performance.now();
    one.answer(rejected, response(429, { retryAfterMs: 1200 }));
    await eventually(
      () => replicas.map((replica) => replica.store.findLimit(ofClient('key'))?.isBlocked(performance.now())),
      (blocked) => blocked.every((each) => each === true),
    );
    const tickets = replicas.flatMap((replica) => [1, 2, 3].map(() => replica.arrive('key', refs)));
    expect(countAdmitted(tickets)).toBe(0);
    await allDecided(tickets);
    expect(countAdmitted(tickets)).toBe(6);
    const stopped = Math.min(...tickets.map(({ at }) => at)) - since;
    // A stall while the clocks of two processes are compared shifts one against the other.
    stalls.unlessStalled(() => expect(stopped).toBeGreaterThan(1190));
  });

  test('send one probe for all while blocked', async () => {
    await openReplicas();
    const [one, other] = replicas;
    for (const replica of replicas) {
      const known = replica.arrive();
      await allDecided([known]);
      replica.send(known);
      replica.answer(known);
    }
    const failing = arrivals(one, 'failing', 10);
    await allDecided(failing);
    for (const ticket of failing) one.send(ticket);
    for (const ticket of failing) one.answer(ticket, failure('reset', true));
    await eventually(
      () => replicas.map((replica) => replica.gate.view(performance.now()).limits[0]?.state),
      (states) => states.every((state) => state === 'blocked'),
    );
    const tickets = [one, other].flatMap((replica, i) =>
      arrivals(replica, `waiting-${i}`, 3).map((ticket) => ({ seat: replica, standing: ticket })),
    );
    const all = tickets.map(({ standing: ticket }) => ticket);
    await eventually(
      () => countAdmitted(all),
      (admitted) => admitted > 0,
    );
    await pause(300);
    const probe = tickets.find(({ standing: ticket }) => ticket.admission?.kind === 'admitted');
    probe?.seat.send(probe.standing);
    await pause(100);
    expect(countAdmitted(all)).toBe(1);
    probe?.seat.answer(probe.standing);
    await allDecided(all);
    expect(countAdmitted(all)).toBe(6);
  });

  test('detect a limit on requests in flight, and enforce it across all', async () => {
    await openReplicas({ rate: { initialRate: 300, maxRate: 300, minRate: 0.1, cooldown: 1000 } });
    const limit = 6;
    const model = makeLimitModel({ kind: 'concurrency', limit });
    const counts = { accepted: 0, rejected: 0 };
    const since = performance.now();
    /** Takes 30 ms in steps: where timers are late, it takes longer in proportion to the delays between two requests. */
    const serve = async (): Promise<void> => {
      for (let step = 0; step < 10; step += 1) await pause(3);
    };
    /** The sum of the times from admission to response. */
    let busy = 0;
    /** @returns which share of the limit was used, and how many rejections there were for each accepted request */
    const measure = (): { readonly used: number; readonly wasted: number } => {
      const took = performance.now() - since;
      // The limit is probed by time: a machine that serves fewer than 80/s sees no fewer rejections.
      return { used: busy / (limit * took), wasted: counts.rejected / Math.max(counts.accepted, 0.08 * took) };
    };
    let figures: ReturnType<typeof measure> | undefined;
    /** Learning the limit costs some rejections and some use of it, no more than a longer run makes up for. */
    const isEnough = (): boolean => {
      if (figures !== undefined) return true;
      const { used, wasted } = measure();
      if (counts.accepted > 3000 || (counts.accepted > 350 && used > 0.5 && wasted < 0.15)) figures = { used, wasted };
      return figures !== undefined;
    };
    const live = async (replica: StoreHarness, client: string): Promise<void> => {
      while (!isEnough()) {
        const ticket = replica.arrive(client);
        await ticket.decided;
        if (ticket.admission?.kind !== 'admitted') {
          await pause(20);
          continue;
        }
        replica.send(ticket);
        const { accepted } = model.tryAcquire(performance.now());
        counts[accepted ? 'accepted' : 'rejected'] += 1;
        await (accepted ? serve() : pause(1));
        if (accepted) {
          model.release(performance.now());
          busy += performance.now() - ticket.at;
        }
        replica.answer(ticket, response(accepted ? 200 : 429));
      }
    };
    await Promise.all(
      replicas.flatMap((replica, i) => Array.from({ length: 8 }, (_, n) => live(replica, `client-${i}-${n}`))),
    );
    expect(figures?.wasted).toBeLessThan(0.15);
    expect(counts.accepted).toBeGreaterThan(300);
    expect(figures?.used).toBeGreaterThan(0.5);
  }, 300_000);

  test('limit the requests without a response at a service that only becomes slow', async () => {
    const workers = 2;
    await openReplicas({ rate: { ...upstreamSettings().rate, learnsFromLatency: true } });
    let waiting = 0;
    let answered = 0;
    const busyUntil = Array.from({ length: workers }, () => Promise.resolve());
    /** Each worker serves one request after the other. */
    const serve = async (): Promise<void> => {
      waiting += 1;
      const worker = answered % workers;
      answered += 1;
      busyUntil[worker] = (busyUntil[worker] ?? Promise.resolve()).then(() => pause(20));
      await busyUntil[worker];
      waiting -= 1;
    };
    const stopping = new AbortController();
    const live = async (replica: StoreHarness, client: string): Promise<void> => {
      while (!stopping.signal.aborted) {
        const ticket = replica.arrive(client);
        await ticket.decided;
        if (ticket.admission?.kind !== 'admitted') {
          await pause(20);
          continue;
        }
        replica.send(ticket);
        await serve();
        replica.answer(ticket);
      }
    };
    const few = replicas.map((replica, i) => live(replica, `first-${i}`));
    await eventually(
      () => answered,
      (count) => count > 100,
    );
    const many = replicas.flatMap((replica, i) => Array.from({ length: 15 }, (_, n) => live(replica, `${i}-${n}`)));
    for (const replica of replicas) {
      const places = await eventually(
        () => replica.gate.view(performance.now()).limits[0]?.concurrencyLimit ?? Number.POSITIVE_INFINITY,
        (limit) => limit < 15,
      );
      expect(places).toBeGreaterThan(0);
    }
    await eventually(
      () => waiting,
      (count) => count < 15,
    );
    stopping.abort();
    await Promise.all([...few, ...many]);
  }, 90_000);

  test('hold a client at all replicas once one of them has to, and no other client', async () => {
    await openReplicas();
    const [one, other] = replicas;
    const rejected = one.arrive('hasty');
    await allDecided([rejected]);
    one.send(rejected);
    one.answer(rejected, response(429, { retryAfterMs: 60_000 }));
    await eventually(
      () => other.gate.view(performance.now()).clients.byState.held,
      (held) => held === 1,
    );
    const again = other.arrive('hasty');
    expect(again.admission).toMatchObject({ kind: 'refused', why: 'held' });
    const patient = other.arrive('patient');
    await allDecided([patient]);
    expect(patient.admission).toEqual({ kind: 'admitted' });
  });

  describe('a spent quota', () => {
    const spent = response(403, { quota: { remaining: 0, limit: 60, resetIn: 60_000, window: 3_600_000 } });
    const serve = async (
      replica: StoreHarness,
      client: string,
      credential: string,
      outcome = response(200),
    ): Promise<void> => {
      const ticket = replica.arrive(client, [SHARED], credential);
      await allDecided([ticket]);
      expect(ticket.admission).toEqual({ kind: 'admitted' });
      replica.send(ticket);
      replica.answer(ticket, outcome);
    };
    const isStopped = (replica: StoreHarness): boolean =>
      replica.store.findLimit(SHARED)?.isBlocked(performance.now()) === true;

    test('holds only the reported credential, at all of them', async () => {
      await openReplicas();
      const [one, other] = replicas;
      for (const replica of replicas) await serve(replica, 'b', 'Bearer b');
      await serve(one, 'a', '', spent);
      await eventually(
        () => replicas.every(isStopped),
        (stopped) => stopped,
      );
      for (let i = 0; i < 5; i += 1) await serve(other, 'b', 'Bearer b');
      for (const replica of replicas) {
        await eventually(
          () => replica.arrive('a').admission,
          (admission) => admission?.kind === 'refused' && admission.why === 'held',
        );
      }
      for (const replica of replicas) await serve(replica, 'b', 'Bearer b');
      expect(replicas.map(isStopped)).toEqual([false, false]);
    });

    test('does not block when reported to each of two credentials', async () => {
      await openReplicas();
      const [one, other] = replicas;
      await serve(
        other,
        'b',
        'Bearer b',
        response(200, { quota: { remaining: 4999, limit: 5000, resetIn: 60_000, window: undefined } }),
      );
      await serve(one, 'a', '', spent);
      await serve(
        other,
        'b',
        'Bearer b',
        response(200, { quota: { remaining: 4998, limit: 5000, resetIn: 60_000, window: undefined } }),
      );
      await eventually(
        () => replicas.map(isStopped),
        (stopped) => !stopped.includes(true),
      );
      for (const replica of replicas) await serve(replica, 'b', 'Bearer b');
      expect(replicas.map(isStopped)).toEqual([false, false]);
    });

    test('blocks all when reported to every credential', async () => {
      await openReplicas();
      const [one, other] = replicas;
      const low = response(200, { quota: { remaining: 8, limit: 60, resetIn: 60_000, window: 3_600_000 } });
      await serve(one, 'a', 'Bearer shared', low);
      await pause(1000);
      await serve(other, 'b', 'Bearer shared', spent);
      await eventually(
        () => replicas.every(isStopped),
        (stopped) => stopped,
      );
      for (const replica of replicas) {
        // On a busy machine, news of the stop may come after it.
        const admission = await eventually(
          () => replica.arrive('c', [SHARED], 'Bearer shared').admission,
          (decided) => decided?.kind === 'refused' && decided.why === 'blocked',
        );
        expect(admission).toMatchObject({ kind: 'refused', why: 'blocked' });
      }
    });
  });

  test.each(['client', 'credential'] as const)('create, keep and evict limits of scope %s', async (scope) => {
    await openReplicas({ scope }, 2);
    const [replica] = replicas;
    const refOf = (key: string): LimitRef => ({ upstream: 'up', nested: '', scope, key });
    for (const key of ['a', 'b', 'c']) {
      expect(replica.store.findLimit(refOf(key))).toBeUndefined();
      const ticket = replica.arrive(key, [refOf(key)]);
      expect(ticket.admission).toEqual({ kind: 'admitted' });
      replica.send(ticket);
      replica.answer(ticket, response(429));
      const made = replica.store.findLimit(refOf(key));
      expect(made?.ref).toEqual(refOf(key));
      expect(replica.store.findLimit(refOf(key))).toBe(made);
    }
    expect(['a', 'b', 'c'].map((key) => replica.store.findLimit(refOf(key)) !== undefined)).toEqual([
      false,
      true,
      true,
    ]);
  });

  describe('nested limits', () => {
    const endpoint = (key: string): LimitRef => ({ upstream: 'up', nested: 'endpoint', scope: 'upstream', key });
    const nested = (rate: number): UpstreamSettings['nested'] => [
      { name: 'endpoint', scope: 'upstream', isKeyed: true, rate: limitedTo(rate).rate! },
    ];

    test('pace all together, each endpoint separately', AGAIN_IF_STALLED, async () => {
      const stalls = watchStalls();
      await openReplicas({ ...limitedTo(500), nested: nested(20) });
      const since = performance.now();
      const tickets = replicas.flatMap((replica, i) =>
        ['a', 'b'].flatMap((key) =>
          Array.from({ length: 5 }, (_, n) => replica.arrive(`${key}-${i}-${n}`, [SHARED, endpoint(key)])),
        ),
      );
      await allDecided(tickets);
      stalls.unlessStalled(() => expect(countAdmitted(tickets)).toBe(20));
      // Ten at each endpoint, of which the first may be sent at once.
      const took = Math.max(...tickets.map(({ at }) => at)) - since;
      expect(took).toBeGreaterThanOrEqual(9 * 50 - 11);
    });

    test('learn from reports about themselves, and from none about another', async () => {
      await openReplicas({ ...limitedTo(500), nested: nested(100) });
      const [one, other] = replicas;
      const ticket = one.arrive('client', [SHARED, endpoint('a')]);
      await allDecided([ticket]);
      one.send(ticket);
      one.answer(ticket, response(429, { limit: 'endpoint' }));
      // The next request at another replica gets the new terms.
      const asks = (): HarnessTicket => other.arrive('asks', [SHARED, endpoint('a')]);
      const first = asks();
      await allDecided([first]);
      other.cancel(first);
      await eventually(
        () => other.store.findLimit(endpoint('a'))?.meter.ceiling,
        (ceiling) =>
          ceiling !== undefined && ceiling <= 100 && other.store.findLimit(endpoint('a'))?.meter.phase !== 'restoring',
      );
      expect(other.store.findLimit(SHARED)?.meter.phase).toBe('restoring');
      expect(other.store.findLimit(SHARED)?.meter.ceiling).toBe(500);
    });
  });

  test('give the tokens of cancelled requests to other replicas', async () => {
    await openReplicas({ ...limitedTo(5), queue: { maxWait: 120_000, maxDepth: 1000 } });
    const [one, other] = replicas;
    const leaving = arrivals(one, 'leaving', 250);
    const staying = arrivals(other, 'staying', 4);
    const since = performance.now();
    await pause(50);
    for (const ticket of leaving) one.cancel(ticket);
    await allDecided(staying);
    expect(countAdmitted(staying)).toBe(4);
    // All of them would take 50 s.
    expect(performance.now() - since).toBeLessThan(25_000);
  });
});
