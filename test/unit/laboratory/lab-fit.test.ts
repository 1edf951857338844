import { describe, expect, test } from 'vitest';
import { chooseLogFormat } from '../../../src/laboratory/fit/log/log-format.ts';
import { runToCompletion } from '../../../src/laboratory/experiment.ts';
import { DirectClients } from '../../../src/laboratory/fit/direct-clients.ts';
import type { FitResult } from '../../../src/laboratory/fit/fit-experiment.ts';
import { FitExperiment } from '../../../src/laboratory/fit/fit-experiment.ts';
import { ArrivalSorter } from '../../../src/laboratory/fit/arrival-sorter.ts';
import type { LoggedRequest, LogReader } from '../../../src/laboratory/fit/logged-request.ts';
import { classifyStatus, endOfAnswer, SINGLE_ATTEMPT } from '../../../src/laboratory/fit/logged-request.ts';
import { fitUpstream } from '../../../src/laboratory/fit/fit-upstream.ts';
import { LogSurvey } from '../../../src/laboratory/fit/log-survey.ts';
import { formatRequestLine } from '../../../src/telemetry/log/request-log-line.ts';
import { makeBackOff } from '../../../src/core/backoff/strategies.ts';
import { TokenBucket } from '../../../src/simulator/limit-models/token-bucket.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';

function logged(at: number, status = 200, took?: number, line = 1): LoggedRequest {
  const answer = classifyStatus(status);
  return {
    line,
    at,
    client: 'a',
    end: endOfAnswer(answer),
    attempts: SINGLE_ATTEMPT[answer],
    upstream: '',
    method: 'GET',
    path: '/',
    service: took,
    took,
  };
}

/** The log of an upstream with 50/s, burst 5, under 80/s of random traffic for so long; a success takes 40 ms. */
function traffic(seconds: number): LoggedRequest[] {
  const random = seededRandom(1);
  const bucket = new TokenBucket({ kind: 'token-bucket', rate: 50, burst: 5 });
  const lines: LoggedRequest[] = [];
  for (let at = 0; at < 1000 * seconds; at += (-1000 * Math.log(1 - random())) / 80) {
    lines.push(bucket.tryAcquire(at).accepted ? logged(at, 200, 40) : logged(at, 429, 1));
  }
  return lines;
}

function readerOf(lines: readonly LoggedRequest[]): LogReader {
  let read = 0;
  return {
    get progress() {
      return lines.length === 0 ? 1 : read / lines.length;
    },
    skipped: 0,
    firstSkipped: undefined,
    aside: 0,
    read() {
      if (read === lines.length) return undefined;
      const some = lines.slice(read, read + 100);
      read += some.length;
      return some;
    },
  };
}

function played(lines: readonly LoggedRequest[], rate?: number): FitResult {
  return runToCompletion(
    new FitExperiment({
      openLog: () => readerOf(lines),
      known: { rate, burst: 5 },
      candidates: (upstream) => [
        new DirectClients({ name: 'once', backOff: undefined, attempts: 4, upstream, seed: 1 }),
        new DirectClients({
          name: 'fixed',
          backOff: makeBackOff({ strategy: 'fixed' }),
          attempts: 4,
          upstream,
          seed: 1,
        }),
      ],
    }),
  );
}

describe('a replayed log', () => {
  const lines = traffic(60);
  const refused = lines.filter(({ end }) => end === 'refused').length;

  test('without retries reproduces its outcome against the limit under which it was written', () => {
    const { rows, surveyed } = played(lines, 50);
    expect(surveyed).toMatchObject({ requests: lines.length, refused, failed: 0 });
    expect(rows[0]).toMatchObject({ requests: lines.length, refused, sends: lines.length });
  });

  test('lasts as long as the original, including slow responses', () => {
    // One in twenty takes a hundred times as long, which matches no named distribution.
    const uneven = lines.map((line, i) => {
      const took = line.end === 'refused' ? 2 : i % 20 === 0 ? 4000 + i : 30 + (i % 20);
      return { ...line, took, service: took };
    });
    const { surveyed, rows } = played(uneven, 50);
    const [{ latency } = { latency: undefined }] = rows;
    expect(surveyed.latency!.p99).toBeGreaterThan(4000);
    expect(Math.abs(latency!.p50 / surveyed.latency!.p50 - 1)).toBeLessThan(0.03);
    expect(Math.abs(latency!.p99 / surveyed.latency!.p99 - 1)).toBeLessThan(0.03);
  });

  test('sends more with retries, and loses none of its requests', () => {
    const [once, fixed] = played(lines, 50).rows;
    expect(fixed!.sends).toBeGreaterThan(once!.sends);
    expect(fixed!.waste).toBeGreaterThan(once!.waste);
    expect(fixed!.successes + fixed!.refused + fixed!.failed).toBe(lines.length);
  });

  test('reports the results so far when it is stopped early', () => {
    const fit = new FitExperiment({
      openLog: () => readerOf(lines),
      known: { rate: 50, burst: 5 },
      candidates: () => [],
    });
    fit.step();
    expect(fit.progress).toBeLessThan(1);
    expect(fit.result()).toMatchObject({ upstream: undefined, rows: [] });
  });

  test('has no limit and no rows without a request', () => {
    const { rows, upstream, surveyed } = played([]);
    expect(surveyed).toMatchObject({ requests: 0, span: 0, latency: undefined });
    expect(upstream?.limit).toEqual({ kind: 'unlimited' });
    expect(rows[0]).toMatchObject({ requests: 0, waste: 0 });
  });
});

