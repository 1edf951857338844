import { describe, expect, test } from 'vitest';
import type { CutCause } from '../../src/core/events/proxy-events.ts';
import { AdaptiveRate } from '../../src/core/rate/adaptive-rate.ts';
import { InFlight } from '../../src/core/rate/in-flight-limiter.ts';
import { Places, PlacesEvidence } from '../../src/core/rate/concurrency-limit.ts';
import type { Rules } from '../../src/core/rate/rules.ts';
import { RULES } from '../../src/core/rate/rules.ts';
import type { RateSettings } from '../../src/core/rate/rate-state.ts';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import { rateState } from '../support/rate-state.ts';

/** 128 were accepted among 5, but so many of them among 10. */
function evidence(asMany = 0): PlacesEvidence {
  const watch = new PlacesEvidence();
  for (let i = 0; i < 128; i += 1) watch.accepted(i < asMany ? 10 : 5);
  return watch;
}

describe('a limit on requests in flight', () => {
  test('is believed at the fifth rejection among unusually many, always as many', () => {
    const watch = evidence();
    expect([10, 10, 10, 10, 10].map((among) => watch.rejected(among))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      10,
    ]);
  });

  test('is not looked for before 128 were accepted', () => {
    const watch = new PlacesEvidence();
    for (let i = 0; i < 127; i += 1) watch.accepted(5);
    for (let i = 0; i < 20; i += 1) expect(watch.rejected(10)).toBeUndefined();
    watch.accepted(5);
    for (let i = 0; i < 4; i += 1) expect(watch.rejected(10)).toBeUndefined();
    expect(watch.rejected(10)).toBe(10);
  });

  test('is felt among more than 15 % of the accepted met at most', () => {
    const often = evidence(20);
    for (let i = 0; i < 20; i += 1) expect(often.rejected(10)).toBeUndefined();
    const seldom = evidence(19);
    for (let i = 0; i < 4; i += 1) seldom.rejected(10);
    expect(seldom.rejected(10)).toBe(10);
  });

  test('is doubted where a rejection is among as many as ever', () => {
    const watch = evidence();
    for (let i = 0; i < 4; i += 1) watch.rejected(10); // 5.6
    expect(watch.rejected(5)).toBeUndefined(); // 3.6
    expect(watch.rejected(10)).toBeUndefined(); // 5.0: the last five agree, and are not believed yet
    expect(watch.rejected(10)).toBeUndefined(); // 6.4
    expect(watch.rejected(10)).toBe(10); // 7.8
  });

  test('is the least of five that agree to 15 %, or to one', () => {
    const tell = (...amongs: readonly number[]) => {
      const watch = evidence();
      return amongs.map((among) => watch.rejected(among)).at(-1);
    };
    expect(tell(22, 20, 21, 23, 23)).toBe(20);
    expect(tell(20, 20, 20, 20, 24)).toBeUndefined();
    expect(tell(6, 7, 6, 7, 6)).toBe(6);
    expect(tell(6, 8, 6, 8, 6)).toBeUndefined();
    expect(tell(40, 20, 20, 20, 20, 20)).toBe(20); // the last five
  });

  test('is compared with the last 128 that were accepted', () => {
    const watch = evidence(128);
    for (let i = 0; i < 128; i += 1) watch.accepted(5);
    for (let i = 0; i < 4; i += 1) watch.rejected(10);
    expect(watch.rejected(10)).toBe(10);
  });

  test('that turned out wrong is to be proven anew', () => {
    const watch = evidence();
    for (let i = 0; i < 9; i += 1) watch.rejected(10);
    watch.forget();
    for (let i = 0; i < 4; i += 1) expect(watch.rejected(10)).toBeUndefined();
    expect(watch.rejected(10)).toBe(10);
  });
});

describe('the places', () => {
  /** A rejection for 130 sends: a second. */
  const state = rateState({ rate: 130, usualLoss: 1 });

  test('each rejection takes one, to the last', () => {
    const places = new Places(3, 0);
    const sizes = [1, 2, 3, 4].map((now) => {
      places.rejected(now);
      return places.size;
    });
    expect(sizes).toEqual([2, 1, 1, 1]);
    expect(new Places(0, 0).size).toBe(1);
  });

  test('calm gives back one, then two, then four', () => {
    const places = new Places(10, 0);
    const sizes = [999, 1000, 1999, 2000, 2999, 3000].map((now) => {
      places.grow(now, state);
      return places.size;
    });
    expect(sizes).toEqual([10, 11, 11, 13, 13, 17]);
  });

  test('a rejection begins that anew', () => {
    const places = new Places(10, 0);
    places.grow(1000, state);
    places.grow(2000, state); // 13
    places.rejected(2500);
    for (const now of [3499, 3500, 4500]) places.grow(now, state);
    expect(places.size).toBe(12 + 1 + 2);
  });

  test('calm is 130 sends for each rejection that is usual, and no less than a second', () => {
    const calmFor = (terms: Parameters<typeof rateState>[0]): Millis => {
      for (let now = 0; now < 100_000; now += 500) {
        const places = new Places(10, 0);
        places.grow(now, rateState(terms));
        if (places.size > 10) return now;
      }
      return Number.NaN;
    };
    expect(calmFor({ rate: 13, usualLoss: 1 })).toBe(10_000);
    expect(calmFor({ rate: 13, usualLoss: 2.5 })).toBe(25_000);
    expect(calmFor({ rate: 1300, usualLoss: 1 })).toBe(1000);
  });

  test('are strained by more than 4 % of rejections, smoothed over 400 answers', () => {
    const places = new Places(100, 0);
    for (let i = 0; i < 16; i += 1) places.rejected(i);
    expect(places.isStrained).toBe(false); // 1 − (399/400)^16 = 3.9 %
    places.rejected(16);
    expect(places.isStrained).toBe(true); // 4.2 %
    for (let i = 0; i < 15; i += 1) places.accepted(); // 4.17 % · (399/400)^15
    expect(places.isStrained).toBe(true);
    for (let i = 0; i < 2; i += 1) places.accepted();
    expect(places.isStrained).toBe(false);
  });
});

