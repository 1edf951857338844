import { describe, expect, test } from 'vitest';
import type { CalendarQuotaSettings } from '../../../src/core/quota/calendar/calendar-quota.ts';
import type { QueuedTicket } from '../../support/core/call-record.ts';
import { DAY, HOUR, quotaSettings, UTC_HOUR } from '../../support/core/quota-builders.ts';
import { failure, limitedTo, response, routePolicy, retryPolicy } from '../../support/core/policy-builders.ts';
import { World, type WorldOptions } from '../../support/core/world.ts';

const ADMITTED = { kind: 'admitted' };

/** A world that begins with the day, an hour before noon. */
function worldWith(quotas: readonly CalendarQuotaSettings[], options: WorldOptions = {}): World {
  const world = new World({ random: () => 0.5, ...options, upstream: { quotas, ...options.upstream } });
  world.now = 11 * HOUR;
  return world;
}

/** Requests that are admitted, sent and answered one after another. */
function serveMany(world: World, count: number): void {
  for (let i = 0; i < count; i += 1) {
    const queued = world.arrive();
    expect(queued.admission).toEqual(ADMITTED);
    world.serve(queued);
  }
}

function remaining(world: World): number | undefined {
  return world.gate.view(world.now).quotas?.[0]?.remaining;
}

const hourly = (settings: Partial<CalendarQuotaSettings> = {}): CalendarQuotaSettings =>
  quotaSettings({ name: 'hour', limit: 3, period: UTC_HOUR, ...settings });

