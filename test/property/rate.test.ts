import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LimitState } from '../../src/core/limits/limit-state.ts';
import { AdaptiveRate } from '../../src/core/rate/adaptive-rate.ts';
import type { RateRules } from '../../src/core/rate/rules.ts';
import { RATE_RULES } from '../../src/core/rate/rules.ts';
import type { RateSettings } from '../../src/core/rate/rate-state.ts';
import type { Millis } from '../../src/core/scalars.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { expectWithin } from '../support/expect-within.ts';

const settings: fc.Arbitrary<RateSettings> = fc
  .record({
    bounds: fc.tuple(fc.constantFrom(0.001, 0.1, 1, 7, 50), fc.constantFrom(50, 51, 1000, Number.POSITIVE_INFINITY)),
    known: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
    cooldown: fc.constantFrom(0, 1000, 60_000),
  })
  .map(({ bounds: [minRate, maxRate], known, cooldown }) => ({
    minRate,
    maxRate,
    cooldown,
    initialRate: known === undefined ? undefined : minRate + known * (Math.min(maxRate, 10_000) - minRate),
  }));

type Event =
  | { readonly do: 'send' | 'advance' | 'abandonProbe'; readonly after: Millis; readonly queued: boolean }
  | {
      readonly do: 'accept' | 'reject' | 'fail';
      readonly after: Millis;
      readonly which: number;
      readonly hint: Millis | undefined;
      readonly times: number;
    };

const after = fc.oneof(
  fc.constant(0),
  fc.double({ min: 0, max: 50, noNaN: true }),
  fc.double({ min: 0, max: 3000, noNaN: true }),
  fc.constantFrom(119_000, 3_600_000),
);
const quiet = fc.record({
  do: fc.constantFrom('send', 'send', 'advance', 'abandonProbe'),
  after,
  queued: fc.boolean(),
});
const answer = fc.record({
  do: fc.constantFrom('accept', 'accept', 'reject', 'fail'),
  after,
  which: fc.nat(),
  hint: fc.constantFrom(undefined, undefined, 0, 300, 300_000),
  times: fc.constantFrom(1, 1, 1, 5, 10),
});
const events: fc.Arbitrary<Event[]> = fc.array(fc.oneof(quiet, answer), { maxLength: 120, size: 'max' });

const NEXT: Readonly<Record<LimitState, readonly LimitState[]>> = {
  open: ['backoff', 'blocked'],
  backoff: ['cooldown', 'blocked'],
  cooldown: ['restoring', 'open', 'backoff', 'blocked'], // open: at once after a long pause
  restoring: ['open', 'backoff', 'blocked'],
  blocked: ['cooldown', 'restoring'],
};

/** Infers a concurrency limit at the first rejection among more than two in flight. */
const EAGER: RateRules = {
  ...RATE_RULES,
  makeConcurrencyDetector: () => ({
    onAccepted: () => undefined,
    onRejected: (among) => (among > 2 ? among : undefined),
    reset: () => undefined,
  }),
};

/** A rate, and its requests in flight. */
interface Line {
  readonly rate: AdaptiveRate;
  readonly out: { readonly sentAt: Millis; readonly among: number }[];
  now: Millis;
}

type Check = (rate: AdaptiveRate, call: string, sentAt: Millis, now: Millis, result: string | undefined) => void;

