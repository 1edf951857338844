import { expect, test } from 'vitest';
import { chooseLogFormat } from '../../../src/laboratory/fit/log/log-format.ts';
import { formatFit } from '../../../src/laboratory/fit/report/format-fit.ts';
import { runToCompletion } from '../../../src/laboratory/experiment.ts';
import { DirectClients } from '../../../src/laboratory/fit/direct-clients.ts';
import { FitExperiment } from '../../../src/laboratory/fit/fit-experiment.ts';
import type { LoggedRequest } from '../../../src/laboratory/fit/logged-request.ts';
import { BucketSearch } from '../../../src/laboratory/fit/infer-bucket.ts';
import { fitUpstream } from '../../../src/laboratory/fit/fit-upstream.ts';
import { LogSurvey } from '../../../src/laboratory/fit/log-survey.ts';
import { formatRequestLine } from '../../../src/telemetry/log/request-log-line.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';

const BEGAN = Date.parse('2026-11-22T10:00:00.000Z');

/** The log line of a request with this outcome, `at` after the beginning. */
function lineOf(at: number, record: Partial<RequestRecord>): LoggedRequest {
  const took = record.took ?? 10;
  const line = formatRequestLine(
    { level: 'info', time: new Date(BEGAN + at + took).toISOString(), bindings: '' },
    {
      id: 'x',
      at,
      route: '/',
      upstream: 'payments',
      method: 'GET',
      path: '/',
      client: 'shop',
      status: 200,
      outcome: 'forwarded',
      reason: undefined,
      attempts: 1,
      queueTime: 0,
      sleepTime: 0,
      timeToHead: took,
      took,
      retryAfterSeconds: undefined,
      isTruncated: false,
      ...record,
    },
  );
  const format = chooseLogFormat(line);
  const logged = 'parse' in format ? format.parse(line, 1) : 'none';
  if (typeof logged === 'string') throw new Error(logged);
  return logged;
}

const SERVED = {};
const RECOVERED = { outcome: 'recovered', attempts: 3, sleepTime: 200, took: 230 } as const;
const PASSED_ON = { status: 429, reason: 'retry_after_too_long' } as const;
const REFUSED = { status: 429, outcome: 'refused', reason: 'over_share', attempts: 0, took: 0 } as const;
const FAILED = { status: 502, outcome: 'upstream_error', reason: 'connect', cause: 'ECONNREFUSED' } as const;

const NOTHING_KNOWN = { rate: undefined, burst: undefined };

function survey(lines: readonly LoggedRequest[]) {
  const seen = new LogSurvey();
  for (const logged of lines) seen.add(logged, logged.at - BEGAN);
  return { surveyed: seen.result(), inferred: runToCompletion(new BucketSearch(seen.segments(), NOTHING_KNOWN)) };
}

test('counts refusals by the proxy as demand, not as refusals by the upstream', () => {
  // A hundred a second, half of them refused by the proxy: the upstream refused nothing.
  const lines = Array.from({ length: 1000 }, (_, i) => lineOf(10 * i, i % 2 === 0 ? SERVED : REFUSED));
  const { surveyed, inferred } = survey(lines);
  expect(surveyed).toMatchObject({
    requests: 1000,
    successes: 500,
    refused: 500,
    refusedHere: 500,
    answers: { passed: 500, refused: 0, unclear: 0 },
  });
  expect(inferred).toBeUndefined();
  expect(fitUpstream(surveyed, inferred, NOTHING_KNOWN).limit).toEqual({ kind: 'unlimited' });
});

test('counts the attempts before a success as responses of the upstream', () => {
  const { surveyed } = survey([lineOf(0, SERVED), lineOf(10, RECOVERED), lineOf(20, PASSED_ON)]);
  expect(surveyed).toMatchObject({ successes: 2, refused: 1, refusedHere: 0 });
  expect(surveyed.answers).toEqual({ passed: 2, refused: 1, failed: 0, unclear: 2, unheard: 0 });
});

test('derives the kind of these attempts from the other fields of the log', () => {
  const limited = survey([lineOf(0, SERVED), lineOf(10, RECOVERED), lineOf(20, REFUSED)]);
  const failing = survey([lineOf(0, SERVED), lineOf(10, RECOVERED), lineOf(20, FAILED)]);
  const known = { rate: 10, burst: 1 };
  expect(fitUpstream(limited.surveyed, undefined, known).errors).toEqual([]);
  // Two attempts of a recovered request, and the reported one.
  expect(fitUpstream(failing.surveyed, undefined, known).errors).toEqual([{ probability: 3 / 5, status: 503 }]);
});

test('counts polls as responses, and not as retries', () => {
  const { surveyed } = survey([lineOf(0, { attempts: 4, polls: 4, sleepTime: 900, took: 1000 })]);
  expect(surveyed.answers).toMatchObject({ passed: 4, unclear: 0 });
});

test('reports above the table how the log was interpreted', () => {
  const lines = [lineOf(0, SERVED), lineOf(10, RECOVERED), lineOf(500, PASSED_ON), lineOf(600, REFUSED)];
  lines.push(lineOf(700, { upstream: 'ledger' }), lineOf(800, { outcome: 'client_gone', status: 0 }));
  let isRead = false;
  const fit = new FitExperiment({
    openLog: () => ({
      progress: 0,
      skipped: 0,
      firstSkipped: undefined,
      aside: 2,
      read: () => {
        isRead = !isRead;
        return isRead ? lines : undefined;
      },
    }),
    known: { rate: 100, burst: 10 },
    candidates: (upstream) => [
      new DirectClients({ name: 'no retries', backOff: undefined, attempts: 1, upstream, seed: 1 }),
    ],
  });
  const { text } = formatFit('x.log', runToCompletion(fit), { rate: 100, burst: 10 });
  expect(text.split('\n\n')[0]?.split('\n')).toEqual([
    'x.log: 6 requests in 1s; 2 requests were not for an upstream',
    'its requests went to several upstreams (payments, ledger…), but are replayed to one: filter the log by upstream first',
    '1 refusal by the proxy: counted as demand, not as responses of the upstream',
    '1 client disconnected before the response: counted as demand',
    '2 attempts retried, counted as 429s: where the log gives a reason, 2 indicate a limit and 0 a failure',
    'replayed to a token bucket of 100/s, burst 10; 9.935ms a request, p99 9.935ms',
    'limit and burst as set: of 6 attempts examined, the upstream rejected 3 and such a bucket rejects 0; in spans of 2.3s the accepted attempts differ by 100 %',
    'a token bucket does not explain this log: perhaps it is a window, several limits, or a limit that changed',
  ]);
  expect(text).toMatch(/\(the log\) +3 +2 +1 +7 +1\.000 /);
});
