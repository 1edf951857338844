import { describe, expect, test } from 'vitest';
import { formatTextLine } from '../../../src/telemetry/log/format-text-line.ts';
import { createLogger } from '../../../src/telemetry/log/logger.ts';

const HEAD = { level: 'info', time: '2026-01-02T03:04:05.678Z', instance: 'a4f93f5a' };
const REQUEST = {
  ...{ ...HEAD, id: 'a4f93f5a-1', route: '/', upstream: 'api', method: 'GET', path: '/things', client: 'c0ffee' },
  ...{ status: 200, outcome: 'forwarded', attempts: 1, queuedMs: 0, sleptMs: 0, ms: 12.3, msg: 'request' },
};

function text(fields: object, useColour = false): string {
  return formatTextLine(`${JSON.stringify(fields)}\n`, useColour);
}

describe('the line of a request', () => {
  test('begins with the request and the response, and omits usual values', () => {
    expect(text(REQUEST)).toBe(
      '03:04:05.678Z INFO  GET /things → 200 forwarded, 12.3 ms  id=a4f93f5a-1 upstream=api client=c0ffee\n',
    );
  });

  test('has the reason and the cause, and attempts and waits if there were several', () => {
    const failed = { level: 'warn', status: 504, outcome: 'unknown', reason: 'reset', cause: 'ECONNRESET', ms: 1204 };
    expect(text({ ...REQUEST, ...failed, route: '/v1', attempts: 3, sleptMs: 300.5 })).toBe(
      '03:04:05.678Z WARN  GET /things → 504 unknown (reset, ECONNRESET), 1204 ms  id=a4f93f5a-1 route=/v1 upstream=api client=c0ffee attempts=3 sleptMs=300.5\n',
    );
  });

  test('does not repeat a reason that the outcome names', () => {
    const late = { status: 429, outcome: 'queue_timeout', reason: 'queue_timeout', attempts: 0 };
    expect(text({ ...REQUEST, ...late })).toContain('GET /things → 429 queue_timeout, 12.3 ms  id=');
  });

  test('shows that there was no response, and that a request was not readable', () => {
    expect(text({ ...REQUEST, status: 0, outcome: 'client_gone' })).toContain(
      'GET /things → no response client_gone, ',
    );
    expect(text({ ...REQUEST, method: '', path: '', status: 400 })).toContain('INFO  (unreadable) → 400 ');
  });
});

test('another line begins with its message, and quotes values if needed', () => {
  const change = { upstream: 'api', from: 'open', to: 'backoff', rate: 41.2, changed: ['a', 'b'], why: 'a b' };
  expect(text({ ...HEAD, ...change, msg: 'limit changed state' })).toBe(
    '03:04:05.678Z INFO  limit changed state  upstream=api from=open to=backoff rate=41.2 changed=["a","b"] why="a b"\n',
  );
});

test('multi-line texts and stack traces follow, indented', () => {
  const err = { type: 'Error', message: 'it broke', stack: 'Error: it broke\n    at x' };
  expect(text({ ...HEAD, level: 'error', problem: 'one\ntwo', err, msg: 'not reloaded' })).toBe(
    '03:04:05.678Z ERROR not reloaded\n    problem:\n    one\n    two\n    Error: it broke\n        at x\n',
  );
});

test('a line contains no control character for the terminal', () => {
  const hostile = '/\u001b[2J\u009b31m\r\u202e';
  const line = text({ ...REQUEST, path: hostile, client: hostile, [hostile]: hostile });
  // oxlint-disable-next-line no-control-regex -- matches control characters
  expect(line.slice(0, -1)).not.toMatch(/[\0-\x1f\x7f-\x9f\u202e]/);
  expect(line).toContain('GET /�[2J�31m�� → 200');
});

test('colours mark the level if they are enabled', () => {
  const warning = { ...HEAD, level: 'warn', msg: 'endpoint ejected', endpoint: 'a:1' };
  expect(text(warning, true)).toBe(
    '\u001b[2m03:04:05.678Z\u001b[0m \u001b[33mWARN \u001b[0m endpoint ejected  \u001b[2mendpoint=a:1\u001b[0m\n',
  );
});

test('secrets are redacted before a line becomes text', () => {
  const written: string[] = [];
  const destination = { write: (line: string) => void written.push(formatTextLine(line, true)) };
  createLogger({ level: 'info', destination }).info({ headers: { authorization: 'hush' } }, 'hello');
  expect(written.join('')).toContain('[redacted]');
  expect(written.join('')).not.toContain('hush');
});

test('a line that is not JSON stays as it is', () => {
  expect(formatTextLine('well\n', true)).toBe('well\n');
});