/** Applies the events as a gate would: a blocked rate sends only probes. Calls `check` after every event. */
function feed(given: RateSettings, sequence: readonly Event[], seed: number, check: Check): Line {
  const random = seededRandom(seed);
  const rate = new AdaptiveRate(given, random, random() < 0.5 ? EAGER : RATE_RULES);
  const line: Line = { rate, out: [], now: 1000 };
  const { out } = line;
  const send = (): void => {
    if (rate.delay(line.now) > 0) return;
    rate.admit(line.now);
    rate.inFlightLimiter.releaseReservation();
    out.push({ sentAt: line.now, among: rate.onSent(line.now) });
    check(rate, 'send', line.now, line.now, undefined);
  };
  for (const event of sequence) {
    line.now += event.after;
    const { now } = line;
    if (event.do === 'send') send();
    else if (event.do === 'abandonProbe') rate.breaker.abandonProbe();
    else if (event.do === 'advance') {
      rate.advance(now, event.queued);
      check(rate, 'advance', now, now, undefined);
    } else if ('which' in event) {
      for (let i = 0; i < event.times; i += 1) {
        if (out.length === 0) send();
        const one = out.splice(event.which % Math.max(1, out.length), 1)[0];
        if (one === undefined) break;
        const { sentAt, among } = one;
        const activeClients = 1 + (event.which % 3);
        const overrun = event.which % 7 === 0;
        let result: string | undefined;
        if (event.do === 'accept') rate.onAccepted(sentAt, among, now);
        else if (event.do === 'fail') result = rate.onFailed({ sentAt, retryAfterMs: event.hint, overrun }, now);
        else {
          result = rate.onRejected(
            { sentAt, inFlightAtSend: among, retryAfterMs: event.hint, activeClients, overrun },
            now,
          );
        }
        check(rate, overrun ? `${event.do} of an overrun` : event.do, sentAt, now, result);
        rate.inFlightLimiter.onEnded(now);
      }
    }
  }
  return line;
}

function expectAlways(make: (given: RateSettings) => Check, numRuns = 250): void {
  fc.assert(
    fc.property(settings, events, fc.integer(), (given, sequence, seed) => {
      feed(given, sequence, seed, make(given));
    }),
    { numRuns },
  );
}

test('the rate is always within its bounds', () => {
  expectAlways((given) => (rate, call) => {
    const mostRate = rate.phase === 'open' ? given.maxRate : Math.min(given.maxRate, Number.MAX_VALUE);
    expectWithin(rate.rate, given.minRate, mostRate);
    expectWithin(rate.ceiling, given.minRate, given.maxRate);
    expectWithin(rate.pace, given.minRate, Number.POSITIVE_INFINITY);
    // With a concurrency limit, the rate is derived when time advances, outside a block.
    const isCurrent = !rate.inFlightLimiter.isLimited || (call === 'advance' && rate.phase !== 'blocked');
    if (isCurrent) expectWithin(rate.pace, rate.rate, Number.POSITIVE_INFINITY);
    expectWithin(rate.inFlightLimiter.limit, 1, Number.POSITIVE_INFINITY);
    expectWithin(rate.inFlightLimiter.count, 0, Number.POSITIVE_INFINITY);
  });
});

test('states follow the documented state diagram', () => {
  expectAlways((given) => {
    let before: LimitState = given.initialRate === undefined ? 'open' : 'restoring';
    return ({ phase }, call) => {
      if (phase === before) return;
      expect(NEXT[before], call).toContain(phase);
      before = phase;
    };
  });
});

test('the rate grows with time, and falls only after a rejection or errors', () => {
  expectAlways(() => {
    let before: number | undefined;
    let phase: LimitState = 'open';
    let byPlaces = false;
    return (rate, call, _sentAt, _now, result) => {
      if (before !== undefined) {
        // With a concurrency limit, the rate results from the places.
        if (call === 'advance' && !byPlaces) expect(rate.rate).toBeGreaterThanOrEqual(before);
        if (call === 'send') expect(rate.rate).toBe(before);
        // An accepted probe sets a new rate.
        if (call.startsWith('accept') && phase !== 'blocked') expect(rate.rate).toBe(before);
        // The measurement of an exceeded limit may be lower or higher than the estimate.
        if (call === 'reject of an overrun' && phase === 'blocked') expect(rate.rate).toBe(before);
        if (call === 'reject' || call.startsWith('fail')) {
          // A cut to the rate that results from the places may be the one that blocks.
          if (result !== 'places' && result !== 'blocked') expect(rate.rate).toBeLessThanOrEqual(before);
          if (result === undefined) expect(rate.rate).toBe(before);
        }
      }
      ({ rate: before, phase } = rate);
      byPlaces = Number.isFinite(rate.inFlightLimiter.limit);
    };
  });
});

