/** The limiter in front of a service in virtual time: requests wait for it while as many are in flight as it allows. */
import { describe, expect, test } from 'vitest';
import { LatencyLimiter } from '../../../src/core/rate/latency-limiter.ts';
import type { Millis, PerSecond } from '../../../src/core/scalars.ts';
import { EventQueue } from '../../../src/simulator/engine/event-queue.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { StationSpec } from '../../../src/simulator/service/service-station.ts';
import { makeLatencySampler } from '../../../src/simulator/upstream/latency-model.ts';
import { ServiceStation } from '../../../src/simulator/service/service-station.ts';

interface Load {
  readonly station: StationSpec;
  /** Of Poisson arrivals. */
  readonly rate: PerSecond;
  readonly work: (random: () => number, now: Millis) => Millis;
  readonly seed?: number;
  /** Changes of the number of workers. */
  readonly steps?: readonly (readonly [at: Millis, workers: number])[];
  /** The part of the limit that is used, as where tokens arrive late from another process; 1 by default. */
  readonly use?: number;
  /** The limit is ignored, as in observe mode. */
  readonly isObserved?: boolean;
}

/** A limiter under load, second by second. */
class Loaded {
  readonly limiter = new LatencyLimiter();
  readonly #load: Load;
  readonly #random: () => number;
  readonly #station: ServiceStation;
  #rate: PerSecond;
  readonly #arrivals = new EventQueue<'arrival'>();
  readonly #steps: (readonly [at: Millis, workers: number])[];
  #now: Millis = 0;
  #inFlight = 0;
  #waiting = 0;
  /** Since the last call of `run`. */
  answers = 0;
  delayed = 0;
  queuesFound = 0;

  constructor(load: Load) {
    this.#load = load;
    this.#rate = load.rate;
    this.#random = seededRandom(load.seed ?? 1);
    this.#station = new ServiceStation(load.station);
    this.#steps = [...(load.steps ?? [])];
    this.#arrivals.push(0, 'arrival');
  }

