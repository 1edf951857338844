import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { Job, StationSpec } from '../../../src/simulator/service/service-station.ts';
import { ServiceStation } from '../../../src/simulator/service/service-station.ts';
import { makeLatencySampler } from '../../../src/simulator/upstream/latency-model.ts';
import { Slowness } from '../../../src/simulator/service/slowdown.ts';

type Arrival = readonly [at: number, work: number, poolWork?: number];

/** Runs all to their end. @returns when each was served, in the order of arrival, to the microsecond */
function serve(spec: StationSpec, arrivals: readonly Arrival[], until = 1e6): number[] {
  const station = new ServiceStation(spec);
  const served: number[] = arrivals.map(() => Number.NaN);
  for (const [i, [at, work, poolWork = 0]] of arrivals.entries()) {
    station.arrive({ work, poolWork, onServed: (when) => (served[i] = Math.round(when * 1000) / 1000) }, at);
  }
  station.advance(until);
  return served;
}

describe('workers in the order of arrival', () => {
  test('serve one request each, and the others wait', () => {
    const arrivals: Arrival[] = [
      [0, 10],
      [0, 30],
      [1, 10],
      [2, 5],
    ];
    expect(serve({ workers: 2 }, arrivals)).toEqual([10, 30, 20, 25]);
  });

  test('that are added take waiting requests at once, and one that is removed ends what it serves', () => {
    const ends: [string, number][] = [];
    const station = new ServiceStation({ workers: 1 });
    const job = (name: string): Job => ({ work: 10, poolWork: 0, onServed: (at) => ends.push([name, at]) });
    for (const name of ['a', 'b', 'c', 'd']) station.arrive(job(name), 0);
    station.setWorkers(3, 4);
    station.setWorkers(1, 6);
    expect(station.inFlight).toBe(4);
    station.advance(100);
    expect(ends).toEqual([
      ['a', 10],
      ['b', 14],
      ['c', 14],
      ['d', 24],
    ]);
    expect([station.inFlight, station.nextEventAt()]).toEqual([0, Number.POSITIVE_INFINITY]);
  });

  test('keep their worker while they wait for a connection of the pool', () => {
    const arrivals: Arrival[] = [
      [0, 10, 20],
      [0, 10, 20],
      [0, 10, 20],
    ];
    expect(serve({ workers: 2, pool: { connections: 1 } }, arrivals)).toEqual([30, 50, 70]);
    expect(serve({ workers: 3, pool: { connections: 3 } }, arrivals)).toEqual([30, 30, 30]);
  });

  test('are slowed down by each request beyond a number', () => {
    const thrashing = { above: 1, slowdown: 0.5 };
    // Two at half as long again, until the first has ended.
    const arrivals: Arrival[] = [
      [0, 10],
      [0, 20],
    ];
    expect(serve({ workers: 2, thrashing }, arrivals)).toEqual([15, 25]);
  });
});

describe('workers that are shared', () => {
  test('serve each request at full speed while there are no more than workers', () => {
    const arrivals: Arrival[] = [
      [0, 10],
      [5, 10],
    ];
    expect(serve({ workers: 2, discipline: 'sharing' }, arrivals)).toEqual([10, 15]);
  });

  test('divide their time among more', () => {
    const arrivals: Arrival[] = [
      [0, 10],
      [0, 10],
      [0, 30],
    ];
    // At a third of the speed until 30, then alone.
    expect(serve({ workers: 1, discipline: 'sharing' }, arrivals)).toEqual([30, 30, 50]);
  });
});