test('cuts of one limit are at least an epoch apart', () => {
  expectAlways(() => {
    let cutAt = Number.NEGATIVE_INFINITY;
    return (_rate, _call, sentAt, now, result) => {
      if (result === 'small' || result === 'heavy') expect(sentAt).toBeGreaterThan(cutAt + 200);
      if (result !== undefined && result !== 'errors') cutAt = now;
    };
  });
});

test('a block admits a probe within 5 s · 1.25, the requested wait, or the 30 s of a lost probe', () => {
  expectAlways(() => {
    let longest = 30_000.001;
    return (rate, call, _sentAt, now) => {
      if (call.startsWith('reject') || call.startsWith('fail')) longest = 300_010.001; // by rounding
      const delay = rate.delay(now);
      const expected = rate.expectedDelay(now);
      expectWithin(expected, 0, Number.POSITIVE_INFINITY);
      expectWithin(rate.breaker.probeOverdueFor(now), 0, Number.POSITIVE_INFINITY);
      if (rate.phase === 'blocked') {
        expectWithin(delay, 0, longest);
        expectWithin(expected, 0, Math.max(delay, 5000));
        expect(rate.breaker.probeAt).toBeDefined();
      } else {
        // A request waits only for the end of another.
        expect(delay).toBe(rate.inFlightLimiter.count < rate.inFlightLimiter.limit ? 0 : Number.POSITIVE_INFINITY);
        expect(rate.breaker.probeAt).toBeUndefined();
      }
    };
  });
});

/** Sends at the full rate, at least twice a second, with everything accepted, until `end` or `isDone`. */
function recover(line: Line, end: Millis, isDone: () => boolean): void {
  const { rate } = line;
  while (line.now < end && !isDone()) {
    rate.advance(line.now, true);
    if (rate.delay(line.now) === 0) {
      rate.admit(line.now);
      rate.inFlightLimiter.releaseReservation();
      const among = rate.onSent(line.now);
      rate.onAccepted(line.now, among, line.now + 20);
      rate.inFlightLimiter.onEnded(line.now + 20);
    }
    line.now += Math.min(500, Math.max(1, 1000 / rate.pace));
  }
}

test('the rate recovers after any history once the upstream accepts requests', () => {
  fc.assert(
    fc.property(settings, events, fc.integer(), (given, sequence, seed) => {
      const line = feed(given, sequence, seed, () => undefined);
      const { rate, out } = line;
      for (; out.length > 0; out.pop()) rate.inFlightLimiter.onEnded(line.now); // these never get a response
      // The longest Retry-After, followed by a probe.
      recover(line, line.now + 301_000, () => rate.phase !== 'blocked');
      expect(rate.phase).not.toBe('blocked');
      // The largest rate that this test can reach. With a concurrency limit, the rate results from the places.
      const enough = Math.min(given.maxRate, 20, Math.max(1, 10 * rate.rate));
      const isFree = (): boolean => rate.rate >= enough || Number.isFinite(rate.inFlightLimiter.limit);
      recover(line, line.now + 4 * 3_600_000, isFree); // K is up to 12 minutes
      expect(isFree(), `${rate.rate} of ${enough}, ${rate.phase}`).toBe(true);
    }),
    { numRuns: 150 },
  );
});

test('equal random draws give equal rates', () => {
  fc.assert(
    fc.property(settings, events, fc.integer(), (given, sequence, seed) => {
      const runs = [0, 1].map(() => {
        const rates: number[] = [];
        feed(given, sequence, seed, ({ rate }) => {
          rates.push(rate);
        });
        return rates;
      });
      expect(runs[0]).toEqual(runs[1]);
    }),
    { numRuns: 200 },
  );
});