  /** Runs on. @returns answers a second, and the share of requests that had to wait for the limiter */
  run(time: Millis): { readonly answered: PerSecond; readonly delayed: number } {
    const until = this.#now + time;
    [this.answers, this.delayed] = [0, 0];
    for (;;) {
      const [stepAt = Number.POSITIVE_INFINITY, workers = 0] = this.#steps[0] ?? [];
      const at = Math.min(this.#arrivals.nextAt, this.#station.nextEventAt(), stepAt);
      if (at > until) break;
      this.#now = at;
      this.limiter.advance(this.#inFlight, at);
      if (at === stepAt) {
        this.#steps.shift();
        this.#station.setWorkers(workers, at);
      } else if (at === this.#arrivals.nextAt) this.#arrive();
      else this.#station.advance(at);
    }
    this.#now = until;
    const sent = Math.max(1, this.answers);
    return { answered: (1000 * this.answers) / time, delayed: this.delayed / sent };
  }

  /** From the next arrival on. */
  setRate(rate: PerSecond): void {
    this.#rate = rate;
  }

  #arrive(): void {
    this.#arrivals.pop();
    this.#arrivals.push(this.#now - (Math.log(1 - this.#random()) * 1000) / this.#rate, 'arrival');
    // No more than that wait, as with a bound of the queue.
    if (this.#isFull() && this.#waiting >= 50) return;
    this.#waiting += 1;
    if (this.#isFull()) this.delayed += 1;
    this.#send();
  }

  #isFull(): boolean {
    const { isObserved = false, use = 1 } = this.#load;
    return !isObserved && this.#inFlight >= Math.max(1, use * this.limiter.limit);
  }

  #send(): void {
    while (this.#waiting > 0 && !this.#isFull()) {
      this.#waiting -= 1;
      this.#inFlight += 1;
      const sentAt = this.#now;
      const onServed = (at: Millis): void => {
        this.#now = at;
        this.answers += 1;
        if (this.limiter.onAnswer(at - sentAt, this.#inFlight, at, false)) this.queuesFound += 1;
        this.#inFlight -= 1;
        this.#send();
      };
      this.#station.arrive({ work: this.#load.work(this.#random, this.#now), poolWork: 0, onServed }, this.#now);
    }
  }
}

const constant = (mean: Millis) => makeLatencySampler({ kind: 'constant', mean });
const exponential = (mean: Millis) => makeLatencySampler({ kind: 'exponential', mean });
const heavyTailed = (mean: Millis) => makeLatencySampler({ kind: 'lognormal', mean, sigma: 1 });

const SEEDS = [1, 2, 3, 4];

describe('a service with a queue at twice its capacity', () => {
  test.each([
    ['8 workers of 50 ms', 8, constant(50)],
    ['8 workers of 50 ms on average', 8, exponential(50)],
    ['8 workers with a heavy tail', 8, heavyTailed(50)],
    ['2 workers of 200 ms', 2, constant(200)],
    ['100 workers of 50 ms on average', 100, exponential(50)],
  ])('is used fully with about twice as many in flight as workers: %s', (_, workers, work) => {
    const capacity = workers === 2 ? 10 : workers * 20;
    let [answers, inFlight] = [0, 0];
    for (const seed of SEEDS) {
      const loaded = new Loaded({ station: { workers }, rate: 2 * capacity, work, seed });
      loaded.run(workers === 2 ? 20_000 : 8000);
      expect(loaded.queuesFound).toBe(1);
      for (let second = 0; second < 60; second += 1) {
        answers += loaded.run(1000).answered;
        inFlight += loaded.limiter.limit;
      }
      expect(loaded.limiter.throughput / capacity).toBeGreaterThan(0.7);
      expect(loaded.limiter.throughput / capacity).toBeLessThan(1.8);
    }
    const seconds = 60 * SEEDS.length;
    expect(answers / seconds / capacity).toBeGreaterThan(0.92);
    expect(inFlight / seconds / workers).toBeGreaterThan(1.4);
    expect(inFlight / seconds / workers).toBeLessThan(2.8);
  });

  test('is found although a test uses its limit only in part', () => {
    for (const seed of SEEDS) {
      const loaded = new Loaded({ station: { workers: 8 }, rate: 320, work: exponential(50), use: 0.6, seed });
      loaded.run(10_000);
      expect(loaded.queuesFound).toBe(1);
    }
  });

  test('is used fully when all requests share its workers', () => {
    const station = { workers: 4, discipline: 'sharing' } as const;
    let [answers, inFlight] = [0, 0];
    for (const seed of SEEDS) {
      const loaded = new Loaded({ station, rate: 80, work: exponential(100), seed });
      loaded.run(8000);
      for (let second = 0; second < 60; second += 1) {
        answers += loaded.run(1000).answered;
        inFlight += loaded.limiter.limit;
      }
    }
    expect(answers / (60 * SEEDS.length)).toBeGreaterThan(0.9 * 40);
    expect(inFlight / (60 * SEEDS.length)).toBeLessThan(14);
  });

  test('does not collapse, although it becomes slower with each request more', () => {
    const station = { workers: 16, thrashing: { above: 32, slowdown: 0.01 } };
    for (const seed of SEEDS) {
      const loaded = new Loaded({ station, rate: 640, work: exponential(50), seed });
      loaded.run(3000);
      expect(loaded.run(60_000).answered).toBeGreaterThan(0.88 * 320);
    }
  });

  test('is used fully again after workers were added or removed', () => {
    const steps = [
      [20_000, 32],
      [50_000, 8],
    ] as const;
    const loaded = new Loaded({ station: { workers: 8 }, rate: 1280, work: exponential(50), steps });
    loaded.run(20_000);
    loaded.run(5000);
    expect(loaded.run(25_000).answered).toBeGreaterThan(0.88 * 640);
    loaded.run(10_000);
    expect(loaded.run(20_000).answered).toBeGreaterThan(0.88 * 160);
    expect(loaded.limiter.limit).toBeLessThan(32);
  });
});

describe('a service without a queue', () => {
  test.each([
    ['constant latency', constant(50), 0],
    ['exponential latency', exponential(50), 0.005],
    ['a heavy tail', heavyTailed(50), 0.02],
  ])('is hardly delayed, if at all: %s', (_, work, most) => {
    for (const seed of SEEDS) {
      const loaded = new Loaded({ station: { workers: 1_000_000 }, rate: 100, work, seed });
      const { delayed, answered } = loaded.run(600_000);
      expect(delayed).toBeLessThanOrEqual(most);
      expect(answered).toBeGreaterThan(98);
    }
  });

  test('that becomes three times as slow for good is delayed for a moment, and goes on at its rate', () => {
    for (const seed of SEEDS) {
      const slowdowns = [{ factor: 3, from: 30_000 }];
      const loaded = new Loaded({ station: { workers: 1_000_000, slowdowns }, rate: 200, work: constant(50), seed });
      loaded.run(30_000);
      expect(loaded.run(3000).delayed).toBeLessThan(0.6);
      const { delayed, answered } = loaded.run(60_000);
      expect(delayed).toBeLessThan(0.05);
      expect(answered).toBeGreaterThan(195);
      loaded.run(600_000);
      expect(loaded.run(1_200_000).delayed).toBe(0);
    }
  });

  test('that had a minute of cached responses is hardly delayed', () => {
    const work = (random: () => number, now: Millis): Millis => (now < 60_000 ? 5 : exponential(50)(random));
    for (const seed of SEEDS) {
      const loaded = new Loaded({ station: { workers: 1_000_000 }, rate: 200, work, seed });
      loaded.run(60_000);
      expect(loaded.run(1_200_000).delayed).toBeLessThan(0.02);
    }
  });

  // The chance that a test with few answers finds a queue where there is none is not small, so a verdict has to be revised.
  test('that seemed to have a queue gets ten times the requests soon after they arrive', () => {
    let [answered, found] = [0, 0];
    const seeds = Array.from({ length: 20 }, (_, i) => i + 1);
    for (const seed of seeds) {
      const work = (random: () => number, now: Millis) => exponential(now < 60_000 ? 15 : 50)(random);
      const loaded = new Loaded({ station: { workers: 1_000_000 }, rate: 80, work, seed });
      loaded.run(660_000);
      found += loaded.limiter.throughput < Number.POSITIVE_INFINITY ? 1 : 0;
      loaded.setRate(800);
      answered += loaded.run(3000).answered / 800 / seeds.length;
    }
    expect(found).toBeGreaterThan(10);
    expect(answered).toBeGreaterThan(0.75);
  });

  test('that has become slower and is overloaded later is found to have a queue', () => {
    const steps = [[600_000, 8]] as const;
    const work = (_random: () => number, now: Millis): Millis => (now < 60_000 ? 10 : 50);
    for (const seed of SEEDS) {
      const loaded = new Loaded({ station: { workers: 1_000_000 }, rate: 320, work, steps, seed });
      loaded.run(600_000);
      expect(loaded.queuesFound).toBe(0);
      loaded.run(10_000);
      expect(loaded.queuesFound).toBe(1);
    }
  });
});

describe('a service whose slow requests become more frequent', () => {
  /** Every request lasts 50 ms, but after a minute more than half of them are polls of 30 s. */
  const polls = (random: () => number, now: Millis): Millis => (random() < (now < 60_000 ? 0.01 : 0.57) ? 30_000 : 50);
  test.each(SEEDS)('is not delayed (seed %i)', (seed) => {
    const loaded = new Loaded({ station: { workers: 1_000_000 }, rate: 20, work: polls, seed });
    loaded.run(60_000);
    expect(loaded.run(600_000).delayed).toBe(0);
  });

  /** After a minute, there are only polls. */
  const onlyPolls = (_random: () => number, now: Millis): Millis => (now < 60_000 ? 50 : 30_000);
  test.each(SEEDS)('is hardly delayed (seed %i)', (seed) => {
    const loaded = new Loaded({ station: { workers: 1_000_000 }, rate: 20, work: onlyPolls, seed });
    loaded.run(60_000);
    // Nothing is answered in the first half minute.
    loaded.run(30_000);
    expect(loaded.run(300_000).answered).toBeGreaterThan(0.9 * 20);
  });
});

test('gives up a test whose limit does not hold, as in observe mode', () => {
  const loaded = new Loaded({ station: { workers: 8 }, rate: 320, work: constant(50), isObserved: true });
  let limited = 0;
  for (let second = 0; second < 100; second += 1) {
    loaded.run(1000);
    if (loaded.limiter.limit < Number.POSITIVE_INFINITY) limited += 1;
  }
  expect(loaded.queuesFound).toBe(0);
  expect(limited).toBeGreaterThan(0);
  expect(limited).toBeLessThan(60);
});
