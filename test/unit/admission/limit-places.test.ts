import { describe, expect, test } from 'vitest';
import { ActiveClients } from '../../../src/core/admission/active-clients.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import { Limit } from '../../../src/core/limits/limit.ts';
import { LimitPlaces, releasePlacesOnResponse } from '../../../src/core/limits/limit-places.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import { PlacesGate } from '../../support/core/places-gate.ts';
import { SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const POLITE = ['a', 'b', 'c'];
const PLACES = 9;
/** As many as nine places serve of which a client with slow requests holds some. */
const THROUGHPUT = 80;

interface Setting {
  readonly interval?: number;
  /** Before the greedy client repeats a refused request, instead of the Retry-After. */
  readonly pause?: number | undefined;
  readonly body?: number;
  /** Rejections have shown the limit; else latency has. */
  readonly isRejecting?: boolean;
}

/** Three clients, each with a request of 50 ms every `interval`. From 4 s on, another one has up to 40 requests at a time. */
function besideGreedy(
  takes: number,
  { interval = 100, pause, body = 0, isRejecting = false }: Setting = {},
): PlacesGate {
  const at = new PlacesGate(PLACES, isRejecting ? undefined : THROUGHPUT);
  for (const [i, client] of POLITE.entries()) at.openLoop({ client, takes: 50 }, interval, (i * interval) / 3);
  at.run(4000);
  at.closedLoop({ client: 'greedy', takes, body }, 40, 4000, pause);
  return at;
}

function servedShares(at: PlacesGate): number[] {
  return POLITE.map((client) => at.counts(client).servedShare);
}

function longestWait(at: PlacesGate): number {
  return Math.max(...POLITE.flatMap((client) => at.counts(client).waits));
}

/** Runs for 5 s, and counts only these. */
function runFiveSeconds(at: PlacesGate): void {
  for (const client of [...POLITE, 'greedy']) at.counts(client).reset();
  at.run(at.now + 5000);
}

describe('a client whose requests hold their places 30 times as long as those of others', () => {
  test.each([
    ['that returns at its Retry-After', undefined],
    ['that ignores its Retry-After', 50],
  ])('%s leaves others the places that they need', (_, pause) => {
    const at = besideGreedy(1500, { pause });
    for (let i = 0; i < 12; i += 1) {
      runFiveSeconds(at);
      for (const share of servedShares(at)) expect(share).toBeGreaterThan(0.97);
      expect(longestWait(at)).toBeLessThan(60);
      // It may hold more than its share, a quarter of nine, while others do not need it.
      expect(at.counts('greedy').mostHeld).toBeGreaterThanOrEqual(4);
      expect(at.counts('greedy').served).toBeGreaterThanOrEqual(12);
    }
  });

  test('leaves them also if its requests take longer than the whole test', () => {
    const at = besideGreedy(1e6, { pause: 50 });
    for (let i = 0; i < 6; i += 1) {
      runFiveSeconds(at);
      for (const share of servedShares(at)) expect(share).toBeGreaterThan(0.97);
    }
    expect(at.counts('greedy').held).toBeGreaterThanOrEqual(3);
  });

  test('leaves others their share if they need all of it', () => {
    const at = besideGreedy(1500, { interval: 25, pause: 50 });
    runFiveSeconds(at);
    for (let i = 0; i < 6; i += 1) {
      runFiveSeconds(at);
      for (const share of servedShares(at)) expect(share).toBeGreaterThan(0.97);
    }
    expect(at.counts('greedy').mostHeld).toBe(3);
  });

  test('leaves them a place although they ask rarely', () => {
    const at = besideGreedy(1500, { interval: 1000, pause: 50 });
    runFiveSeconds(at);
    for (let i = 0; i < 6; i += 1) {
      runFiveSeconds(at);
      expect(servedShares(at)).toEqual([1, 1, 1]);
      expect(longestWait(at)).toBe(0);
      expect(at.counts('greedy').mostHeld).toBe(7);
    }
  });

  test('is asked to return as fast as it releases its own places', () => {
    const at = besideGreedy(1500);
    at.run(10_000);
    at.counts('greedy').reset();
    at.run(40_000);
    const { refusals, served } = at.counts('greedy');
    // It releases four a second or so, and 34 of its requests take turns.
    expect(served).toBeGreaterThan(90);
    expect(refusals.length).toBeLessThan(served);
    for (const { retryAfterMs } of refusals) expect(retryAfterMs).toBeGreaterThan(5000);
    for (const { retryAfterMs } of refusals) expect(retryAfterMs).toBeLessThan(13_000);
  });
});

describe('a client that asks for more than its share of the places', () => {
  test('uses all of them if its requests take as long as those of others', () => {
    const at = besideGreedy(50, { pause: 50 });
    runFiveSeconds(at);
    for (let i = 0; i < 3; i += 1) {
      at.mostHeld = 0;
      runFiveSeconds(at);
      for (const share of servedShares(at)) expect(share).toBeGreaterThan(0.97);
      expect(at.mostHeld).toBe(PLACES);
    }
  });

  test('has all of them once others have not asked for four seconds', () => {
    const at = new PlacesGate(PLACES, THROUGHPUT);
    at.openLoop({ client: 'a', takes: 50 }, 1e6, 0); // its response shows the limit
    for (const client of ['a', 'b']) at.openLoop({ client, takes: 50 }, 1e6, 900);
    at.run(1000);
    at.closedLoop({ client: 'greedy', takes: 1500 }, 40, 1000, 50);
    at.run(4899);
    expect(at.counts('greedy').mostHeld).toBe(7);
    at.run(4900);
    expect(at.counts('greedy').held).toBe(PLACES);
  });

  test('leaves one to others that ask every quarter of a minute, though its requests never end', () => {
    const at = new PlacesGate(PLACES, THROUGHPUT);
    for (const [i, client] of POLITE.entries()) at.openLoop({ client, takes: 50 }, 15_000, 300 * i);
    at.run(1000);
    at.closedLoop({ client: 'greedy', takes: 1e9 }, 40, 1000, 50);
    at.run(119_000);
    expect(servedShares(at)).toEqual([1, 1, 1]);
    expect(at.counts('greedy').held).toBe(PLACES - 1);
  });

  test('has all of them a minute after the last request of others, if its requests never end', () => {
    const at = new PlacesGate(PLACES, THROUGHPUT);
    for (const client of POLITE) at.openLoop({ client, takes: 50 }, 1e6, 900);
    at.run(1000);
    at.closedLoop({ client: 'greedy', takes: 1e9 }, 40, 1000, 50);
    at.run(60_899);
    expect(at.counts('greedy').mostHeld).toBe(PLACES - 1);
    at.run(60_900);
    expect(at.counts('greedy').held).toBe(PLACES);
  });

  test('yields to those with less than their share that wait, though its requests take only three times as long', () => {
    const at = new PlacesGate(PLACES, 150);
    for (const [i, client] of POLITE.entries()) at.openLoop({ client, takes: 50 }, 24, 8 * i);
    at.closedLoop({ client: 'greedy', takes: 150 }, 12, 1000);
    at.run(5000);
    for (let i = 0; i < 4; i += 1) {
      runFiveSeconds(at);
      for (const share of servedShares(at)) expect(share).toBeGreaterThan(0.95);
    }
  });

  test('leaves others some where a response counts until its end', () => {
    const at = besideGreedy(10, { body: 1490, pause: 50, isRejecting: true });
    for (let i = 0; i < 12; i += 1) {
      runFiveSeconds(at);
      for (const share of servedShares(at)) expect(share).toBeGreaterThan(0.97);
    }
  });

  test('holds none with a response that is being received, where requests wait for their response only', () => {
    const at = new PlacesGate(PLACES, THROUGHPUT);
    for (const [i, client] of POLITE.entries()) at.openLoop({ client, takes: 50 }, 100, i * 30);
    for (let i = 0; i < 40; i += 1) at.openLoop({ client: 'downloads', takes: 20, body: 1e6 }, 1e6, 1000 + 100 * i);
    at.openLoop({ client: 'downloads', takes: 50 }, 50, 6000);
    at.run(6000);
    at.counts('downloads').reset();
    at.run(12_000);
    expect(at.counts('downloads').servedShare).toBeGreaterThan(0.97);
    expect(Math.max(...at.counts('downloads').waits)).toBe(0);
  });
});

/** Of a limit of nine places that another process keeps. */
class MemberMeter extends LocalMeter {
  readonly tokens = 1;

  override get concurrencyLimit(): number {
    return PLACES;
  }
}

test.each([
  ['until the end of its response', undefined, 1],
  ['until the end of its response, if latency has shown another number', PLACES + 1, 1],
  ['until its response, if latency has shown the limit', PLACES, 0],
])('where tokens are leased, a request holds its place %s', (_, size, held) => {
  const latencyLimit = size === undefined ? undefined : { size, unanswered: 1, isTest: false };
  const meter = Object.defineProperty(new MemberMeter(upstreamSettings().rate, () => 0.5), 'latencyLimit', {
    value: latencyLimit,
  });
  const places = new LimitPlaces(new Limit(SHARED, meter), new ActiveClients());
  const ticket = new Ticket('up', 'client', 1, [SHARED], () => {});
  places.hold(ticket.fairnessKey, 0);
  ticket.heldPlaces = [places];
  releasePlacesOnResponse(ticket, 10);
  expect(ticket.heldPlaces).toHaveLength(held);
});

test('a process that leases its tokens shares the places that it has, and leaves none free', () => {
  const active = new ActiveClients();
  const limit = new Limit(SHARED, new MemberMeter(upstreamSettings().rate, () => 0.5));
  const places = new LimitPlaces(limit, active);
  for (const client of ['calm', 'greedy']) active.onArrival(client, 0, Number.NEGATIVE_INFINITY, 1);
  places.hold('calm', 0);
  for (let i = 0; i < 3; i += 1) places.hold('greedy', 0);
  expect(places.exceedsShare('greedy', places.shareOf(1, 0))).toBe(true);
  expect(places.exceedsShare('calm', places.shareOf(1, 0))).toBe(false);
  expect(places.yieldDelay(new Ticket('up', 'greedy', 1, [SHARED], () => {}), 0)).toBe(0);
});