test('places that are given up are forgotten: they are to be proven anew', () => {
  const inFlight = new InFlight(evidence());
  for (let i = 0; i < 4; i += 1) expect(inFlight.feel(10, 0)).toBe(false);
  expect(inFlight.feel(10, 0)).toBe(true);
  expect(inFlight.places).toBe(9);
  expect(inFlight.feel(3, 0)).toBe(true); // held to, whatever the number
  for (let i = 0; i < 17; i += 1) inFlight.rejected(0);
  expect(inFlight.feel(10, 0)).toBe(false);
  expect(inFlight.places).toBe(Number.POSITIVE_INFINITY);
  for (let i = 0; i < 4; i += 1) expect(inFlight.feel(10, 0)).toBe(false);
  expect(inFlight.feel(10, 0)).toBe(true);
});

test('where it is not known how many were in flight, nothing is learned of them', () => {
  const inFlight = new InFlight(evidence());
  for (let i = 0; i < 128; i += 1) inFlight.accepted(0);
  for (let i = 0; i < 20; i += 1) expect(inFlight.feel(0, 0)).toBe(false);
  for (let i = 0; i < 4; i += 1) expect(inFlight.feel(10, 0)).toBe(false);
  expect(inFlight.feel(10, 0)).toBe(true);
});

/** Believes at once what a test wants to be believed. */
const EAGER: Rules = {
  ...RULES,
  watchPlaces: () => ({ accepted: () => undefined, rejected: (among) => among, forget: () => undefined }),
};

/** An upstream whose answers take their time: what is in flight stays so until a test ends it. */
class Flight {
  readonly rate: AdaptiveRate;
  now: Millis = 0;
  readonly #out: { readonly sentAt: Millis; readonly among: number }[] = [];

  constructor(rules: Rules, settings: Partial<RateSettings> = {}) {
    this.rate = new AdaptiveRate(
      { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000, ...settings },
      () => 0.5,
      rules,
    );
  }

  advance(now: Millis, queued = true): this {
    this.now = now;
    this.rate.advance(now, queued);
    return this;
  }

  send(count = 1): this {
    for (let i = 0; i < count; i += 1) this.#out.push({ sentAt: this.now, among: this.rate.sent(this.now) });
    return this;
  }

  /** The oldest that is out is accepted. Returns whether another may have been waiting for that. */
  accept(): boolean {
    const { sentAt, among } = this.#take(this.#out.shift());
    this.rate.accepted(sentAt, among, this.now);
    return this.rate.ended();
  }

  /** The newest is rejected. */
  reject(overrun = false): CutCause | undefined {
    const { sentAt, among } = this.#take(this.#out.pop());
    const cause = this.rate.rejected({ sentAt, among, retryAfter: undefined, activeClients: 1, overrun }, this.now);
    this.rate.ended();
    return cause;
  }

  #take<T>(one: T | undefined): T {
    if (one === undefined) throw new Error('nothing is in flight');
    return one;
  }
}

/** Of 12 in flight the last was rejected, at 1000; 11 are still out. */
function limited(settings: Partial<RateSettings> = {}): Flight {
  const flight = new Flight(EAGER, settings).advance(1000).send(12);
  expect(flight.reject()).toBe('places');
  return flight;
}

/** The same, and 10 of them accepted: nothing has been rejected since, and cooldown is over at 2000. */
function calm(): Flight {
  const flight = limited();
  for (let i = 0; i < 11; i += 1) flight.accept();
  flight.advance(1100).send().accept();
  return flight.advance(2000);
}

