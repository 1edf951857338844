/** After an outage, senders whose requests go on failing take turns at the probes with the others: minutes of virtual time. */
import { describe, expect, test } from 'vitest';
import type { Call } from '../../support/core/call-record.ts';
import { isSuccess } from '../../support/core/call-record.ts';
import { response } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';
import { formatRetryAfter } from '../../../src/core/hints/format-retry-after.ts';
import type { Millis, PerSecond } from '../../../src/core/scalars.ts';

const OUTAGE_FROM: Millis = 8000;
/** So long after the outage a run ends. */
const GIVEN_UP_AFTER: Millis = 180_000;

interface Outage {
  readonly lasts: Millis;
  readonly polite?: number;
  /** The rate of each hostile sender. Its requests always fail. */
  readonly hostile?: readonly PerSecond[];
  /** Of the failures; 503 if absent. */
  readonly status?: number;
  /** The hostile requests get no response, except in the outage. */
  readonly isSilent?: boolean;
  /** The polite clients send bodies that are too long to be kept. */
  readonly hasUploads?: boolean;
  /** The address of all clients; each has its own if this is absent. */
  readonly address?: string;
}

interface Recovery {
  /** From the end of the outage to the first response for a polite client. */
  readonly after: Millis;
  /** The requests that the upstream received in the outage while it was blocked. */
  readonly probes: number;
}

/** Polite clients make two requests a second, except before the time that a Retry-After names. */
function recover(
  { lasts, polite = 5, hostile = [], isSilent = false, address, status = 503, hasUploads = false }: Outage,
  seed: number,
): Recovery {
  const until = OUTAGE_FROM + lasts;
  let probes = 0;
  const servedAt: Millis[] = [];
  const world = new World({
    seed,
    respond: ({ client, at }) => {
      const isDown = at >= OUTAGE_FROM && at < until;
      if (isDown && world.limit.meter.phase === 'blocked') probes += 1;
      const isHostile = client.startsWith('hostile');
      if (isHostile && isSilent && !isDown) return 'silence';
      return isDown || isHostile ? { outcome: response(status), after: 2 } : { outcome: response(200), after: 20 };
    },
  });
  const callOf = (client: string): Call => ({ client, path: `/${client}`, addressGroup: address ?? client });
  for (let i = 0; i < polite; i += 1) {
    let heldUntil: Millis = 0;
    const onVerdict: Call['onVerdict'] = (record) => {
      const { verdict } = record;
      if (isSuccess(record) && world.now >= until) servedAt.push(world.now);
      if (verdict?.kind !== 'refuse') return;
      const seconds = Number(formatRetryAfter(verdict.retryAfterMs ?? 0, world.random));
      heldUntil = Math.max(heldUntil, world.now + 1000 * seconds + 20);
    };
    const ask = (): void => {
      if (world.now >= heldUntil) world.call({ ...callOf(`polite ${i}`), replayable: !hasUploads, onVerdict });
      world.at(world.now + 500 * (0.5 + world.random()), ask);
    };
    world.at(500 * world.random(), ask);
  }
  world.runUntil(2000);
  for (const [i, rate] of hostile.entries()) world.stream(rate, until + GIVEN_UP_AFTER, callOf(`hostile ${i}`));
  while (servedAt.length === 0 && world.now < until + GIVEN_UP_AFTER) world.runUntil(world.now + 100);
  return { after: (servedAt[0] ?? Number.POSITIVE_INFINITY) - until, probes };
}

/** Several outages, which end at different times between two probes. */
function recoverOften(outage: Outage, runs: number): Recovery[] {
  return Array.from({ length: runs }, (_, i) =>
    recover({ ...outage, lasts: outage.lasts + 6000 * ((0.618 * i) % 1) }, i + 1),
  );
}

function meanOf(recoveries: readonly Recovery[], figure: keyof Recovery): number {
  return recoveries.reduce((sum, each) => sum + each[figure], 0) / recoveries.length;
}

const EIGHT: readonly PerSecond[] = [1, 2, 4, 8, 16, 32, 4, 4];

describe('once the upstream is back, polite clients are served although others always fail', () => {
  test.each<[string, Outage, Millis, Millis]>([
    ['at 4/s, after 10 s', { lasts: 10_000, hostile: [4] }, 20_000, 7000],
    ['at 5/s, after 30 s', { lasts: 30_000, hostile: [5] }, 20_000, 7000],
    ['at 50/s, after 30 s', { lasts: 30_000, hostile: [50] }, 20_000, 7000],
    ['at 5/s, after 60 s', { lasts: 60_000, hostile: [5] }, 20_000, 7000],
    ['at 4/s and 40/s, after 30 s', { lasts: 30_000, hostile: [4, 40] }, 30_000, 10_000],
    ['at 1/s to 32/s, eight of them, after 30 s', { lasts: 30_000, hostile: EIGHT }, 120_000, 40_000],
    ['at 3/s, after 8 s, of uploads', { lasts: 8000, polite: 3, hostile: [3], hasUploads: true }, 25_000, 10_000],
    ['at 20/s, after 30 s, of uploads', { lasts: 30_000, hostile: [20], hasUploads: true }, 20_000, 8000],
    ['at 5/s, with a 429', { lasts: 30_000, hostile: [5], status: 429 }, 30_000, 10_000],
    ['at 5/s as clients of their address', { lasts: 30_000, hostile: [5], address: 'gateway' }, 25_000, 8000],
    ['at 5/s without a response', { lasts: 30_000, hostile: [5], isSilent: true }, 20_000, 8000],
    ['eight of them without a response', { lasts: 30_000, hostile: EIGHT, isSilent: true }, 120_000, 25_000],
  ])('%s', (_, outage, longest, mean) => {
    const recoveries = recoverOften(outage, 12);
    for (const { after } of recoveries) expect(after).toBeLessThan(longest);
    expect(meanOf(recoveries, 'after')).toBeLessThan(mean);
  });
});

describe('while nothing passes', () => {
  test.each<[string, Outage]>([
    ['five polite clients', { lasts: 60_000 }],
    ['one client', { lasts: 60_000, polite: 1 }],
    ['thirty polite clients', { lasts: 60_000, polite: 30 }],
    ['a hostile client beside five polite ones', { lasts: 60_000, hostile: [50] }],
  ])('%s send a probe in 5 s, and more often only in the beginning', (_, outage) => {
    const recoveries = recoverOften(outage, 12);
    for (const { probes } of recoveries) expect(probes).toBeLessThanOrEqual(21);
    expect(meanOf(recoveries, 'probes')).toBeLessThan(19.2);
  });

  test('five polite clients notice its end within 3.5 s on average', () => {
    const recoveries = [10_000, 30_000, 60_000].flatMap((lasts) => recoverOften({ lasts }, 60));
    expect(meanOf(recoveries, 'after')).toBeLessThan(3500);
  });
});
