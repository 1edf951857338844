import { describe, expect, test } from 'vitest';
import { formatInferredLimit } from '../../src/laboratory/fit/report/format-inferred-limit.ts';
import { LogExcerpt } from '../../src/laboratory/fit/log-excerpt.ts';
import type { FitResult } from '../../src/laboratory/fit/fit-experiment.ts';
import type { KnownLimit } from '../../src/laboratory/fit/infer-bucket.ts';
import type { LoggedRequest } from '../../src/laboratory/fit/logged-request.ts';
import { classifyStatus, endOfAnswer, SINGLE_ATTEMPT } from '../../src/laboratory/fit/logged-request.ts';
import type { LimitModelSpec } from '../../src/simulator/limit-models/limit-model-spec.ts';
import { makeLimitModel } from '../../src/simulator/limit-models/limit-model-spec.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { fitLines } from '../support/laboratory/fit-lines.ts';

const NOTHING: KnownLimit = { rate: undefined, burst: undefined };

interface Traffic {
  /** Mean requests a second, at random times. */
  readonly demand: number;
  readonly seconds: number;
  /** Seconds; the first half is busy, the second almost idle. Absent: without idle time. */
  readonly period?: number;
  /** Seconds between the start of the traffic and that of the log. */
  readonly cut?: number;
  /** Maximum delay of a log line, in whole milliseconds. */
  readonly late?: number;
  readonly failures?: number;
}

/** The log of a limit under this traffic. */
function logOf(limit: LimitModelSpec, traffic: Traffic): LoggedRequest[] {
  const { demand, seconds, period, cut = 0, late = 0, failures = 0 } = traffic;
  const random = seededRandom(7);
  const model = makeLimitModel(limit);
  const lines: LoggedRequest[] = [];
  for (let at = 0; at < 1000 * seconds; at += (-1000 * Math.log(1 - random())) / demand) {
    const rests = period !== undefined && at % (1000 * period) > 500 * period;
    if (rests && random() > 0.1) continue;
    const status = !model.tryAcquire(at).accepted ? 429 : random() < failures ? 500 : 200;
    if (at >= 1000 * cut) lines.push(logged(Math.round(at + late * random()), status));
  }
  return lines;
}

function logged(at: number, status: number): LoggedRequest {
  const answer = classifyStatus(status);
  const base = { line: 1, client: 'a', upstream: '', method: 'GET', path: '/', service: undefined, took: undefined };
  return { ...base, at, end: endOfAnswer(answer), attempts: SINGLE_ATTEMPT[answer] };
}

const fit = (lines: readonly LoggedRequest[], known = NOTHING): FitResult => fitLines(lines, known);

/** The shares of refused requests: in the log, and with the inferred limit. */
function shares({ surveyed, rows }: FitResult): { readonly met: number; readonly meets: number } {
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
  // Idle times that fill the bucket, and at least a thousand admissions.
  const period = Math.max(10, (6 * burst) / rate);
  const seconds = Math.max(60, 8 * period, 2000 / rate);

  test.each([
    { what: 'with idle times', traffic: { demand: 1.6 * rate, seconds, period } },
    { what: 'logged late', traffic: { demand: 1.6 * rate, seconds, period, late: 20 } },
    { what: 'rarely reached', traffic: { demand: 1.02 * rate, seconds: 4 * seconds } },
  ])('$what, is identified, and a replay without retries reproduces it', ({ traffic }) => {
    const fitted = fit(logOf(bucket, traffic));
    const { met, meets } = shares(fitted);
    expect(Math.abs((fitted.inferred?.rate ?? 0) / rate - 1)).toBeLessThan(0.03);
    expect(Math.abs((fitted.inferred?.burst ?? 0) - burst)).toBeLessThanOrEqual(Math.max(1, 0.1 * burst));
    expect(Math.abs(met - meets)).toBeLessThan(0.01);
    expect(formatInferredLimit(fitted, NOTHING).at(-1)).toMatch(/; they agree$/);
  });
});

test('infers the burst if idle times show it, and otherwise assumes the least', () => {
  const bucket = { kind: 'token-bucket', rate: 50, burst: 40 } as const;
  const resting = fit(logOf(bucket, { demand: 80, seconds: 200, period: 20 }));
  expect(resting.inferred).toMatchObject({ burst: 40, burstIs: 'told' });
  // Without idle time the bucket is never full, so its size cannot be inferred.
  const alwaysBusy = fit(logOf(bucket, { demand: 80, seconds: 200, cut: 20 }));
  expect(alwaysBusy.inferred?.burstIs).toBe('least');
  expect(alwaysBusy.inferred?.burst).toBeLessThan(20);
  expect(formatInferredLimit(alwaysBusy, NOTHING).join('\n')).toContain('the burst may be larger');
});

