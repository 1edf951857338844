import { describe, expect, test } from 'vitest';
import type { FitResult } from '../../../src/laboratory/fit/fit-experiment.ts';
import type { KnownLimit } from '../../../src/laboratory/fit/infer-bucket.ts';
import { chooseLogFormat } from '../../../src/laboratory/fit/log/log-format.ts';
import type { LoggedRequest } from '../../../src/laboratory/fit/logged-request.ts';
import { judgeLimits } from '../../../src/laboratory/fit/limits/limit-verdict.ts';
import { formatFit } from '../../../src/laboratory/fit/report/format-fit.ts';
import { formatIdentifiedLimit } from '../../../src/laboratory/fit/report/format-identified-limit.ts';
import { formatInferredLimit } from '../../../src/laboratory/fit/report/format-inferred-limit.ts';
import type { LimitModelSpec } from '../../../src/simulator/limit-models/limit-model-spec.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { LatencySpec } from '../../../src/simulator/upstream/latency-model.ts';
import { ACCESS_LOG_LINES } from '../../support/laboratory/access-log-lines.ts';
import type { SyntheticResponse } from '../../support/laboratory/synthetic-log.ts';
import { makeSyntheticLog, toLogged } from '../../support/laboratory/synthetic-log.ts';
import { fitLines } from '../../support/laboratory/fit-lines.ts';

const NOTHING: KnownLimit = { rate: undefined, burst: undefined };
const WINDOW = { kind: 'fixed-window', limit: 200, window: 10_000 } as const;

function logOf(limit: LimitModelSpec, demand: number, latency: LatencySpec, requests = 3000): SyntheticResponse[] {
  return makeSyntheticLog({ limit, latency }, { demand, requests, arrivals: 'poisson', seed: 5 });
}

const VARIED = { kind: 'lognormal', mean: 40 } as const;

const fit = (lines: readonly LoggedRequest[], known = NOTHING): FitResult => fitLines(lines, known);

function textOf(fitted: FitResult): string {
  return formatInferredLimit(fitted, NOTHING).join('\n');
}

