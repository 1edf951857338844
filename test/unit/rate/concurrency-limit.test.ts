import { describe, expect, test } from 'vitest';
import type { CutCause } from '../../../src/core/limits/limit-state.ts';
import { AdaptiveRate } from '../../../src/core/rate/adaptive-rate.ts';
import { InFlightLimiter } from '../../../src/core/rate/in-flight-limiter.ts';
import { ConcurrencyLimit, ConcurrencyLimitDetector } from '../../../src/core/rate/concurrency-limit.ts';
import type { RateRules } from '../../../src/core/rate/rules.ts';
import { RATE_RULES } from '../../../src/core/rate/rules.ts';
import type { RateSettings } from '../../../src/core/rate/rate-state.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { rateState } from '../../support/core/rate-builders.ts';

/** 128 requests were accepted with 5 in flight, but this many of them with 10. */
function evidence(asMany = 0): ConcurrencyLimitDetector {
  const watch = new ConcurrencyLimitDetector();
  for (let i = 0; i < 128; i += 1) watch.onAccepted(i < asMany ? 10 : 5);
  return watch;
}

function limiterWith(detector: ConcurrencyLimitDetector): InFlightLimiter {
  return new InFlightLimiter({ ...RATE_RULES, makeConcurrencyDetector: () => detector });
}

describe('a concurrency limit', () => {
  test('is inferred at the fifth rejection with an unusual and constant number in flight', () => {
    const watch = evidence();
    expect([10, 10, 10, 10, 10].map((among) => watch.onRejected(among))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      10,
    ]);
  });

  test('is not inferred before 128 acceptances', () => {
    const watch = new ConcurrencyLimitDetector();
    for (let i = 0; i < 127; i += 1) watch.onAccepted(5);
    for (let i = 0; i < 20; i += 1) expect(watch.onRejected(10)).toBeUndefined();
    watch.onAccepted(5);
    for (let i = 0; i < 4; i += 1) expect(watch.onRejected(10)).toBeUndefined();
    expect(watch.onRejected(10)).toBe(10);
  });

  test('is inferred only if at most 15 % of the accepted requests had as many in flight', () => {
    const often = evidence(20);
    for (let i = 0; i < 20; i += 1) expect(often.onRejected(10)).toBeUndefined();
    const seldom = evidence(19);
    for (let i = 0; i < 4; i += 1) seldom.onRejected(10);
    expect(seldom.onRejected(10)).toBe(10);
  });

  test('is less likely after a rejection at an ordinary number in flight', () => {
    const watch = evidence();
    for (let i = 0; i < 4; i += 1) watch.onRejected(10); // 5.6
    expect(watch.onRejected(5)).toBeUndefined(); // 3.6
    expect(watch.onRejected(10)).toBeUndefined(); // 5.0: the last five agree, but are not enough evidence yet
    expect(watch.onRejected(10)).toBeUndefined(); // 6.4
    expect(watch.onRejected(10)).toBe(10); // 7.8
  });

  test('is the least of five numbers that agree to 15 %, or to one', () => {
    const limitAfter = (...amongs: readonly number[]) => {
      const watch = evidence();
      return amongs.map((among) => watch.onRejected(among)).at(-1);
    };
    expect(limitAfter(22, 20, 21, 23, 23)).toBe(20);
    expect(limitAfter(20, 20, 20, 20, 24)).toBeUndefined();
    expect(limitAfter(6, 7, 6, 7, 6)).toBe(6);
    expect(limitAfter(6, 8, 6, 8, 6)).toBeUndefined();
    expect(limitAfter(40, 20, 20, 20, 20, 20)).toBe(20); // the last five
  });

  test('is compared with the last 128 acceptances', () => {
    const watch = evidence(128);
    for (let i = 0; i < 128; i += 1) watch.onAccepted(5);
    for (let i = 0; i < 4; i += 1) watch.onRejected(10);
    expect(watch.onRejected(10)).toBe(10);
  });

  test('needs new evidence once it was refuted', () => {
    const watch = evidence();
    for (let i = 0; i < 9; i += 1) watch.onRejected(10);
    watch.reset();
    for (let i = 0; i < 4; i += 1) expect(watch.onRejected(10)).toBeUndefined();
    expect(watch.onRejected(10)).toBe(10);
  });
});

