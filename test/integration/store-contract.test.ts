/** What a gate may rely on, whoever keeps its limits: this process, the primary of its workers, or Redis. */
import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import type { UpstreamSettings } from '../../src/store/memory-store.ts';
import { makeModel } from '../../src/simulator/limit-models/limit-model-spec.ts';
import { pause } from '../support/pause.ts';
import { failure, limitedTo, response, SHARED } from '../support/policy.ts';
import type { Seat, Standing } from '../support/seats.ts';
import { STORES, takeSeats } from '../support/seats.ts';
import { eventually } from '../support/tidegate.ts';

const OWN: Partial<UpstreamSettings> = { ...limitedTo(1000), scope: 'client' };

function ofClient(key: string): LimitRef {
  return { upstream: 'up', nested: '', scope: 'client', key };
}

function told(standings: readonly Standing[]): Promise<unknown> {
  return eventually(
    () => standings.filter((standing) => standing.told === undefined).length,
    (waiting) => waiting === 0,
    10_000,
  );
}

function countAdmitted(standings: readonly Standing[]): number {
  return standings.filter((standing) => standing.told?.kind === 'admitted').length;
}

function arrivals(seat: Seat, name: string, count: number): Standing[] {
  return Array.from({ length: count }, (_, i) => seat.arrive(`${name}-${i}`));
}