describe('a slowdown', () => {
  test('delays what is in service meanwhile, and nothing after it', () => {
    const slowdowns = [{ from: 5, to: 15, factor: 2 }];
    expect(serve({ workers: 1, slowdowns }, [[0, 10]])).toEqual([15]);
    expect(serve({ workers: 1, slowdowns }, [[15, 10]])).toEqual([25]);
    expect(serve({ workers: 1, slowdowns }, [[0, 12]])).toEqual([17]);
  });

  test('comes again in each period', () => {
    const slowdowns = [{ from: 10, every: 100, lasting: 20, factor: 1000 }];
    const slowness = new Slowness(slowdowns);
    expect([9, 10, 29, 30, 109, 110, 129, 130].map((at) => slowness.at(at))).toEqual([
      1, 1000, 1000, 1, 1, 1000, 1000, 1,
    ]);
    expect([0, 10, 29, 30, 110].map((at) => slowness.nextChange(at))).toEqual([10, 30, 30, 110, 130]);
    expect(serve({ workers: 1, slowdowns }, [[0, 150]])[0]).toBeCloseTo(189.96, 9);
  });

  test('has a mean speed over an interval', () => {
    const slowness = new Slowness([{ from: 10, every: 100, lasting: 20, factor: 4 }]);
    expect(slowness.meanSpeed(0, 100)).toBeCloseTo(0.85, 12);
    expect(slowness.meanSpeed(20, 40)).toBeCloseTo(0.625, 12);
    expect([slowness.meanSpeed(10, 10), slowness.meanSpeed(30, 30)]).toEqual([0.25, 1]);
  });

  test('never stands still at a boundary, whatever the period', () => {
    const random = seededRandom(5);
    for (let n = 0; n < 300; n += 1) {
      const every = 0.1 + 10 * random();
      const slowness = new Slowness([{ from: random(), every, lasting: every * random(), factor: 2 }]);
      for (let at = 0, steps = 0; at < 1000; steps += 1) {
        const next = slowness.nextChange(at);
        expect(next).toBeGreaterThan(at);
        at = next;
        if (steps > 100_000) throw new Error('it makes no progress');
      }
    }
  });
});

describe('the mean time at a station with random arrivals', () => {
  /** Mean time at the station of Poisson arrivals at a load, with work of 10 ms on average. */
  function meanTime(spec: StationSpec, load: number, draw: (random: () => number) => number): number {
    const random = seededRandom(11);
    const station = new ServiceStation(spec);
    let [at, total, count] = [0, 0, 0];
    for (let n = 0; n < 200_000; n += 1) {
      at += (-Math.log(1 - random()) * 10) / (load * spec.workers);
      const arrivedAt = at;
      const onServed = (when: number): void => {
        total += when - arrivedAt;
        count += 1;
      };
      station.arrive({ work: draw(random), poolWork: 0, onServed }, at);
    }
    return total / count;
  }
  const exponential = makeLatencySampler({ kind: 'exponential', mean: 10 });

  // Kleinrock, Queueing Systems I (1975), §3.2: T = x ÷ (1 − ρ).
  test.each([0.5, 0.8])('is that of M/M/1 at load %d', (load) => {
    expect(meanTime({ workers: 1 }, load, exponential) / (10 / (1 - load))).toBeCloseTo(1, 1);
  });

  // Pollaczek and Khinchine: for constant work, half the wait of M/M/1.
  test('is that of M/D/1', () => {
    expect(meanTime({ workers: 1 }, 0.8, () => 10) / (10 * (1 + 0.8 / (2 * 0.2)))).toBeCloseTo(1, 1);
  });

  // Kleinrock, Queueing Systems II (1976), §4.4: it depends on the mean work alone.
  test.each([
    ['exponential', exponential],
    ['constant', (): number => 10],
    ['of two kinds', (random: () => number): number => (random() < 0.9 ? 5 : 55)],
  ])('is that of M/G/1 with processor sharing, for work that is %s', (_, draw) => {
    expect(meanTime({ workers: 1, discipline: 'sharing' }, 0.8, draw) / 50).toBeCloseTo(1, 1);
  });
});

test.each([
  [{ workers: 0 }, 'workers'],
  [{ workers: 1, slowdowns: [{ factor: 0.5 }] }, 'factor'],
  [{ workers: 1, slowdowns: [{ factor: 2, every: 0 }] }, 'every'],
  [{ workers: 1, pool: { connections: 0 } }, 'workers'],
] satisfies [StationSpec, string][])('a number out of range is refused: %j', (spec, name) => {
  expect(() => new ServiceStation(spec)).toThrow(new RegExp(`^${name} must be`));
});