test('does not count failures as refusals, and counts the tokens of failed requests', () => {
  const bucket = { kind: 'token-bucket', rate: 50, burst: 20 } as const;
  const { inferred } = fit(logOf(bucket, { demand: 80, seconds: 200, period: 20, failures: 0.05 }));
  expect(Math.abs((inferred?.rate ?? 0) / 50 - 1)).toBeLessThan(0.02);
  expect(Math.abs((inferred?.burst ?? 0) - 20)).toBeLessThanOrEqual(2);
});

test('infers the rate for a given burst, and the burst for a given rate', () => {
  const bucket = { kind: 'token-bucket', rate: 50, burst: 40 } as const;
  const lines = logOf(bucket, { demand: 80, seconds: 200, period: 20 });
  expect(fit(lines, { rate: 50, burst: undefined }).inferred).toMatchObject({ rate: 50, burst: 40 });
  const { inferred } = fit(lines, { rate: undefined, burst: 40 });
  expect(inferred?.burst).toBe(40);
  expect(Math.abs((inferred?.rate ?? 0) / 50 - 1)).toBeLessThan(0.01);
});

test('infers the burst from what was admitted, if the given rate was never reached', () => {
  // Thirty at once, every ten seconds: 27 more than the tokens added meanwhile.
  const lines = Array.from({ length: 900 }, (_, i) => logged(10_000 * Math.floor(i / 30) + 10 * (i % 30), 200));
  const { inferred, upstream, rows } = fit(lines, { rate: 10, burst: undefined });
  expect(inferred).toMatchObject({ burst: 28, burstIs: 'least', wouldRefuse: 0 });
  expect(upstream?.limit).toEqual({ kind: 'token-bucket', rate: 10, burst: 28 });
  expect(rows[0]?.refused).toBe(0);
});

test('reports that a one-minute window is no token bucket, and infers its rate', () => {
  const fitted = fit(logOf({ kind: 'fixed-window', limit: 600, window: 60_000 }, { demand: 20, seconds: 1800 }));
  expect(Math.abs((fitted.inferred?.rate ?? 0) / 10 - 1)).toBeLessThan(0.02);
  expect(fitted.inferred?.off).toBeGreaterThan(0.3);
  expect(formatInferredLimit(fitted, NOTHING).join('\n')).toContain('a token bucket does not explain this log');
});

test('reports that a given limit does not match the log', () => {
  const lines = logOf({ kind: 'token-bucket', rate: 50, burst: 5 }, { demand: 80, seconds: 60 });
  const known = { rate: 70, burst: 5 };
  expect(formatInferredLimit(fit(lines, known), known).at(-1)).toMatch(/; the limit is wrong/);
});

test('marks the result as a guess if there are few refusals', () => {
  const bucket = { kind: 'token-bucket', rate: 50, burst: 20 } as const;
  const lines = logOf(bucket, { demand: 46, seconds: 60 });
  const fitted = fit(lines);
  expect(fitted.inferred?.refused).toBeGreaterThan(0);
  expect(fitted.inferred?.refused).toBeLessThan(20);
  expect(formatInferredLimit(fitted, NOTHING).join('\n')).toContain('make this a guess');
});

describe('an excerpt of a long log', () => {
  const million = (answer: (i: number) => 'passed' | 'refused', keepsQuiet = false) => {
    const excerpt = new LogExcerpt(keepsQuiet);
    for (let i = 0; i < 1_000_000; i += 1) excerpt.add(answer(i), i);
    return excerpt.segments('refused');
  };
  const size = (stretches: ReturnType<typeof million>) => stretches.reduce((sum, { count }) => sum + count, 0);

  test('is limited in size, and covers the whole log', () => {
    const stretches = million((i) => (i % 3 === 0 ? 'refused' : 'passed'));
    expect(size(stretches)).toBeLessThanOrEqual(262_144);
    expect(size(stretches)).toBeGreaterThan(100_000);
    expect(stretches.at(-1)?.at[0]).toBeGreaterThan(700_000);
    expect(stretches.slice(1).every(({ isContiguous }) => !isContiguous)).toBe(true);
  });

  test('contains the refusals, wherever they are', () => {
    const stretches = million((i) => (i === 900_000 ? 'refused' : 'passed'));
    const refused = stretches.flatMap(({ at, outcomes }) => [...at].filter((_, i) => outcomes[i] === 1));
    expect(refused).toEqual([900_000]);
  });
});
