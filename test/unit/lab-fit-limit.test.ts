import { describe, expect, test } from 'vitest';
import { tellLimit } from '../../src/laboratory/fit/report/format-inferred-limit.ts';
import { finish } from '../../src/laboratory/experiment.ts';
import { Direct, NO_RETRIES } from '../../src/laboratory/fit/direct-clients.ts';
import { Excerpt } from '../../src/laboratory/fit/log-excerpt.ts';
import type { Fitted } from '../../src/laboratory/fit/fit-experiment.ts';
import { Fit } from '../../src/laboratory/fit/fit-experiment.ts';
import type { KnownLimit } from '../../src/laboratory/fit/infer-bucket.ts';
import type { Logged } from '../../src/laboratory/fit/logged-request.ts';
import { answerOf, endOf, ONCE } from '../../src/laboratory/fit/logged-request.ts';
import type { ModelSpec } from '../../src/simulator/limit-models/limit-model-spec.ts';
import { makeModel } from '../../src/simulator/limit-models/limit-model-spec.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';

const NOTHING: KnownLimit = { rate: undefined, burst: undefined };

interface Traffic {
  /** Requests a second, of chance. */
  readonly demand: number;
  readonly seconds: number;
  /** Of so many seconds the first half is busy, the second nearly still. Absent: it never rests. */
  readonly period?: number;
  /** The log begins so many seconds after the traffic. */
  readonly cut?: number;
  /** Lines are noted up to so many ms late, in whole ms. */
  readonly late?: number;
  readonly failures?: number;
}

/** What a limit answers to traffic, as a log has it. */
function logOf(limit: ModelSpec, traffic: Traffic): Logged[] {
  const { demand, seconds, period, cut = 0, late = 0, failures = 0 } = traffic;
  const random = seededRandom(7);
  const model = makeModel(limit);
  const lines: Logged[] = [];
  for (let at = 0; at < 1000 * seconds; at += (-1000 * Math.log(1 - random())) / demand) {
    const rests = period !== undefined && at % (1000 * period) > 500 * period;
    if (rests && random() > 0.1) continue;
    const status = !model.arrive(at).accepted ? 429 : random() < failures ? 500 : 200;
    if (at >= 1000 * cut) lines.push(logged(Math.round(at + late * random()), status));
  }
  return lines;
}

function logged(at: number, status: number): Logged {
  const answer = answerOf(status);
  const untold = { line: 1, client: 'a', upstream: '', method: 'GET', path: '/', service: undefined, took: undefined };
  return { ...untold, at, end: endOf(answer), attempts: ONCE[answer] };
}

function fit(lines: readonly Logged[], known = NOTHING): Fitted {
  return finish(
    new Fit({
      open: () => {
        let isRead = false;
        return {
          progress: 0,
          skipped: 0,
          firstSkipped: undefined,
          aside: 0,
          read() {
            const some = isRead ? undefined : lines;
            isRead = true;
            return some;
          },
        };
      },
      known,
      candidates: (upstream) => [new Direct({ name: NO_RETRIES, backOff: undefined, attempts: 1, upstream, seed: 1 })],
    }),
  );
}

/** The parts of the requests that were refused: in the log, and with what was inferred of it. */
function shares({ surveyed, rows }: Fitted): { readonly met: number; readonly meets: number } {
  return { met: surveyed.refused / surveyed.requests, meets: (rows[0]?.refused ?? 0) / surveyed.requests };
}

const BUCKETS = [
  { rate: 0.5, burst: 10 },
  { rate: 5, burst: 1 },
  { rate: 5, burst: 30 },
  { rate: 50, burst: 5 },
  { rate: 50, burst: 100 },
  { rate: 400, burst: 40 },
] as const;

describe.each(BUCKETS)('a log of a token bucket of $rate/s, burst $burst,', ({ rate, burst }) => {
  const bucket = { kind: 'token-bucket', rate, burst } as const;
  // Rests that fill it, and a thousand passes at least.
  const period = Math.max(10, (6 * burst) / rate);
  const seconds = Math.max(60, 8 * period, 2000 / rate);

  test.each([
    { what: 'that rests now and then', traffic: { demand: 1.6 * rate, seconds, period } },
    { what: 'noted late', traffic: { demand: 1.6 * rate, seconds, period, late: 20 } },
    { what: 'hardly felt', traffic: { demand: 1.02 * rate, seconds: 4 * seconds } },
  ])('$what, shows it, and without retries comes out as it was', ({ traffic }) => {
    const fitted = fit(logOf(bucket, traffic));
    const { met, meets } = shares(fitted);
    expect(Math.abs((fitted.inferred?.rate ?? 0) / rate - 1)).toBeLessThan(0.03);
    expect(Math.abs((fitted.inferred?.burst ?? 0) - burst)).toBeLessThanOrEqual(Math.max(1, 0.1 * burst));
    expect(Math.abs(met - meets)).toBeLessThan(0.01);
    expect(tellLimit(fitted, NOTHING).at(-1)).toMatch(/: they agree$/);
  });
});