describe('the number of places', () => {
  /** A rejection for 130 sends: a second. */
  const state = rateState({ rate: 130, usualProbeLoss: 1 });
  /** All are taken, and a request that was sent then is accepted; then the number may grow. */
  const use = (places: ConcurrencyLimit, now: Millis, terms = state): void => {
    places.onSend(places.size - 1, now);
    places.onAccepted(places.size);
    places.grow(now, terms);
  };

  test('falls by one at each rejection, to the last', () => {
    const places = new ConcurrencyLimit(3, 0);
    const sizes = [1, 2, 3, 4].map((now) => {
      places.onRejected(now);
      return places.size;
    });
    expect(sizes).toEqual([2, 1, 1, 1]);
    expect(new ConcurrencyLimit(0, 0).size).toBe(1);
  });

  test('grows by one, then two, then four in a time without rejections', () => {
    const places = new ConcurrencyLimit(10, 0);
    const sizes = [999, 1000, 1999, 2000, 2999, 3000].map((now) => {
      use(places, now);
      return places.size;
    });
    expect(sizes).toEqual([10, 11, 11, 13, 13, 17]);
  });

  test('restarts that growth after a rejection', () => {
    const places = new ConcurrencyLimit(10, 0);
    use(places, 1000);
    use(places, 2000); // 13
    places.onRejected(2500);
    for (const now of [3499, 3500, 4500]) use(places, now);
    expect(places.size).toBe(12 + 1 + 2);
  });

  test('does not grow before the upstream has accepted a request with all places taken', () => {
    const places = new ConcurrencyLimit(10, 0);
    const growsAfter = (inFlight: number, inFlightAtSend: number): boolean => {
      const { size } = places;
      places.onSend(inFlight, 5000);
      if (inFlightAtSend >= 0) places.onAccepted(inFlightAtSend);
      places.grow(5000, state);
      return places.size > size;
    };
    expect([growsAfter(8, 9), growsAfter(8, 0), growsAfter(9, -1), growsAfter(0, 9)]).toEqual([
      ...[false, false, false, false],
    ]);
    expect(growsAfter(0, 10)).toBe(true);
    places.grow(9000, state); // the eleventh has not been taken yet
    expect(places.size).toBe(11);
    places.onSend(10, 9000);
    places.grow(9000, state); // and the response to that request is not known
    places.onAccepted(0);
    expect(places.size).toBe(11);
    places.grow(9000, state);
    expect(places.size).toBe(13);
  });

  test('grows after 130 sends for each usual rejection, and after a second at least', () => {
    const firstGrowth = (terms: Parameters<typeof rateState>[0]): Millis => {
      for (let now = 0; now < 100_000; now += 500) {
        const places = new ConcurrencyLimit(10, 0);
        use(places, now, rateState(terms));
        if (places.size > 10) return now;
      }
      return Number.NaN;
    };
    expect(firstGrowth({ rate: 13, usualProbeLoss: 1 })).toBe(10_000);
    expect(firstGrowth({ rate: 13, usualProbeLoss: 2.5 })).toBe(25_000);
    expect(firstGrowth({ rate: 1300, usualProbeLoss: 1 })).toBe(1000);
  });

  test('is refuted above 4 % of rejections, smoothed over 400 responses', () => {
    const places = new ConcurrencyLimit(100, 0);
    for (let i = 0; i < 16; i += 1) places.onRejected(i);
    expect(places.isRefuted).toBe(false); // 1 − (399/400)^16 = 3.9 %
    places.onRejected(16);
    expect(places.isRefuted).toBe(true); // 4.2 %
    for (let i = 0; i < 15; i += 1) places.onAccepted(1); // 4.17 % · (399/400)^15
    expect(places.isRefuted).toBe(true);
    for (let i = 0; i < 2; i += 1) places.onAccepted(1);
    expect(places.isRefuted).toBe(false);
  });
});

test('a concurrency limit is cleared when it is refuted, and then needs new evidence', () => {
  const inFlight = limiterWith(evidence());
  for (let i = 0; i < 4; i += 1) expect(inFlight.detectLimit(10, 0)).toBe(false);
  expect(inFlight.detectLimit(10, 0)).toBe(true);
  expect(inFlight.limit).toBe(9);
  expect(inFlight.detectLimit(3, 0)).toBe(true); // enforced, whatever the number
  for (let i = 0; i < 17; i += 1) inFlight.onRejected(0);
  expect(inFlight.detectLimit(10, 0)).toBe(false);
  expect(inFlight.limit).toBe(Number.POSITIVE_INFINITY);
  for (let i = 0; i < 4; i += 1) expect(inFlight.detectLimit(10, 0)).toBe(false);
  expect(inFlight.detectLimit(10, 0)).toBe(true);
});