describe.each(STORES)('limits kept by %s', (kind) => {
  let seats: readonly [Seat, Seat];

  const take = async (settings?: Partial<UpstreamSettings>, maxLimits?: number): Promise<void> => {
    seats = await takeSeats(kind, settings, maxLimits === undefined ? {} : { maxLimits });
  };

  test('where nothing limits, who arrives is admitted at once', async () => {
    await take();
    for (const seat of seats) {
      const first = seat.arrive();
      await told([first]);
      seat.send(first);
      seat.answer(first);
      const next = seat.arrive();
      expect(next.told).toEqual({ kind: 'admitted' });
      seat.cancel(next);
    }
  });

  test('a limit that is known paces all of them together', async () => {
    await take(limitedTo(50));
    const since = performance.now();
    const standings = seats.flatMap((seat, i) => arrivals(seat, `client-${i}`, 15));
    await told(standings);
    expect(countAdmitted(standings)).toBe(30);
    const took = Math.max(...standings.map(({ at }) => at)) - since;
    expect(took).toBeGreaterThan((0.9 * 1000 * 29) / 50);
    expect(took).toBeLessThan((3 * 1000 * 29) / 50);
  });

  test('a rejection at one cuts the rate of all, and who comes then waits', async () => {
    await take(limitedTo(100));
    const [one, other] = seats;
    const rejected = one.arrive();
    await told([rejected]);
    one.send(rejected);
    one.answer(rejected, response(429));
    for (const seat of seats) {
      await eventually(
        () => seat.gate.view(performance.now()).limits[0]?.rate ?? 0,
        (rate) => rate > 0 && rate < 100,
      );
    }
    const standings = arrivals(other, 'late', 10);
    expect(countAdmitted(standings)).toBeLessThan(3);
    await told(standings);
    expect(countAdmitted(standings)).toBe(10);
  });

  test('a Retry-After stops all for as long', async () => {
    await take(OWN);
    const refs = [ofClient('key')];
    const [one, other] = seats;
    const rejected = one.arrive('key', refs);
    await told([rejected]);
    // The other one knows of the limit before.
    const early = other.arrive('key', refs);
    await told([early]);
    other.cancel(early);
    one.send(rejected);
    const since = performance.now();
    one.answer(rejected, response(429, { retryAfter: 700 }));
    await eventually(
      () => seats.map((seat) => seat.store.find(ofClient('key'))?.isBlocked(performance.now())),
      (blocked) => blocked.every((each) => each === true),
    );
    const standings = seats.flatMap((seat) => [1, 2, 3].map(() => seat.arrive('key', refs)));
    expect(countAdmitted(standings)).toBe(0);
    await told(standings);
    expect(countAdmitted(standings)).toBe(6);
    expect(Math.min(...standings.map(({ at }) => at)) - since).toBeGreaterThan(690);
  });

  test('where nothing gets through, one probes for all', async () => {
    await take();
    const [one, other] = seats;
    for (const seat of seats) {
      const known = seat.arrive();
      await told([known]);
      seat.send(known);
      seat.answer(known);
    }
    const failing = arrivals(one, 'failing', 10);
    await told(failing);
    for (const standing of failing) one.send(standing);
    for (const standing of failing) one.answer(standing, failure('reset', true));
    await eventually(
      () => seats.map((seat) => seat.gate.view(performance.now()).limits[0]?.state),
      (states) => states.every((state) => state === 'blocked'),
    );
    const standings = [one, other].flatMap((seat, i) =>
      arrivals(seat, `waiting-${i}`, 3).map((standing) => ({ seat, standing })),
    );
    const all = standings.map(({ standing }) => standing);
    await eventually(
      () => countAdmitted(all),
      (admitted) => admitted > 0,
    );
    await pause(300);
    const probe = standings.find(({ standing }) => standing.told?.kind === 'admitted');
    probe?.seat.send(probe.standing);
    await pause(100);
    expect(countAdmitted(all)).toBe(1);
    probe?.seat.answer(probe.standing);
    await told(all);
    expect(countAdmitted(all)).toBe(6);
  });

  test('a limit on requests in flight is felt, and kept to by all together', async () => {
    await take({ rate: { initialRate: 300, maxRate: 300, minRate: 0.1, cooldown: 1000 } });
    const model = makeModel({ kind: 'concurrency', limit: 6 });
    const counts = { accepted: 0, rejected: 0 };
    const until = performance.now() + 3000;
    const live = async (seat: Seat, client: string): Promise<void> => {
      while (performance.now() < until) {
        const standing = seat.arrive(client);
        await told([standing]);
        if (standing.told?.kind !== 'admitted') {
          await pause(20);
          continue;
        }
        seat.send(standing);
        const { accepted } = model.arrive(performance.now());
        counts[accepted ? 'accepted' : 'rejected'] += 1;
        await pause(accepted ? 30 : 1);
        if (accepted) model.leave(performance.now());
        seat.answer(standing, response(accepted ? 200 : 429));
      }
    };
    await Promise.all(seats.flatMap((seat, i) => Array.from({ length: 8 }, (_, n) => live(seat, `client-${i}-${n}`))));
    // What is found out is dear at first; of 600 that it could have served.
    expect(counts.rejected).toBeLessThan(0.15 * counts.accepted);
    expect(counts.accepted).toBeGreaterThan(300);
  });

  test('a client that one was told to hold is held by all, and nobody else is', async () => {
    await take();
    const [one, other] = seats;
    const rejected = one.arrive('hasty');
    await told([rejected]);
    one.send(rejected);
    one.answer(rejected, response(429, { retryAfter: 60_000 }));
    await eventually(
      () => other.gate.view(performance.now()).clients.byState.held,
      (held) => held === 1,
    );
    const again = other.arrive('hasty');
    expect(again.told).toMatchObject({ kind: 'refused', why: 'held' });
    const patient = other.arrive('patient');
    await told([patient]);
    expect(patient.told).toEqual({ kind: 'admitted' });
  });

  describe('a spent quota', () => {
    const spent = response(403, { quota: { remaining: 0, limit: 60, resetIn: 60_000, window: 3_600_000 } });
    const serve = async (seat: Seat, client: string, credential: string, outcome = response(200)): Promise<void> => {
      const standing = seat.arrive(client, [SHARED], credential);
      await told([standing]);
      expect(standing.told).toEqual({ kind: 'admitted' });
      seat.send(standing);
      seat.answer(standing, outcome);
    };
    const isStopped = (seat: Seat): boolean => seat.store.find(SHARED)?.isBlocked(performance.now()) === true;

    test('told at one seat stops no other credential at any, and who was told is held at all', async () => {
      await take();
      const [one, other] = seats;
      for (const seat of seats) await serve(seat, 'b', 'Bearer b');
      await serve(one, 'a', '', spent);
      await eventually(
        () => seats.every(isStopped),
        (stopped) => stopped,
      );
      for (let i = 0; i < 5; i += 1) await serve(other, 'b', 'Bearer b');
      for (const seat of seats) {
        await eventually(
          () => seat.arrive('a').told,
          (admission) => admission?.kind === 'refused' && admission.why === 'held',
        );
      }
      for (const seat of seats) await serve(seat, 'b', 'Bearer b');
      expect(seats.map(isStopped)).toEqual([false, false]);
    });

    test('told of each of two is a stop for neither', async () => {
      await take();
      const [one, other] = seats;
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
        () => seats.map(isStopped),
        (stopped) => !stopped.includes(true),
      );
      for (const seat of seats) await serve(seat, 'b', 'Bearer b');
      expect(seats.map(isStopped)).toEqual([false, false]);
    });

    test('that all are told of stops all', async () => {
      await take();
      const [one, other] = seats;
      const low = response(200, { quota: { remaining: 8, limit: 60, resetIn: 60_000, window: 3_600_000 } });
      await serve(one, 'a', 'Bearer shared', low);
      await pause(200);
      await serve(other, 'b', 'Bearer shared', spent);
      await eventually(
        () => seats.every(isStopped),
        (stopped) => stopped,
      );
      for (const seat of seats) {
        expect(seat.arrive('c', [SHARED], 'Bearer shared').told).toMatchObject({ kind: 'refused', why: 'blocked' });
      }
    });
  });

  test.each(['client', 'credential'] as const)(
    'limits of scope %s are made when felt, kept, and forgotten',
    async (scope) => {
      await take({ scope }, 2);
      const [seat] = seats;
      const refOf = (key: string): LimitRef => ({ upstream: 'up', nested: '', scope, key });
      for (const key of ['a', 'b', 'c']) {
        expect(seat.store.find(refOf(key))).toBeUndefined();
        const standing = seat.arrive(key, [refOf(key)]);
        expect(standing.told).toEqual({ kind: 'admitted' });
        seat.send(standing);
        seat.answer(standing, response(429));
        const made = seat.store.find(refOf(key));
        expect(made?.ref).toEqual(refOf(key));
        expect(seat.store.find(refOf(key))).toBe(made);
      }
      expect(['a', 'b', 'c'].map((key) => seat.store.find(refOf(key)) !== undefined)).toEqual([false, true, true]);
    },
  );

  describe('limits nested in one of all', () => {
    const endpoint = (key: string): LimitRef => ({ upstream: 'up', nested: 'endpoint', scope: 'upstream', key });
    const nested = (rate: number): UpstreamSettings['nested'] => [
      { name: 'endpoint', scope: 'upstream', isKeyed: true, rate: limitedTo(rate).rate! },
    ];

    test('pace all of them together, each endpoint by itself', async () => {
      await take({ ...limitedTo(500), nested: nested(20) });
      const since = performance.now();
      const standings = seats.flatMap((seat, i) =>
        ['a', 'b'].flatMap((key) =>
          Array.from({ length: 5 }, (_, n) => seat.arrive(`${key}-${i}-${n}`, [SHARED, endpoint(key)])),
        ),
      );
      await told(standings);
      expect(countAdmitted(standings)).toBe(20);
      // Ten at each endpoint, of which the first may leave at once.
      const took = Math.max(...standings.map(({ at }) => at)) - since;
      expect(took).toBeGreaterThanOrEqual(9 * 50 - 11);
    });

    test('learn from what the others were told, and from nothing that is said of another', async () => {
      await take({ ...limitedTo(500), nested: nested(100) });
      const [one, other] = seats;
      const standing = one.arrive('client', [SHARED, endpoint('a')]);
      await told([standing]);
      one.send(standing);
      one.answer(standing, response(429, { limit: 'endpoint' }));
      // Whoever comes there anew hears of it.
      const asks = (): Standing => other.arrive('asks', [SHARED, endpoint('a')]);
      const first = asks();
      await told([first]);
      other.cancel(first);
      await eventually(
        () => other.store.find(endpoint('a'))?.meter.ceiling,
        (ceiling) =>
          ceiling !== undefined && ceiling <= 100 && other.store.find(endpoint('a'))?.meter.phase !== 'restoring',
        5000,
      );
      expect(other.store.find(SHARED)?.meter.phase).toBe('restoring');
      expect(other.store.find(SHARED)?.meter.ceiling).toBe(500);
    });
  });

  test('tokens of those who go away are used by others', async () => {
    await take(limitedTo(10));
    const [one, other] = seats;
    const leaving = arrivals(one, 'leaving', 8);
    const staying = arrivals(other, 'staying', 8);
    const since = performance.now();
    await pause(50);
    for (const standing of leaving) one.cancel(standing);
    await told(staying);
    expect(countAdmitted(staying)).toBe(8);
    // Sixteen would take a second and a half.
    expect(performance.now() - since).toBeLessThan(1350);
  });
});
