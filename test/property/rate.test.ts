import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LimitState } from '../../src/policy/events.ts';
import { AdaptiveRate } from '../../src/policy/rate.ts';
import type { RateSettings } from '../../src/policy/rate/state.ts';
import type { Millis } from '../../src/policy/types.ts';
import { seededRandom } from '../../src/sim/seeded-random.ts';

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
  | { readonly do: 'send' | 'advance' | 'abandon'; readonly after: Millis; readonly queued: boolean }
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
const quiet = fc.record({ do: fc.constantFrom('send', 'send', 'advance', 'abandon'), after, queued: fc.boolean() });
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
  cooldown: ['restoring', 'open', 'backoff', 'blocked'], // open: at once, after a long pause
  restoring: ['open', 'backoff', 'blocked'],
  blocked: ['cooldown', 'restoring'],
};

/** Feeds the events, as a gate would: what is blocked sends nothing but probes. Calls `check` after every single call. */
function feed(
  given: RateSettings,
  sequence: readonly Event[],
  seed: number,
  check: (rate: AdaptiveRate, call: string, sentAt: Millis, now: Millis, result: string | undefined) => void,
): void {
  const rate = new AdaptiveRate(given, seededRandom(seed));
  let now = 1000;
  const out: Millis[] = [];
  const send = (): void => {
    if (rate.delay(now) > 0) return;
    rate.admit(now);
    rate.sent(now);
    out.push(now);
    check(rate, 'send', now, now, undefined);
  };
  for (const event of sequence) {
    now += event.after;
    if (event.do === 'send') send();
    else if (event.do === 'abandon') rate.abandon();
    else if (event.do === 'advance') {
      rate.advance(now, event.queued);
      check(rate, 'advance', now, now, undefined);
    } else if ('which' in event) {
      for (let i = 0; i < event.times; i += 1) {
        if (out.length === 0) send();
        const sentAt = out.splice(event.which % Math.max(1, out.length), 1)[0];
        if (sentAt === undefined) break;
        let result: string | undefined;
        if (event.do === 'accept') rate.accepted(sentAt, now);
        else if (event.do === 'fail') result = rate.failed(sentAt, now, event.hint);
        else result = rate.rejected({ sentAt, retryAfter: event.hint, activeClients: 1 + (event.which % 3) }, now);
        check(rate, event.do, sentAt, now, result);
      }
    }
  }
}

function expectAlways(make: (given: RateSettings) => Parameters<typeof feed>[3], numRuns = 250): void {
  fc.assert(
    fc.property(settings, events, fc.integer(), (given, sequence, seed) => {
      feed(given, sequence, seed, make(given));
    }),
    { numRuns },
  );
}

test('the rate is within its bounds, always', () => {
  expectAlways((given) => (rate) => {
    expect(rate.rate).toBeGreaterThanOrEqual(given.minRate);
    expect(rate.rate).toBeLessThanOrEqual(given.maxRate);
    expect(rate.ceiling).toBeGreaterThan(0);
    if (rate.phase !== 'open') expect(Number.isFinite(rate.rate)).toBe(true);
  });
});

test('one state follows another as the picture says', () => {
  expectAlways((given) => {
    let before: LimitState = given.initialRate === undefined ? 'open' : 'restoring';
    return ({ phase }, call) => {
      if (phase === before) return;
      expect(NEXT[before], call).toContain(phase);
      before = phase;
    };
  });
});

test('time lets a rate grow, and nothing but a rejection or errors lets it fall', () => {
  expectAlways(() => {
    let before: number | undefined;
    let phase: LimitState = 'open';
    return (rate, call, _sentAt, _now, result) => {
      if (before !== undefined) {
        if (call === 'advance') expect(rate.rate).toBeGreaterThanOrEqual(before);
        if (call === 'send') expect(rate.rate).toBe(before);
        // An accepted probe sets the rate anew.
        if (call === 'accept' && phase !== 'blocked') expect(rate.rate).toBe(before);
        if (call === 'reject' || call === 'fail') {
          expect(rate.rate).toBeLessThanOrEqual(before);
          if (result === undefined) expect(rate.rate).toBe(before);
        }
      }
      ({ rate: before, phase } = rate);
    };
  });
});

test('cuts of one limit are an epoch apart', () => {
  expectAlways(() => {
    let cutAt = Number.NEGATIVE_INFINITY;
    return (_rate, _call, sentAt, now, result) => {
      if (result === 'small' || result === 'heavy') expect(sentAt).toBeGreaterThan(cutAt + 200);
      if (result !== undefined && result !== 'errors') cutAt = now;
    };
  });
});

test('a blockade lets a probe through within 5 s · 1.25, what is asked for, or the 30 s of a lost one', () => {
  expectAlways(() => {
    let longest = 30_000.001;
    return (rate, call, _sentAt, now) => {
      if (call === 'reject' || call === 'fail') longest = 300_010.001; // of rounding
      const delay = rate.delay(now);
      expect(delay).toBeGreaterThanOrEqual(0);
      expect(delay).toBeLessThanOrEqual(longest);
      expect(rate.expected(now)).toBeLessThanOrEqual(Math.max(delay, 5000));
      if (rate.phase !== 'blocked') expect(delay).toBe(0);
    };
  });
});

test('equal chances make equal rates', () => {
  fc.assert(
    fc.property(settings, events, fc.integer(), (given, sequence, seed) => {
      const runs = [0, 1].map(() => {
        const rates: number[] = [];
        feed(given, sequence, seed, ({ rate }) => rates.push(rate));
        return rates;
      });
      expect(runs[0]).toEqual(runs[1]);
    }),
    { numRuns: 200 },
  );
});