test('a concurrency limit is not inferred while the number in flight is unknown', () => {
  const inFlight = limiterWith(evidence());
  for (let i = 0; i < 128; i += 1) inFlight.onAccepted(0);
  for (let i = 0; i < 20; i += 1) expect(inFlight.detectLimit(0, 0)).toBe(false);
  for (let i = 0; i < 4; i += 1) expect(inFlight.detectLimit(10, 0)).toBe(false);
  expect(inFlight.detectLimit(10, 0)).toBe(true);
});

test('a response that is being received does not count against a limit that latency has shown', () => {
  const latencyLimiter = {
    limit: 2,
    throughput: 10,
    onAnswer: () => true,
    onTimeout: () => undefined,
    advance: () => undefined,
  };
  const inFlight = new InFlightLimiter({ ...RATE_RULES, makeLatencyLimiter: () => latencyLimiter });
  const accepted = { latency: 50, at: 0, isRejecting: false };
  for (let i = 0; i < 3; i += 1) inFlight.onSent(0);
  expect(inFlight.onAccepted(1, accepted)).toBe(true);
  inFlight.onResponse();
  expect([inFlight.isFull, inFlight.latencyLimit]).toEqual([true, { size: 2, unanswered: 2, isTest: false }]);
  inFlight.onResponse();
  expect([inFlight.isFull, inFlight.count]).toEqual([false, 3]);
  // The response of one was not reported, as by a worker that did not know that responses count.
  for (let i = 0; i < 3; i += 1) inFlight.onEnded(0);
  expect(inFlight.latencyLimit).toEqual({ size: 2, unanswered: 0, isTest: false });
  latencyLimiter.throughput = Number.POSITIVE_INFINITY;
  expect(inFlight.latencyLimit?.isTest).toBe(true);
  inFlight.onAccepted(1);
  expect([inFlight.limit, inFlight.latencyLimit]).toEqual([Number.POSITIVE_INFINITY, undefined]);
});

/** Accepts any evidence at once. */
const EAGER: RateRules = {
  ...RATE_RULES,
  makeConcurrencyDetector: () => ({
    onAccepted: () => undefined,
    onRejected: (among) => among,
    reset: () => undefined,
  }),
};

/** An upstream with slow responses: a request stays in flight until a test ends it. */
class Flight {
  readonly rate: AdaptiveRate;
  now: Millis = 0;
  readonly #out: { readonly sentAt: Millis; readonly among: number }[] = [];

  constructor(rules: RateRules, settings: Partial<RateSettings> = {}) {
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
    for (let i = 0; i < count; i += 1) this.#out.push({ sentAt: this.now, among: this.rate.onSent(this.now) });
    return this;
  }

  /** The oldest request in flight is accepted. Returns whether another may have been waiting for that. */
  accept(): boolean {
    const { sentAt, among } = this.#take(this.#out.shift());
    this.rate.onAccepted(sentAt, among, this.now);
    return this.rate.inFlightLimiter.onEnded(this.now);
  }

  /** The newest request is rejected. */
  reject(overrun = false): CutCause | undefined {
    const { sentAt, among } = this.#take(this.#out.pop());
    const cause = this.rate.onRejected(
      { sentAt, inFlightAtSend: among, retryAfterMs: undefined, activeClients: 1, overrun },
      this.now,
    );
    this.rate.inFlightLimiter.onEnded(this.now);
    return cause;
  }

  #take<T>(one: T | undefined): T {
    if (one === undefined) throw new Error('no request is in flight');
    return one;
  }
}

/** Of 12 in flight the last was rejected, at 1000; 11 are still in flight. */
function limited(settings: Partial<RateSettings> = {}): Flight {
  const flight = new Flight(EAGER, settings).advance(1000).send(12);
  expect(flight.reject()).toBe('places');
  return flight;
}

/** So many times, so many requests are sent at once, and end after this time; then all earlier ones have ended. */
function use(flight: Flight, count: number, takes: Millis, queued = true, rounds = 30): Flight {
  while (flight.rate.inFlightLimiter.count > 0) flight.accept();
  for (let round = 0; round < rounds; round += 1) {
    flight.send(count).advance(flight.now + takes, queued);
    for (let i = 0; i < count; i += 1) flight.accept();
    flight.advance(flight.now, queued);
  }
  return flight;
}

