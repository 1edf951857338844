import { describe, expect, test } from 'vitest';
import type { TideEvent } from '../../src/core/events/proxy-events.ts';
import { LocalMeter } from '../../src/core/limits/meter.ts';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import { Leaseholder } from '../../src/sharing/workers/limit-client.ts';
import { LeasedMeter } from '../../src/sharing/protocol/leased-meter.ts';
import { Lender } from '../../src/sharing/workers/limit-server.ts';
import { NEARBY } from '../../src/sharing/workers/lease-timing.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { SHARED, upstreamSettings } from '../support/policy.ts';

// What a lender makes of leaseholders whose reports are late to different degrees: a rejection comes at once, what went well elsewhere later.

const SETTINGS = upstreamSettings();
const LATENCY: Millis = 0.3;

/** Leaseholders and their lender, with time of their own. */
class Household {
  readonly events: TideEvent[] = [];
  reports = 0;
  readonly #meters: LeasedMeter[] = [];
  #due: { readonly at: Millis; readonly run: () => void }[] = [];
  #now: Millis = 0;

  constructor(size: number) {
    const holders: Leaseholder[] = [];
    const lender: Lender = new Lender(
      {
        terms: NEARBY,
        makeMeter: () => new LocalMeter(SETTINGS.rate, () => 0.5),
        listen: (event) => this.events.push(event),
        send: (to, tidings) => this.at(this.#now + LATENCY, () => holders[to]?.hear(tidings, this.#now)),
        maxLimits: 10,
      },
      [SHARED],
    );
    for (let number = 0; number < size; number += 1) {
      let dueAt = Number.POSITIVE_INFINITY;
      const holder: Leaseholder = new Leaseholder({
        schedule: (within) => {
          const at = this.#now + within;
          if (at >= dueAt) return;
          dueAt = at;
          this.at(at, () => {
            if (this.#now < dueAt) return;
            dueAt = Number.POSITIVE_INFINITY;
            holder.flush(this.#now);
          });
        },
        send: (report) => {
          this.reports += 1;
          this.at(this.#now + LATENCY, () => lender.hear(number, report, this.#now));
        },
      });
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
      holders.push(holder);
      this.#meters.push(own);
      lender.join(number, 0);
    }
  }

  at(at: Millis, run: () => void): void {
    this.#due.push({ at, run });
  }

  /** A request there, answered a millisecond later. */
  ask(number: number, at: Millis, outcome: 'accepted' | 'rejected' | 'failed'): void {
    const meter = this.#meters[number];
    if (meter === undefined) throw new RangeError(`no leaseholder ${number}`);
    this.at(at, () => {
      meter.take(at);
      meter.giveBack();
      const serial = meter.sent(at);
      this.at(at + 1, () => {
        const rejection = { sentAt: at, among: serial, retryAfter: undefined, activeClients: 1 };
        if (outcome === 'accepted') meter.accepted(at, serial, at + 1);
        else if (outcome === 'rejected') meter.rejected(rejection, at + 1);
        else meter.failed({ sentAt: at, retryAfter: undefined }, at + 1);
        meter.ended(at + 1);
      });
    });
  }

  passUntil(end: Millis): void {
    for (;;) {
      const next = this.#due.filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#due = this.#due.filter((each) => each !== next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
    }
    this.#now = end;
  }

  get firstCut(): number {
    return this.events.flatMap((event) => (event.type === 'cut' ? [event.to] : []))[0] ?? Number.NaN;
  }
}

describe('the first cut goes by what all of them have sent', () => {
  test.each([2, 8])('in the first moment after a pause, with %i', (size) => {
    const household = new Household(size);
    // Two a millisecond, in turn: 80 accepted within 40 ms, and none after.
    for (let each = 0; each < 100; each += 1) {
      household.ask(each % size, 1000 + each / 2, each < 80 ? 'accepted' : 'rejected');
    }
    household.passUntil(1200);
    expect(household.firstCut).toBeGreaterThan(220);
    expect(household.firstCut).toBeLessThan(260);
  });

  test.each([2, 8])('while they send all the time, and report seldom, with %i', (size) => {
    const household = new Household(size);
    for (let each = 0; each < 2000; each += 1) {
      household.ask(each % size, 1000 + 2 * each, each < 1950 ? 'accepted' : 'rejected');
    }
    household.passUntil(1000 + 3800);
    const before = household.reports;
    household.passUntil(6000);
    // 500 are accepted in a second; the cut is to nine tenths of that.
    expect(household.firstCut).toBeGreaterThan(430);
    expect(household.firstCut).toBeLessThan(455);
    // A second of one every 5 ms, and then of one every 50 ms.
    expect(before).toBeLessThan(size * (1000 / 5 + 2800 / 50 + 10));
    expect(before).toBeGreaterThan(size * 40);
  });
});

test('what fails with one is weighed against what goes well with others', () => {
  const household = new Household(2);
  for (let each = 0; each < 40; each += 1) household.ask(1, 10_000 + each, 'accepted');
  for (let each = 0; each < 8; each += 1) household.ask(0, 10_030 + each, 'failed');
  household.passUntil(10_300);
  expect(household.events).toEqual([]);
});