describe('a log of a fixed window', () => {
  const log = logOf(WINDOW, 26, VARIED);
  const fitted = fit(log.map(toLogged));

  test('names the window, and how sure it is', () => {
    expect(fitted.identified).toMatchObject({ kind: 'fixed-window', confidence: 'sure', missing: 0 });
    expect(textOf(fitted)).toMatch(
      /the limit is a fixed window: it predicts \d+\.\d % of the responses, and the log is \d+ nats likelier than with a /,
    );
    expect(textOf(fitted)).toContain('kinds, the likeliest first: a fixed window of 200 in each 10s (');
  });

  test('is replayed to that window, which refuses as many', () => {
    expect(fitted.upstream?.limit).toEqual(WINDOW);
    expect(textOf(fitted)).toMatch(/; they agree$/);
  });

  test('has the kinds in JSON, without what each predicts', () => {
    const { json } = formatFit('x.log', fitted, NOTHING);
    const text = JSON.stringify(json);
    expect(text).toContain('"identified":{"confidence":"sure","kind":"fixed-window","margin":');
    expect(text).toMatch(
      /"ranking":\[\{"limit":\{"kind":"fixed-window","limit":200,"window":10000,"phase":[\d.]+\},"likelihood":[-\d.]+,"predicted":\d+,"wrong":\d+\}/,
    );
    expect(text.length).toBeLessThan(5000);
  });

  test.each(Object.keys(ACCESS_LOG_LINES))('is recognised in an access log of %s', (server) => {
    const lines = log.map((response) => ACCESS_LOG_LINES[server]?.(response) ?? '');
    const format = chooseLogFormat(lines[0] ?? '', lines[1]);
    if ('message' in format) throw new Error(format.message);
    const parsed = lines.flatMap((line, i) => {
      const logged = format.parse(line, i + 1);
      return typeof logged === 'string' ? [] : [logged];
    });
    expect(parsed).toHaveLength(log.length);
    const { identified } = fit(parsed);
    expect(identified).toMatchObject({ kind: 'fixed-window', confidence: 'sure' });
    expect(identified?.ranking[0]?.limit).toMatchObject(WINDOW);
  });

  test('is not searched for kinds if the limit is given', () => {
    const known = { rate: 20, burst: undefined };
    const { identified, upstream } = fit(log.map(toLogged), known);
    expect(identified).toBeUndefined();
    expect(upstream?.limit).toMatchObject({ kind: 'token-bucket', rate: 20 });
  });

  test('reports that requests in flight were not tried, if it has no durations', () => {
    const untimed = log.map((each, i) => ({ ...toLogged(each, i), took: undefined, service: undefined }));
    expect(textOf(fit(untimed))).toContain('not tried, because the log has no durations');
  });
});

test('a log of a limit on requests in flight is replayed to it', () => {
  const limit = { kind: 'concurrency', limit: 5 } as const;
  const fitted = fit(logOf(limit, 30, { kind: 'constant', mean: 200 }).map(toLogged));
  expect(fitted.identified).toMatchObject({ kind: 'concurrency', confidence: 'sure' });
  expect(fitted.upstream?.limit).toEqual(limit);
  expect(textOf(fitted)).toMatch(/; they agree$/);
});

test('a log of a queue names its workers and the rate that they serve', () => {
  const limit = { kind: 'workers', workers: 8 } as const;
  const fitted = fit(logOf(limit, 140, { kind: 'constant', mean: 50 }).map(toLogged));
  expect(fitted.identified?.queue).toMatchObject({ workers: 8, service: 50 });
  expect(textOf(fitted)).toContain('no limit, but a queue: 8 workers of 50ms a request, so at most 160/s; ');
});

describe('a log of a service that works on all requests at once', () => {
  const limit = { kind: 'workers', workers: 8, discipline: 'sharing' } as const;
  const exponential = { kind: 'exponential', mean: 50 } as const;

  test('names its workers and the rate that they serve', () => {
    const fitted = fit(logOf(limit, 140, { kind: 'constant', mean: 50 }).map(toLogged));
    expect(fitted.identified).toMatchObject({ kind: 'sharing', confidence: 'sure' });
    expect(fitted.identified?.sharing).toMatchObject({ workers: 8, fewest: 8, most: 8 });
    expect(textOf(fitted)).toContain(
      'no limit, but a service that works on all requests at once: 8 workers of 50ms a request, so at most 160/s; ',
    );
    expect(JSON.stringify(formatFit('x.log', fitted, NOTHING).json)).toContain('"sharing":{"workers":8,');
  });

  test('says that its workers do not show if it is always busy', () => {
    const fitted = fit(logOf(limit, 176, exponential, 4400).map(toLogged));
    expect(fitted.identified).toMatchObject({ kind: 'sharing', confidence: 'unsure' });
    expect(textOf(fitted)).toMatch(
      /no limit, but a service that works on all requests at once: the log does not show how many workers it has \(\d+ to \d+\); /,
    );
  });

  test('says that it shows nothing if most requests take longer than the log', () => {
    const fitted = fit(logOf(limit, 480, exponential).map(toLogged));
    expect(fitted.identified).toMatchObject({ kind: 'none', confidence: 'unsure' });
    expect(textOf(fitted)).toContain(
      'latency may depend on the number of requests in flight, but the log shows neither',
    );
  });
});

test.each([
  [
    'a log of hardly any waits',
    3,
    'a queue or a service that works on all requests at once: the log is only 3 nats likelier',
  ],
  ['a log that shows the kind', 300, 'a queue: the log does not show how many workers it has (6 to 12); record more'],
])('%s says what is not sure', (_, margin, text) => {
  const times = { service: 50, mean: 50, waited: 90, examined: 900, correlation: 0, trend: 0 };
  const queue = { ...times, workers: 8, fewest: 6, most: 12, margin: 20 };
  const verdict = { confidence: 'unsure', kind: 'queue', margin, missing: 0, ranking: [] } as const;
  const [line] = formatIdentifiedLimit({
    ...verdict,
    queue,
    sharing: undefined,
    hasTimes: true,
    passed: 900,
    refused: 0,
  });
  expect(line).toContain(`no limit, but ${text}`);
});

test.each([
  ['one of noise that correlates with the load', { correlation: -0.4, trend: -0.02 }, 'queue'],
  ['one that depends on the load', { correlation: -0.4, trend: -0.2 }, 'none'],
  ['one that follows from the load', { correlation: -0.9, trend: -0.02 }, 'none'],
])('a service time is that of a queue: %s', (_, dependence, kind) => {
  const times = { service: 50, mean: 50, waited: 90, examined: 900, margin: 300 };
  const queue = { ...times, ...dependence, workers: 8, fewest: 8, most: 8 };
  expect(judgeLimits([], { queue, sharing: undefined, isHidden: false }, 900, 0).kind).toBe(kind);
});

test('a log with few rejections says how many more requests are needed', () => {
  const fitted = fit(logOf({ kind: 'token-bucket', rate: 50, burst: 10 }, 41, VARIED).map(toLogged));
  const refused = fitted.surveyed.refused;
  expect(refused).toBeGreaterThan(0);
  expect(fitted.identified).toMatchObject({ confidence: 'few', missing: 100 - refused });
  expect(textOf(fitted)).toMatch(
    /not enough responses to tell the kind: \d+ rejections?; record \d+ more, which takes about \d+ more requests/,
  );
  expect(fitted.upstream?.limit.kind).toBe('token-bucket');
});

test('rejections at random are no limit', () => {
  const steady = logOf({ kind: 'unlimited' }, 50, VARIED);
  const random = seededRandom(9);
  const lines = steady.map((each, i) => toLogged({ ...each, status: random() < 0.2 ? 429 : 200 }, i));
  const { identified } = fit(lines);
  expect(identified).toMatchObject({ kind: 'none', confidence: 'sure' });
});

test('a log in whole seconds, as of nginx without $msec, is too coarse to be sure of a kind', () => {
  const log = logOf({ kind: 'token-bucket', rate: 50, burst: 10 }, 70, VARIED);
  const lines = log.map((response) => ACCESS_LOG_LINES['nginx with $msec']?.(response).replace(/ \d+\.\d+$/, '') ?? '');
  const format = chooseLogFormat(lines[0] ?? '');
  if ('message' in format) throw new Error(format.message);
  const parsed = lines.map((line, i) => format.parse(line, i + 1)).filter((logged) => typeof logged !== 'string');
  const fitted = fit(parsed);
  expect(fitted.surveyed.hasWholeSeconds).toBe(true);
  expect(fitted.identified?.confidence).toBe('coarse');
  expect(textOf(fitted)).toContain('the times of the log are whole seconds, too coarse to tell the kind');
  expect(fitted.upstream?.limit.kind).toBe('token-bucket');
  const arrivals = log.map((each, i) => toLogged({ ...each, at: 1000 * Math.floor(each.at / 1000) }, i));
  expect(fit(arrivals).surveyed.hasWholeSeconds).toBe(true);
  expect(fit(log.map(toLogged)).surveyed.hasWholeSeconds).toBe(false);
});