/** Expects Little's law to hold to a sixth: all requests of `use` end at once. */
function expectRate({ rate }: Flight, takes: Millis): void {
  const byLaw = (1000 * rate.inFlightLimiter.limit) / takes;
  expect(rate.rate / byLaw).toBeGreaterThan(5 / 6);
  expect(rate.rate / byLaw).toBeLessThan(7 / 6);
}

/** The same, and all of them accepted after 900 ms: nothing has been rejected since, and cooldown is over at 2000. */
function calm(): Flight {
  const flight = limited().advance(1900);
  for (let i = 0; i < 11; i += 1) flight.accept();
  flight.send().accept();
  return flight.advance(2000);
}

describe('a limit by places', () => {
  test('allows one fewer than were rejected, and sets no pace', () => {
    const { rate } = limited();
    expect(rate.inFlightLimiter.limit).toBe(11);
    expect(rate.inFlightLimiter.count).toBe(11);
    expect(rate.pace).toBe(Number.POSITIVE_INFINITY);
    expect(limited({ maxRate: 500 }).rate.pace).toBe(500);
  });

  test('admits no request while all places are taken, until a request ends', () => {
    const flight = limited();
    expect(flight.rate.delay(1000)).toBe(Number.POSITIVE_INFINITY);
    expect(flight.accept()).toBe(true);
    expect(flight.rate.delay(1000)).toBe(0);
    expect(flight.rate.expectedDelay(1000)).toBe(0);
  });

  test('assigns a place to an admitted request at once, until that is sent or abandoned', () => {
    const flight = limited();
    flight.accept();
    flight.accept(); // two of 11 are free
    flight.rate.admit(1000);
    expect(flight.rate.delay(1000)).toBe(0);
    flight.rate.admit(1000);
    expect(flight.rate.delay(1000)).toBe(Number.POSITIVE_INFINITY);
    expect([flight.rate.inFlightLimiter.count, flight.rate.expectedDelay(1000)]).toEqual([
      9,
      expect.closeTo(1000 / 11, 9),
    ]);
    flight.rate.inFlightLimiter.releaseReservation();
    flight.send();
    expect(flight.rate.delay(1000)).toBe(Number.POSITIVE_INFINITY); // its place is that of a request now in flight
    flight.rate.inFlightLimiter.releaseReservation(); // the other is not sent
    expect(flight.rate.delay(1000)).toBe(0);
  });

  test('admits no request when one ends while an admitted request is not sent yet', () => {
    const flight = limited();
    flight.accept();
    flight.rate.admit(1000);
    flight.rate.admit(1000); // as many as are admitted at once
    expect(flight.accept()).toBe(false);
    expect(flight.accept()).toBe(true);
  });

  test('expects a request to end after the usual interval between two ends', () => {
    const { rate } = limited(); // 11 were accepted (so far) in the last second
    expect(rate.rate).toBe(11);
    expect(rate.expectedDelay(1000)).toBeCloseTo(1000 / 11, 9);
  });

  test('admits no request when one ends while more than the limit are in flight', () => {
    const flight = limited().send(); // one too many, at once
    expect(flight.accept()).toBe(false);
    expect(flight.accept()).toBe(true);
  });

  test('wakes no waiting request when one ends while the rate is the limit', () => {
    expect(new Flight(RATE_RULES).send().accept()).toBe(false);
  });

  test.each([true, false])('has a rate of places ÷ service time; requests queue: %s', (queued) => {
    const flight = limited();
    for (const [inFlight, takes] of [
      [11, 100],
      [11, 1000],
      [3, 50],
    ] as const) {
      use(flight, inFlight, takes, queued, 80);
      expectRate(flight, takes);
    }
  });

  test('has the same rate after a time in which nothing is sent', () => {
    const flight = use(limited(), 11, 100);
    flight.advance(flight.now + 9000, false);
    expectRate(flight, 100);
  });

  test('has the same rate if no request was accepted in the last second, because those in flight take longer', () => {
    const flight = use(limited(), 11, 3000, false).send(11);
    for (let i = 0; i < 29; i += 1) {
      flight.advance(flight.now + 100);
      expectRate(flight, 3000);
      expect(flight.rate.expectedDelay(flight.now)).toBeLessThan(350);
    }
  });

  test('has a rate within the bounds', () => {
    expect(use(limited({ maxRate: 50 }), 11, 100).rate.rate).toBe(50);
    expect(use(limited({ minRate: 20 }), 11, 1000, false).rate.rate).toBe(20);
  });

  test('starts at the rate that follows from the mean round trip', () => {
    const flight = new Flight(EAGER).advance(1000).send(12).advance(1200);
    flight.accept(); // after 200 ms
    expect(flight.send(2).reject()).toBe('places');
    expect([flight.rate.inFlightLimiter.limit, flight.rate.rate]).toEqual([12, 60]);
  });

  test('grows only while requests queue', () => {
    expect(calm().advance(60_000, false).rate.inFlightLimiter.limit).toBe(11);
    const flight = use(limited(), 11, 11_000 / 130, false); // 130 a second: quiet time is a second
    expect(flight.rate.inFlightLimiter.limit).toBe(11);
    expect(flight.advance(flight.now).rate.inFlightLimiter.limit).toBe(12);
  });

  test('grows after 130 sends without a rejection, however few were sent in the last second', () => {
    const flight = use(limited(), 11, 3000, false).send(11); // 11/3 a second
    const calmSince = 1000;
    expect(flight.now - calmSince).toBeGreaterThan(130_000 / (11 / 3));
    expect(flight.advance(flight.now + 2000).rate.inFlightLimiter.limit).toBe(12);
    flight.send(); // the twelfth
    for (let i = 0; i < 12; i += 1) flight.accept();
    expect(flight.advance(flight.now + 30_000).rate.inFlightLimiter.limit).toBe(12);
    expect(flight.advance(flight.now + 6000).rate.inFlightLimiter.limit).toBe(14);
  });

  test('loses a place at each rejection, though a cut is made only once in an epoch', () => {
    const flight = calm().send(11);
    expect(flight.advance(2300).send().reject()).toBe('places');
    expect(flight.rate.inFlightLimiter.limit).toBe(10);
    expect(flight.send().reject()).toBeUndefined();
    expect(flight.rate.inFlightLimiter.limit).toBe(9);
  });

  test('is replaced by the rate if so many requests are rejected that another limit must exist', () => {
    const flight = limited();
    for (let i = 0; i < 11; i += 1) flight.accept();
    flight.advance(2000);
    for (let i = 0; i < 17; i += 1) {
      flight.send(2); // of two, one is rejected
      flight.reject();
      flight.accept();
    }
    expect(flight.rate.inFlightLimiter.limit).toBe(1);
    flight.advance(4000).send(2);
    flight.accept(); // cooldown
    expect(flight.advance(6000).send().reject()).toBe('heavy');
    expect(flight.rate.inFlightLimiter.limit).toBe(Number.POSITIVE_INFINITY);
    expect(flight.rate.pace).toBe(flight.rate.rate);
    expect(flight.rate.delay(6000)).toBe(0);
  });

  test('is replaced if nothing is accepted, because a place is free whenever a request ends', () => {
    const flight = limited().advance(1001);
    for (let i = 0; i < 3; i += 1) flight.send().reject();
    expect(flight.rate.phase).toBe('blocked');
    expect(flight.rate.inFlightLimiter.limit).toBe(Number.POSITIVE_INFINITY);
  });

  test('is cleared after a long time without rejections', () => {
    const flight = calm();
    flight.advance(121_000, false);
    expect(flight.rate.inFlightLimiter.limit).toBe(11);
    flight.advance(121_001, false);
    expect(flight.rate.phase).toBe('open');
    expect(flight.rate.inFlightLimiter.limit).toBe(Number.POSITIVE_INFINITY);
  });

  test('is never inferred from requests that would not have been sent', () => {
    const flight = new Flight(EAGER).advance(1000).send(12);
    expect(flight.reject(true)).toBe('first');
    expect(flight.rate.inFlightLimiter.limit).toBe(Number.POSITIVE_INFINITY);
  });

  test('is inferred from acceptances and rejections if the upstream has one', () => {
    const flight = new Flight(RATE_RULES);
    let [now, cause] = [0, undefined as CutCause | undefined];
    // 10 places: five are usually in flight, and now and then eleven.
    for (let round = 0; round < 100 && cause !== 'places'; round += 1) {
      for (let i = 0; i < 60; i += 1) {
        now += 10;
        flight.advance(now).send();
        while (flight.rate.inFlightLimiter.count >= 5) flight.accept();
      }
      flight.send(11 - flight.rate.inFlightLimiter.count);
      cause = flight.reject();
    }
    expect(cause).toBe('places');
    expect(flight.rate.inFlightLimiter.limit).toBe(10);
  });
});
