import { expect, test } from 'vitest';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { NO_HINTS } from '../../../src/core/hints/hints.ts';
import { LastOutcomes } from '../../../src/http/upstream/last-outcomes.ts';
import { describeFailure } from '../../../src/telemetry/describe-failure.ts';

function response(status: number, throttled?: boolean): AttemptOutcome {
  return { kind: 'response', status, hints: throttled === undefined ? NO_HINTS : { ...NO_HINTS, throttled }, took: 1 };
}

const REFUSED: AttemptOutcome = { kind: 'error', reason: 'connect', sent: false, took: 1 };

test('an endpoint keeps its last failure until it responds', () => {
  const outcomes = new LastOutcomes(2);
  expect(outcomes.of(0)).toEqual({ failure: undefined, workedAt: undefined });
  outcomes.record(0, REFUSED, 'ECONNREFUSED', 10);
  expect(outcomes.of(0)).toEqual({
    failure: { at: 10, reason: 'connect', code: 'ECONNREFUSED' },
    workedAt: undefined,
  });
  expect(outcomes.of(1).failure).toBeUndefined();
  outcomes.record(0, response(404), undefined, 20);
  expect(outcomes.of(0)).toEqual({ failure: undefined, workedAt: 20 });
});

test('a 5xx is recorded as a failure, unless it is throttling', () => {
  const outcomes = new LastOutcomes(1);
  outcomes.record(0, response(500), undefined, 10);
  expect(outcomes.of(0).failure).toEqual({ at: 10, reason: 'status', code: '500' });
  outcomes.record(0, response(503, true), undefined, 20);
  expect(outcomes.of(0).failure).toBeUndefined();
});

test('a failure is described by its cause', () => {
  const words = (reason: 'connect' | 'reset' | 'timeout' | 'status', code?: string): string =>
    describeFailure({ at: 0, reason, code });
  expect(words('connect', 'ECONNREFUSED')).toBe('unreachable: connection refused');
  expect(words('connect', 'CERT_HAS_EXPIRED')).toBe('unreachable: certificate has expired');
  expect(words('connect', 'ERR_SSL_WRONG_VERSION_NUMBER')).toBe(
    'unreachable: TLS handshake failed (ERR_SSL_WRONG_VERSION_NUMBER)',
  );
  expect(words('connect', 'EXDEV')).toBe('unreachable: EXDEV');
  expect(words('connect')).toBe('unreachable: no connection');
  expect(words('connect', 'REFUSED_STREAM')).toBe('requests refused unread: stream refused');
  expect(words('connect', 'GOAWAY')).toBe('requests refused unread: connection closed');
  expect(words('reset', 'ECONNRESET')).toBe('connection closed before a response');
  expect(words('timeout')).toBe('no response in time');
  expect(words('status', '503')).toBe('responds with 503');
});
