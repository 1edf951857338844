import { describe, expect, test } from 'vitest';
import { PlaceTurnover } from '../../../src/core/rate/place-turnover.ts';
import type { Millis } from '../../../src/core/scalars.ts';

/** A number of places, and what is measured of the requests in flight. */
class Places {
  readonly turnover = new PlaceTurnover(0);
  readonly size: number;
  inFlight = 0;
  now: Millis = 0;

  constructor(size: number) {
    this.size = size;
  }

  send(): void {
    this.turnover.onChange(this.inFlight, this.now);
    this.inFlight += 1;
  }

  end(): void {
    this.turnover.onEnded(this.inFlight, this.now);
    this.inFlight -= 1;
  }

  /** Keeps so many places taken for `time`, by requests of one length that began at equal intervals. */
  use(taken: number, takes: Millis, time: Millis): void {
    while (this.inFlight < taken) this.send();
    const until = this.now + time;
    const interval = takes / taken;
    for (; this.now + interval <= until; this.send()) {
      this.now += interval;
      this.end();
    }
  }

  get rate(): number | undefined {
    return this.turnover.rate(this.size);
  }
}

describe('the turnover of places', () => {
  test('is places ÷ service time, by Little’s law', () => {
    const places = new Places(30);
    places.use(30, 3000, 20_000);
    expect(places.rate).toBeCloseTo(10, 1);
  });

  test('is the same if few places are taken', () => {
    const places = new Places(30);
    places.use(3, 3000, 60_000);
    expect(places.rate).toBeCloseTo(10, 1);
  });

  test('is unknown before as many requests have ended as are in flight', () => {
    const places = new Places(4);
    for (let i = 0; i < 4; i += 1) places.send();
    places.now = 500;
    for (let i = 0; i < 4; i += 1) {
      expect(places.rate).toBeUndefined();
      places.end();
    }
    expect(places.rate).toBe(8);
  });

  test('follows a change of the service time', () => {
    const places = new Places(30);
    places.use(30, 3000, 20_000);
    places.use(30, 100, 2000);
    expect(places.rate).toBeCloseTo(300, 0);
    places.use(30, 3000, 20_000);
    expect(places.rate).toBeCloseTo(10, 1);
  });

  test('does not change while nothing ends', () => {
    const places = new Places(30);
    places.use(30, 100, 2000);
    const { rate } = places;
    places.now += 3_600_000;
    expect(places.rate).toBe(rate);
  });

  test('recovers from one response of an hour after six ends for each request in flight', () => {
    const places = new Places(30);
    places.use(1, 100, 60_000);
    places.now += 3_600_000;
    places.end();
    places.use(30, 100, 600);
    expect(places.rate).toBeCloseTo(300, 0);
  });

  test('does not count the ends of rejected requests', () => {
    const places = new Places(30);
    places.use(30, 3000, 20_000);
    const before = places.rate;
    for (let i = 0; i < 100; i += 1) {
      places.send();
      places.turnover.onRejected();
      places.end();
    }
    expect(places.rate).toBe(before);
    places.use(30, 3000, 3000);
    expect(places.rate).toBeCloseTo(10, 0);
  });

  test('ignores times that go back', () => {
    const places = new Places(2);
    places.use(2, 100, 5000);
    places.now -= 1000;
    places.end();
    expect(places.rate).toBeGreaterThan(0);
    expect(places.rate).toBeLessThan(Number.POSITIVE_INFINITY);
  });

  test('has a bound if requests end as soon as they are sent', () => {
    const places = new Places(2);
    for (let i = 0; i < 20; i += 1) {
      places.send();
      places.end();
    }
    expect(places.rate).toBe(2000);
  });
});