describe('a gate with a quota', () => {
  test('refuses requests until the reset once it is used up, and admits them then', () => {
    const world = worldWith([quotaSettings({ limit: 3 })]);
    serveMany(world, 3);
    expect(world.arrive().admission).toEqual({ kind: 'refused', why: 'quota_exceeded', retryAfterMs: 13 * HOUR });
    world.runUntil(DAY);
    serveMany(world, 3);
    expect(world.arrive().admission).toMatchObject({ why: 'quota_exceeded', retryAfterMs: DAY });
  });

  test('counts requests that are admitted and not sent yet', () => {
    const world = worldWith([quotaSettings({ limit: 2 })]);
    const admitted = [world.arrive(), world.arrive()];
    expect(world.arrive().admission).toMatchObject({ why: 'quota_exceeded' });
    const [first] = admitted;
    if (first !== undefined) world.gate.cancel(first.ticket, world.now);
    expect(world.arrive().admission).toEqual(ADMITTED);
  });

  test('lets a client return in a second while what is left is only reserved, and not before the reset once it is sent', () => {
    const world = worldWith([quotaSettings({ limit: 2 }), quotaSettings({ name: 'large', limit: 100 })]);
    const [first, second] = [world.arrive(), world.arrive()];
    expect(world.arrive().admission).toEqual({ kind: 'refused', why: 'quota_exceeded', retryAfterMs: 1000 });
    world.gate.cancel(first.ticket, world.now);
    world.serve(second);
    serveMany(world, 1);
    expect(world.arrive().admission).toMatchObject({ why: 'quota_exceeded', retryAfterMs: 13 * HOUR });
  });

  test('gives back an attempt that was not sent, and keeps one whose fate is unknown', () => {
    const world = worldWith([quotaSettings({ limit: 2 })]);
    const [unsent, lost] = [world.arrive(), world.arrive()];
    for (const queued of [unsent, lost]) world.send(queued);
    expect(remaining(world)).toBe(0);
    world.answer(unsent, failure('connect', false));
    world.answer(lost, failure('reset', true));
    expect(remaining(world)).toBe(1);
  });

  test('counts each attempt of a request that is retried', () => {
    const statuses = [503, 503, 200];
    const world = worldWith([quotaSettings({ limit: 10 })], {
      respond: () => ({ outcome: response(statuses.shift() ?? 200), after: 10 }),
    });
    const record = world.call({ policy: routePolicy({ retry: retryPolicy({ attempts: 3 }) }) });
    world.runUntil(12 * HOUR);
    expect(record.verdict).toMatchObject({ kind: 'forward' });
    expect(remaining(world)).toBe(7);
  });

  test('makes no retry that the quota has no room for', () => {
    const world = worldWith([quotaSettings({ limit: 1 })], {
      respond: () => ({ outcome: response(503), after: 10 }),
    });
    const record = world.call({ policy: routePolicy() });
    world.runUntil(11 * HOUR + 60_000);
    expect(record.verdict).toMatchObject({ kind: 'forward', attempts: 1 });
  });

  test('queues a request that the reset serves in time', () => {
    const world = worldWith([hourly({ limit: 1 })]);
    world.now = 12 * HOUR - 400;
    serveMany(world, 1);
    const waiting = world.arrive();
    expect(waiting.admission).toBeUndefined();
    world.runUntil(12 * HOUR);
    expect([waiting.admission, waiting.at]).toEqual([ADMITTED, 12 * HOUR]);
  });

  test('refuses queued requests at once when the quota is used up before their turn', () => {
    const world = worldWith([quotaSettings({ limit: 3 })], { upstream: limitedTo(10) });
    const arrivals: QueuedTicket[] = Array.from({ length: 6 }, () => world.arrive());
    const [first, second] = arrivals;
    if (first !== undefined) world.serve(first);
    world.runUntil(11 * HOUR + 100);
    if (second !== undefined) world.serve(second);
    world.runUntil(11 * HOUR + 200);
    expect(arrivals.slice(0, 3).map(({ admission }) => admission)).toEqual([ADMITTED, ADMITTED, ADMITTED]);
    // The third has not been sent yet: if it cannot be, there is room for one of these.
    expect(arrivals.slice(3).map(({ admission, at }) => [admission, at - 11 * HOUR])).toEqual(
      [3, 4, 5].map(() => [{ kind: 'refused', why: 'quota_exceeded', retryAfterMs: 1000 }, 200]),
    );
    expect(world.gate.nextWake()).toBeUndefined();
  });

  test('leaves the reserve to requests of a class with a weight above 1', () => {
    const world = worldWith([quotaSettings({ limit: 10, reserve: 2 })]);
    serveMany(world, 8);
    const priority = (): QueuedTicket => world.arrive({ client: 'important', weight: 4 });
    expect(world.arrive().admission).toMatchObject({ why: 'quota_exceeded' });
    world.serve(priority());
    expect(world.arrive({ weight: 0.5 }).admission).toMatchObject({ why: 'quota_exceeded' });
    const last = priority();
    expect(last.admission).toEqual(ADMITTED);
    world.send(last);
    expect(priority().admission).toMatchObject({ why: 'quota_exceeded', retryAfterMs: 13 * HOUR });
  });

  test('serves a request with priority past others that wait for the reset', () => {
    const world = worldWith([hourly({ limit: 2, reserve: 1 })]);
    world.now = 12 * HOUR - 400;
    serveMany(world, 1);
    const [waiting, important] = [world.arrive(), world.arrive({ client: 'important', weight: 4 })];
    world.runUntil(12 * HOUR - 390);
    expect([waiting.admission, important.admission]).toEqual([undefined, ADMITTED]);
    world.serve(important);
    world.runUntil(12 * HOUR);
    expect(waiting.admission).toEqual(ADMITTED);
  });

  test('spaces requests evenly with pace even, and refuses what would wait too long as over_share', () => {
    const world = worldWith([hourly({ limit: 7300, pace: 'even' })]);
    const arrivals = Array.from({ length: 4 }, () => world.arrive());
    expect(arrivals.map(({ admission }) => admission?.kind)).toEqual(['admitted', undefined, undefined, 'refused']);
    expect(arrivals[3]?.admission).toMatchObject({ why: 'over_share' });
    world.runUntil(11 * HOUR + 1100);
    expect(arrivals.slice(1, 3).map(({ at }) => Math.round((at - 11 * HOUR) / 10))).toEqual([49, 99]);
  });

  test('applies the longest of several quotas', () => {
    const world = worldWith([quotaSettings({ limit: 4 }), hourly()]);
    serveMany(world, 3);
    expect(world.arrive().admission).toMatchObject({ why: 'quota_exceeded', retryAfterMs: HOUR });
    world.runUntil(12 * HOUR);
    serveMany(world, 1);
    expect(world.arrive().admission).toMatchObject({ why: 'quota_exceeded', retryAfterMs: 12 * HOUR });
  });

  test('applies to the limits of single clients, too', () => {
    const world = worldWith([quotaSettings({ limit: 2 })], { upstream: { scope: 'client' } });
    const refs = (key: string) => [{ upstream: 'up', nested: '', scope: 'client' as const, key }];
    for (const client of ['a', 'b']) world.serve(world.arrive({ client, refs: refs(client) }));
    expect(world.arrive({ client: 'c', refs: refs('c') }).admission).toMatchObject({ why: 'quota_exceeded' });
  });

  test('counts in observe mode and refuses nothing', () => {
    const world = worldWith([quotaSettings({ limit: 2 })], { mode: 'observe' });
    for (let i = 0; i < 2; i += 1) world.serve(world.arrive());
    const third = world.arrive();
    expect(third.admission).toEqual({
      kind: 'admitted',
      wouldHave: { decision: 'refused', why: 'quota_exceeded' },
    });
    world.serve(third);
    expect(world.gate.view(world.now).quotas).toMatchObject([{ remaining: 0, exhaustedAt: 11 * HOUR }]);
    world.now = DAY;
    expect(remaining(world)).toBe(2);
  });

  test('counts a request that an ingress sends', () => {
    const world = worldWith([quotaSettings({ limit: 1 })]);
    const queued = world.arrive({ isSentExternally: true });
    world.gate.onGranted(queued.ticket, world.now);
    expect(world.arrive({ isSentExternally: true }).admission).toMatchObject({ why: 'quota_exceeded' });
  });

  test('names the quota in the details of a refusal', () => {
    const world = worldWith([quotaSettings({ limit: 10, reserve: 9 })]);
    serveMany(world, 1);
    const { ticket } = world.arrive();
    expect(world.gate.decisionDetails(ticket, world.now).quota).toEqual({
      name: 'day',
      limit: 10,
      hasReserveLeft: true,
      untilReset: 13 * HOUR,
      resetAt: DAY,
    });
  });
});
