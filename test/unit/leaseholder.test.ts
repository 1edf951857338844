import { beforeEach, describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { Leaseholder } from '../../src/sharing/workers/limit-client.ts';
import { LeasedMeter } from '../../src/sharing/protocol/leased-meter.ts';
import { startingTerms } from '../../src/sharing/protocol/limit-terms.ts';
import type { Report, Terms } from '../../src/sharing/workers/worker-protocol.ts';
import { SHARED, upstreamSettings } from '../support/policy.ts';

const SETTINGS = upstreamSettings();

/** In milliseconds, each time that somebody asks for a report sooner than before. */
let asked: number[];
let sent: Report[];
let holder: Leaseholder;
let meter: LeasedMeter;

beforeEach(() => {
  asked = [];
  sent = [];
  holder = new Leaseholder({ schedule: (within) => asked.push(within), send: (report) => sent.push(report) });
  const store = new MemoryStore({
    upstreams: [SETTINGS],
    maxTracked: 10,
    random: () => 0.5,
    listen: () => undefined,
    makeMeter: (ref, rate) => holder.makeMeter(ref, rate),
    sharing: holder,
  });
  holder.wire({ store, supply: () => undefined }, 0);
  const { own } = store.make(SHARED);
  if (!(own instanceof LeasedMeter)) throw new Error('its meter is not a leased one');
  meter = own;
});

/** A request that is answered. */
function pass(at: number): void {
  meter.take(at);
  meter.giveBack();
  const serial = meter.sent(at);
  meter.accepted(at, serial, at + 1);
  meter.ended(at + 1);
}

/** It has sent for a while, and told of it. */
function beSteady(): void {
  for (let at = -2000; at < 0; at += 200) pass(at);
  holder.flush(0);
  asked = [];
  sent = [];
}

function hear(terms: Partial<Terms>): void {
  const told = { ...startingTerms(SETTINGS.rate), ...terms };
  holder.hear({ limits: [{ ref: SHARED, terms: told, slots: [] }], holds: [] }, 100);
}

describe('while nothing limits', () => {
  test('requests that go well are told of together, as nobody waits for it; not the first ones', () => {
    pass(0);
    expect(asked).toEqual([5]);
    for (let at = 200; at <= 1000; at += 200) pass(at);
    holder.flush(1000);
    for (let at = 1000; at < 1040; at += 1) pass(at);
    expect(asked).toEqual([5, 50]);
    holder.flush(1050);
    expect(sent).toHaveLength(2);
    expect(sent[1]?.limits[0]?.happenings).toHaveLength(40 * 9);
    // After a pause they are all that is known.
    pass(1500);
    expect(asked).toEqual([5, 50, 5]);
  });

  test('a quota is told of soon, a rejection at once, with all that was before', () => {
    beSteady();
    pass(0);
    meter.noteQuota({ remaining: 5, limit: 10, resetIn: 1000, window: undefined }, 0, 1);
    expect(asked).toEqual([50, 5]);
    const serial = meter.sent(2);
    meter.rejected({ sentAt: 2, among: serial, retryAfter: undefined, activeClients: 1 }, 3);
    expect(asked).toEqual([50, 5, 0]);
    pass(4);
    expect(asked).toEqual([50, 5, 0]);
  });

  test('what is not told of yet is told of as soon as the limit is felt anywhere', () => {
    beSteady();
    pass(0);
    hear({ epoch: 1, phase: 'backoff', isFree: false });
    expect(asked).toEqual([50, 0]);
  });

  test('where all is told of, nothing is said when the limit is felt', () => {
    hear({ epoch: 1, phase: 'backoff', isFree: false });
    expect(asked).toEqual([]);
  });
});

test('while the limit is felt, requests are told of in a moment, and once more when a place counts', () => {
  hear({ epoch: 1, phase: 'cooldown', isFree: false });
  holder.flush(100);
  asked = [];
  const serial = meter.sent(101);
  expect(asked).toEqual([5]);
  hear({ epoch: 1, phase: 'cooldown', isFree: false, places: 3 });
  meter.accepted(101, serial, 102);
  meter.ended(102);
  expect(asked).toEqual([5, 0]);
});
