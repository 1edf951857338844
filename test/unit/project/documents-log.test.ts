import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';
import { formatRequestLine } from '../../../src/telemetry/log/request-log-line.ts';

/** Every field that can be in a line. */
const FULL: Required<Omit<RequestRecord, 'upgradeBytes'>> = {
  ...{ id: 'i', at: 0, route: '/', upstream: 'u', method: 'GET', path: '/', client: 'c', clientName: 'n', status: 503 },
  ...{ outcome: 'unknown', reason: 'reset', attempts: 2, polls: 3, queueTime: 4, sleepTime: 5, timeToHead: 6, took: 7 },
  ...{
    retryAfterSeconds: 8,
    retryAfterFrom: 'upstream',
    isTruncated: true,
    isAbandonedWrite: true,
    cause: 'ECONNRESET',
  },
  ...{ wouldHave: { decision: 'refused', why: 'queue_full' }, wouldRetry: 'status_5xx', detail: 'd' },
  ...{
    retryOutcome: 'deadline',
    mintedKey: 'k',
    upstreamKey: 'u',
    delivery: '01a2',
    write: '0f0f',
    traceId: 't',
    spanId: 's',
    xRequestId: 'x',
    fallbackFrom: 'f',
    endpoint: 'e',
  },
  ...{ bytesIn: 9, bytesOut: 10 },
};

test('docs/log.md lists the fields of a request line, and no others', () => {
  const head = { level: 'info', time: '', bindings: ',"instance":"i","worker":1' } as const;
  const upgraded = { ...FULL, upgradeBytes: { toUpstream: 1, toClient: 2 } };
  const written = new Set(
    [FULL, upgraded].flatMap((record) => Object.keys(JSON.parse(formatRequestLine(head, record)) as object)),
  );
  const text = readFileSync('docs/log.md', 'utf8');
  const tables = text.slice(0, text.indexOf('## Rare events'));
  const rows = [...tables.matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)];
  const listed = rows.flatMap(([, names = '']) => [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  expect(new Set(listed)).toEqual(written);
});