test('turns failures of a log into errors of its upstream', () => {
  const survey = new LogSurvey();
  for (const [at, status] of [200, 200, 200, 503].entries()) survey.add(logged(at, status), at);
  const { errors, limit } = fitUpstream(survey.result(), undefined, { rate: 10, burst: undefined });
  expect(errors).toEqual([{ probability: 0.25, status: 503 }]);
  expect(limit).toEqual({ kind: 'token-bucket', rate: 10, burst: 1 });
});

test('sorts requests by arrival, and places very late ones at the position where they are read', () => {
  const times: number[] = [];
  const order = new ArrivalSorter((_, at) => times.push(at));
  for (const at of [1000, 5000, 3000, 200_000, 2000]) order.add(logged(at));
  order.flush();
  expect(times).toEqual([0, 2000, 4000, 4000, 199_000]);
});

describe('a log out of order', () => {
  /** A request a second, some of them logged two minutes late. */
  const unsorted = (late: ReadonlySet<number>): LoggedRequest[] =>
    Array.from({ length: 1000 }, (_, i) => logged(1000 * (late.has(i) ? i - 120 : i), 200, 5, i + 2));

  test('is replayed if the disorder is slight, with a note on what was moved', () => {
    const { stage, disorder, rows } = played(unsorted(new Set([700, 500])));
    expect({ stage, disorder }).toEqual({
      stage: 'played',
      disorder: { late: 2, first: { line: 502, after: 501, by: 119_000 }, long: 0 },
    });
    expect(rows[0]?.requests).toBe(1000);
  });

  test('is not replayed if more than one line in a hundred is affected', () => {
    const late = new Set(Array.from({ length: 11 }, (_, i) => 500 + 10 * i));
    const { stage, disorder, upstream, rows } = played(unsorted(late));
    expect({ stage, upstream, rows }).toEqual({ stage: 'disordered', upstream: undefined, rows: [] });
    expect(disorder).toMatchObject({ late: 11, first: { line: 502 } });
  });

  test('by less than a minute counts as ordered', () => {
    const lines = Array.from({ length: 1000 }, (_, i) => logged(1000 * (i % 2 === 0 ? i : i - 50)));
    expect(played(lines)).toMatchObject({ stage: 'played', disorder: { late: 0, first: undefined, long: 0 } });
  });

  test('counts as ordered if only long requests, which are logged at their end, cause it', () => {
    const lines = Array.from({ length: 1000 }, (_, i) =>
      i % 10 === 0 ? logged(1000 * (i - 300), 200, 300_000) : logged(1000 * i),
    );
    // The first of them are within the first minute.
    expect(played(lines)).toMatchObject({ stage: 'played', disorder: { late: 0, long: 93 } });
  });
});