describe('a rate that is limited by places', () => {
  test('holds one fewer than were felt to be too many, and spaces nothing', () => {
    const { rate } = limited();
    expect(rate.places).toBe(11);
    expect(rate.inFlight).toBe(11);
    expect(rate.pace).toBe(Number.POSITIVE_INFINITY);
    expect(limited({ maxRate: 500 }).rate.pace).toBe(500);
  });

  test('lets none leave while all are taken: an end is waited for', () => {
    const flight = limited();
    expect(flight.rate.delay(1000)).toBe(Number.POSITIVE_INFINITY);
    expect(flight.accept()).toBe(true);
    expect(flight.rate.delay(1000)).toBe(0);
    expect(flight.rate.expected(1000)).toBe(0);
  });

  test('one that is let go holds its place at once, until it was sent, or will not be', () => {
    const flight = limited();
    flight.accept();
    flight.accept(); // two of 11 are free
    flight.rate.admit(1000);
    expect(flight.rate.delay(1000)).toBe(0);
    flight.rate.admit(1000);
    expect(flight.rate.delay(1000)).toBe(Number.POSITIVE_INFINITY);
    expect([flight.rate.inFlight, flight.rate.expected(1000)]).toEqual([9, expect.closeTo(1000 / 11, 9)]);
    flight.rate.giveBack();
    flight.send();
    expect(flight.rate.delay(1000)).toBe(Number.POSITIVE_INFINITY); // its place is that of one in flight now
    flight.rate.giveBack(); // the other is not sent
    expect(flight.rate.delay(1000)).toBe(0);
  });

  test('an end lets nobody pass while one that was let go is still to take its place', () => {
    const flight = limited();
    flight.accept();
    flight.rate.admit(1000);
    flight.rate.admit(1000); // as many as are let go at once
    expect(flight.accept()).toBe(false);
    expect(flight.accept()).toBe(true);
  });

  test('expects an end after as long as there is between two', () => {
    const { rate } = limited(); // 11 were accepted (so far) in the last second
    expect(rate.rate).toBe(11);
    expect(rate.expected(1000)).toBeCloseTo(1000 / 11, 9);
  });

  test('an end lets nobody pass while there are more than places', () => {
    const flight = limited().send(); // one too many, at once
    expect(flight.accept()).toBe(false);
    expect(flight.accept()).toBe(true);
  });

  test('an end is waited for by nobody where the rate is the limit', () => {
    expect(new Flight(RULES).send().accept()).toBe(false);
  });

  test('tells as its rate what comes of it, within the bounds', () => {
    const flight = calm();
    flight.send(30).advance(2500);
    expect(flight.rate.rate).toBe(30); // of the last second
    expect(flight.advance(9000).rate.rate).toBe(0.1);
  });

  test('grows while something queues, and not else', () => {
    expect(calm().advance(60_000, false).rate.places).toBe(11);
    const flight = calm().send(130).advance(2500); // 130 a second: calm is a second, counted from the last rejection
    expect(flight.rate.places).toBe(12);
  });

  test('each rejection takes a place, a cut only one an epoch', () => {
    const flight = calm().send(11);
    expect(flight.advance(2300).send().reject()).toBe('places');
    expect(flight.rate.places).toBe(10);
    expect(flight.send().reject()).toBeUndefined();
    expect(flight.rate.places).toBe(9);
  });

  test('is given up for the rate when so much is rejected that something else must be limited', () => {
    const flight = limited();
    for (let i = 0; i < 11; i += 1) flight.accept();
    flight.advance(2000);
    for (let i = 0; i < 17; i += 1) {
      flight.send(2); // of two, one is rejected
      flight.reject();
      flight.accept();
    }
    expect(flight.rate.places).toBe(1);
    flight.advance(4000).send(2);
    flight.accept(); // cooldown
    expect(flight.advance(6000).send().reject()).toBe('heavy');
    expect(flight.rate.places).toBe(Number.POSITIVE_INFINITY);
    expect(flight.rate.pace).toBe(flight.rate.rate);
    expect(flight.rate.delay(6000)).toBe(0);
  });

  test('is given up when nothing passes, for a place is free whenever a request ends', () => {
    const flight = limited().advance(1001);
    for (let i = 0; i < 3; i += 1) flight.send().reject();
    expect(flight.rate.phase).toBe('blocked');
    expect(flight.rate.places).toBe(Number.POSITIVE_INFINITY);
  });

  test('is forgotten in long calm', () => {
    const flight = calm();
    flight.advance(121_000, false);
    expect(flight.rate.places).toBe(11);
    flight.advance(121_001, false);
    expect(flight.rate.phase).toBe('open');
    expect(flight.rate.places).toBe(Number.POSITIVE_INFINITY);
  });

  test('is never believed of requests that would not have been sent', () => {
    const flight = new Flight(EAGER).advance(1000).send(12);
    expect(flight.reject(true)).toBe('first');
    expect(flight.rate.places).toBe(Number.POSITIVE_INFINITY);
  });

  test('is found by what is accepted and rejected, where it is one', () => {
    const flight = new Flight(RULES);
    let [now, cause] = [0, undefined as CutCause | undefined];
    // 10 places: five are out as a rule, and now and then eleven.
    for (let round = 0; round < 100 && cause !== 'places'; round += 1) {
      for (let i = 0; i < 60; i += 1) {
        now += 10;
        flight.advance(now).send();
        while (flight.rate.inFlight >= 5) flight.accept();
      }
      flight.send(11 - flight.rate.inFlight);
      cause = flight.reject();
    }
    expect(cause).toBe('places');
    expect(flight.rate.places).toBe(10);
  });
});
