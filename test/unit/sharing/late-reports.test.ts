import { describe, expect, test } from 'vitest';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { LimitClient } from '../../../src/sharing/workers/limit-client.ts';
import { LeasedMeter } from '../../../src/sharing/protocol/leased-meter.ts';
import { LimitServer } from '../../../src/sharing/workers/limit-server.ts';
import { WORKER_LEASE_TIMING } from '../../../src/sharing/workers/lease-timing.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

// Lease clients whose reports reach the lease server with different delays: a rejection is reported at once, successes at others later.

const SETTINGS = upstreamSettings();
const LATENCY: Millis = 0.3;

/** Lease clients and their server, with a clock of their own. */
class LeaseGroup {
  readonly events: ProxyEvent[] = [];
  reports = 0;
  readonly #meters: LeasedMeter[] = [];
  #due: { readonly at: Millis; readonly run: () => void }[] = [];
  #now: Millis = 0;

  constructor(size: number) {
    const holders: LimitClient[] = [];
    const lender: LimitServer = new LimitServer(
      {
        timing: WORKER_LEASE_TIMING,
        makeMeter: () => new LocalMeter(SETTINGS.rate, () => 0.5),
        listen: (event) => this.events.push(event),
        send: (to, tidings) => this.at(this.#now + LATENCY, () => holders[to]?.onUpdates(tidings, this.#now)),
        maxLimits: 10,
      },
      [SHARED],
    );
    for (let number = 0; number < size; number += 1) {
      let dueAt = Number.POSITIVE_INFINITY;
      const holder: LimitClient = new LimitClient({
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
          this.at(this.#now + LATENCY, () => lender.onReport(number, report, this.#now));
        },
      });
      const store = new MemoryStore({
        upstreams: [SETTINGS],
        maxTracked: 10,
        random: () => 0.5,
        listen: () => undefined,
        makeMeter: (ref, rate) => holder.makeMeter(ref, rate),
        sharingHooks: holder,
      });
      holder.bind({ store, onTokensSupplied: () => undefined }, 0);
      const { learnedMeter } = store.findOrCreateLimit(SHARED);
      if (!(learnedMeter instanceof LeasedMeter)) throw new Error('its meter is not a leased one');
      holders.push(holder);
      this.#meters.push(learnedMeter);
      lender.join(number, 0);
    }
  }

  at(at: Millis, run: () => void): void {
    this.#due.push({ at, run });
  }

  /** A request at one lease client, answered a millisecond later. */
  ask(number: number, at: Millis, outcome: 'accepted' | 'rejected' | 'failed'): void {
    const meter = this.#meters[number];
    if (meter === undefined) throw new RangeError(`no leaseholder ${number}`);
    this.at(at, () => {
      meter.take(at);
      meter.release();
      const serial = meter.onSent(at);
      this.at(at + 1, () => {
        const rejection = { sentAt: at, inFlightAtSend: serial, retryAfterMs: undefined, activeClients: 1 };
        if (outcome === 'accepted') meter.onAccepted(at, serial, at + 1);
        else if (outcome === 'rejected') meter.onRejected(rejection, at + 1);
        else meter.onFailed({ sentAt: at, retryAfterMs: undefined }, at + 1);
        meter.onEnded(at + 1);
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

describe('the first cut includes the sends of all workers', () => {
  test.each([2, 8])('at the beginning after a pause, with %i workers', (size) => {
    const group = new LeaseGroup(size);
    // Two a millisecond, in turn: 80 accepted within 40 ms, and none after.
    for (let each = 0; each < 100; each += 1) {
      group.ask(each % size, 1000 + each / 2, each < 80 ? 'accepted' : 'rejected');
    }
    group.passUntil(1200);
    expect(group.firstCut).toBeGreaterThan(220);
    expect(group.firstCut).toBeLessThan(260);
  });

  test.each([2, 8])('during continuous traffic with few reports, with %i workers', (size) => {
    const group = new LeaseGroup(size);
    for (let each = 0; each < 2000; each += 1) {
      group.ask(each % size, 1000 + 2 * each, each < 1950 ? 'accepted' : 'rejected');
    }
    group.passUntil(1000 + 3800);
    const before = group.reports;
    group.passUntil(6000);
    // 500 are accepted in a second; the cut is to nine tenths of that.
    expect(group.firstCut).toBeGreaterThan(430);
    expect(group.firstCut).toBeLessThan(455);
    // A second of one every 5 ms, and then of one every 50 ms.
    expect(before).toBeLessThan(size * (1000 / 5 + 2800 / 50 + 10));
    expect(before).toBeGreaterThan(size * 40);
  });
});

test('failures at one worker are compared with successes at others', () => {
  const group = new LeaseGroup(2);
  for (let each = 0; each < 40; each += 1) group.ask(1, 10_000 + each, 'accepted');
  for (let each = 0; each < 8; each += 1) group.ask(0, 10_030 + each, 'failed');
  group.passUntil(10_300);
  expect(group.events).toEqual([]);
});