describe('a line of a log', () => {
  test('is parsed in the log format of the proxy', () => {
    const head = { level: 'info', time: '2026-11-22T10:00:01.500Z', bindings: '' } as const;
    const record = {
      id: 'x',
      route: '/',
      upstream: 'u',
      method: 'POST',
      path: '/v1/charges',
      client: 'shop',
      status: 200,
      outcome: 'forwarded',
      reason: undefined,
      cause: undefined,
      attempts: 1,
      queueTime: 100,
      sleepTime: 0,
      took: 500,
      retryAfterSeconds: undefined,
      isTruncated: false,
    } as unknown as Parameters<typeof formatRequestLine>[1];
    const line = formatRequestLine(head, record);
    const format = chooseLogFormat(line);
    expect('parse' in format && format.parse(line, 3)).toEqual({
      line: 3,
      at: Date.parse('2026-11-22T10:00:01.000Z'),
      client: 'shop',
      end: 'served',
      attempts: { count: 1, last: 'passed', passed: 0, earlier: 'unclear', firstAfter: 100, lastAfter: 100 },
      upstream: 'u',
      method: 'POST',
      path: '/v1/charges',
      service: 400,
      took: 500,
    });
  });

  test('of another kind is skipped', () => {
    const format = chooseLogFormat('{"level":"info"}');
    const parse = (line: string): unknown => 'parse' in format && format.parse(line, 1);
    expect(parse('{"level":"info","time":"2026-11-22T10:00:01.500Z","msg":"draining"}')).toBe('none');
    expect(parse('{"time":"2026-11-22T10')).toBe('none');
    expect(parse('[1]')).toBe('none');
    expect(parse('{"time":"soon","status":200}')).toBe('none');
  });

  test('of CSV may have its columns in any order, and times of several kinds', () => {
    const format = chooseLogFormat('Status, "client",time,ms');
    const parse = (line: string): unknown => 'parse' in format && format.parse(line, 1);
    const of = (at: number): unknown => ({
      line: 1,
      at,
      client: 'a, b',
      end: 'served',
      attempts: SINGLE_ATTEMPT.passed,
      upstream: '',
      method: 'GET',
      path: '/',
      service: 7.5,
      took: 7.5,
    });
    expect(parse('200,"a, b",1763800000.25,7.5')).toEqual(of(1_763_800_000_250));
    expect(parse('200,"a, b",1763800000250,7.5')).toEqual(of(1_763_800_000_250));
    expect(parse('200,"a, b",2025-11-22T08:26:40.250Z,7.5')).toEqual(of(1_763_800_000_250));
    expect(parse('200,a')).toBe('none');
    expect(parse('ok,a,1,1')).toBe('none');
  });

  test.each([
    ['1760000000', 1_760_000_000_000],
    ['1760000000.25', 1_760_000_000_250],
    ['1760000000250', 1_760_000_000_250],
    ['1760000000250000', 1_760_000_000_250],
    ['1760000000250000000', 1_760_000_000_250],
    ['12.5', 12_500],
    ['2025-10-09T08:53:20Z', 1_760_000_000_000],
    ['9999999999999999999', undefined],
    ['99999999999999999999999', undefined],
    ['9000-01-01', undefined],
    ['soon', undefined],
  ])('with a time of %s is at %s ms after 1970', (time, at) => {
    const format = chooseLogFormat('time,client,status');
    if ('message' in format) throw new Error(format.message);
    const logged = format.parse(`${time},a,200`, 1);
    expect(typeof logged === 'string' ? logged : Math.round(logged.at)).toBe(at ?? 'none');
  });

  test('that begins an unknown log format is reported', () => {
    const wanted = 'time, client and status, and optionally method, path and ms';
    const formatError = (first: string, second?: string) => {
      const format = chooseLogFormat(first, second);
      return 'message' in format ? format.message : 'read';
    };
    expect(formatError('time,who,status')).toBe(
      `has the columns time, who, status, without client: expected ${wanted}`,
    );
    expect(formatError('times,client,code')).toBe(
      `has the columns times, client, code, without time and status (is time the column times?): expected ${wanted}`,
    );
    expect(formatError('Time;Client;Status')).toMatch(/^its columns are separated by semicolons: use commas/);
    expect(formatError('time\tclient\tstatus')).toMatch(/^its columns are separated by tabs/);
    expect(formatError('10.0.0.1 GET / 200')).toBe(
      `is neither JSON nor a CSV header: add a first line that names ${wanted}; or use an access log of nginx (combined), Envoy (default or JSON), Caddy (JSON) or ALB`,
    );
    expect(formatError('127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 2326')).toBe('read');
    expect(formatError('1760000000,shop,200')).toMatch(/^is neither JSON nor a CSV header/);
    expect(formatError('[{"time":1}]')).toMatch(/^begins an array/);
    // The end of a line that began in an earlier file.
    expect(formatError('tus":200,"msg":"request"}', '{"time":1,"status":200}')).toBe('read');
  });
});
