import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IsoTimeCache, formatRequestLine } from '../../src/telemetry/log/request-log-line.ts';
import type { RequestRecord } from '../../src/core/events/request-record.ts';

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('"', '\\', '\n', '\u2028', '\ud800', 'é'),
);
const millis = fc.double({ min: 0, max: 1e9, noNaN: true });

test('a line is JSON, and contains the given values, whatever they are', () => {
  fc.assert(
    fc.property(
      text,
      text,
      text,
      fc.option(text, { nil: undefined }),
      millis,
      fc.boolean(),
      (id, path, route, cause, took, cut) => {
        const record: RequestRecord = {
          id,
          at: 0,
          route,
          upstream: route,
          method: path,
          path,
          client: id,
          status: 502,
          outcome: 'upstream_error',
          reason: cause,
          cause,
          attempts: 1,
          queueTime: took,
          sleepTime: 0,
          timeToHead: 0,
          took,
          retryAfterSeconds: undefined,
          isTruncated: cut,
          ...{ xRequestId: cause, endpoint: cause, bytesIn: 7, bytesOut: 2 ** 33 },
          ...(cut ? { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) } : {}),
        };
        const line = formatRequestLine(
          { level: 'warn', time: '2026-01-02T03:04:05.678Z', bindings: ',"worker":2' },
          record,
        );
        expect(line.indexOf('\n')).toBe(line.length - 1);
        const fields = {
          ...{
            level: 'warn',
            time: '2026-01-02T03:04:05.678Z',
            worker: 2,
            id,
            route,
            method: path,
            path: path.split('?')[0],
          },
          ...{ upstream: route === '' ? undefined : route, client: id === '' ? undefined : id, reason: cause, cause },
          ...{
            status: 502,
            outcome: 'upstream_error',
            attempts: 1,
            sleptMs: 0,
            cut: cut ? true : undefined,
            msg: 'request',
          },
          ...{ xRequestId: cause, endpoint: cause, bytesIn: 7, bytesOut: 2 ** 33 },
          ...(cut ? { trace_id: 'a'.repeat(32), span_id: 'b'.repeat(16) } : {}),
          ...{ queuedMs: Math.round(took * 10) / 10, ms: Math.round(took * 10) / 10 },
        };
        expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify(fields)));
      },
    ),
  );
});

test('the time is formatted as by Date', () => {
  const time = new IsoTimeCache();
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 4e12 })), fc.integer({ min: 0, max: 5 }), (moments, step) => {
      for (const moment of moments.flatMap((each) => [each, each, each + step])) {
        expect(time.at(moment)).toBe(new Date(moment).toISOString());
      }
    }),
  );
});