test('a burst is told where larger ones would show, and else is the least', () => {
  const bucket = { kind: 'token-bucket', rate: 50, burst: 40 } as const;
  const resting = fit(logOf(bucket, { demand: 80, seconds: 200, period: 20 }));
  expect(resting.inferred).toMatchObject({ burst: 40, burstIs: 'told' });
  // Never at rest: whatever the bucket would hold, it is never seen full.
  const restless = fit(logOf(bucket, { demand: 80, seconds: 200, cut: 20 }));
  expect(restless.inferred?.burstIs).toBe('least');
  expect(restless.inferred?.burst).toBeLessThan(20);
  expect(tellLimit(restless, NOTHING).join('\n')).toContain('the burst may be larger');
});

test('failures are no refusals, and take what they take', () => {
  const bucket = { kind: 'token-bucket', rate: 50, burst: 20 } as const;
  const { inferred } = fit(logOf(bucket, { demand: 80, seconds: 200, period: 20, failures: 0.05 }));
  expect(Math.abs((inferred?.rate ?? 0) / 50 - 1)).toBeLessThan(0.02);
  expect(Math.abs((inferred?.burst ?? 0) - 20)).toBeLessThanOrEqual(2);
});

test('of a limit that is known, the other half is found', () => {
  const bucket = { kind: 'token-bucket', rate: 50, burst: 40 } as const;
  const lines = logOf(bucket, { demand: 80, seconds: 200, period: 20 });
  expect(fit(lines, { rate: 50, burst: undefined }).inferred).toMatchObject({ rate: 50, burst: 40 });
  const { inferred } = fit(lines, { rate: undefined, burst: 40 });
  expect(inferred?.burst).toBe(40);
  expect(Math.abs((inferred?.rate ?? 0) / 50 - 1)).toBeLessThan(0.01);
});

test('of a rate that is known and was never felt, the burst is what was let through beyond it', () => {
  // Thirty at once, every ten seconds: 27 beyond what drips in meanwhile.
  const lines = Array.from({ length: 900 }, (_, i) => logged(10_000 * Math.floor(i / 30) + 10 * (i % 30), 200));
  const { inferred, upstream, rows } = fit(lines, { rate: 10, burst: undefined });
  expect(inferred).toMatchObject({ burst: 28, burstIs: 'least', wouldRefuse: 0 });
  expect(upstream?.limit).toEqual({ kind: 'token-bucket', rate: 10, burst: 28 });
  expect(rows[0]?.refused).toBe(0);
});

test('a window of a minute is told to be no token bucket, and its rate is found', () => {
  const fitted = fit(logOf({ kind: 'fixed-window', limit: 600, window: 60_000 }, { demand: 20, seconds: 1800 }));
  expect(Math.abs((fitted.inferred?.rate ?? 0) / 10 - 1)).toBeLessThan(0.02);
  expect(fitted.inferred?.off).toBeGreaterThan(0.3);
  expect(tellLimit(fitted, NOTHING).join('\n')).toContain('a token bucket does not answer like this log');
});

test('a limit that is told wrongly shows', () => {
  const lines = logOf({ kind: 'token-bucket', rate: 50, burst: 5 }, { demand: 80, seconds: 60 });
  const known = { rate: 70, burst: 5 };
  expect(tellLimit(fit(lines, known), known).at(-1)).toMatch(/: the limit is another/);
});

test('a handful of refusals makes a guess, and that is said', () => {
  const bucket = { kind: 'token-bucket', rate: 50, burst: 20 } as const;
  const lines = logOf(bucket, { demand: 46, seconds: 60 });
  const fitted = fit(lines);
  expect(fitted.inferred?.refused).toBeGreaterThan(0);
  expect(fitted.inferred?.refused).toBeLessThan(20);
  expect(tellLimit(fitted, NOTHING).join('\n')).toContain('make it a guess');
});

describe('an excerpt of a long log', () => {
  const million = (answer: (i: number) => 'passed' | 'refused', keepsQuiet = false) => {
    const excerpt = new Excerpt(keepsQuiet);
    for (let i = 0; i < 1_000_000; i += 1) excerpt.add(answer(i), i);
    return excerpt.stretches('refused');
  };
  const size = (stretches: ReturnType<typeof million>) => stretches.reduce((sum, { count }) => sum + count, 0);

  test('is bounded, and spread over the log', () => {
    const stretches = million((i) => (i % 3 === 0 ? 'refused' : 'passed'));
    expect(size(stretches)).toBeLessThanOrEqual(262_144);
    expect(size(stretches)).toBeGreaterThan(100_000);
    expect(stretches.at(-1)?.at[0]).toBeGreaterThan(700_000);
    expect(stretches.slice(1).every(({ isJoined }) => !isJoined)).toBe(true);
  });

  test('has where something was refused, wherever that is', () => {
    const stretches = million((i) => (i === 900_000 ? 'refused' : 'passed'));
    const refused = stretches.flatMap(({ at, what }) => [...at].filter((_, i) => what[i] === 1));
    expect(refused).toEqual([900_000]);
  });
});
