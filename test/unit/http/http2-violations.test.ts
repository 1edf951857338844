import { expect, test } from 'vitest';
import { ConnectionSharing } from '../../../src/http/upstream/http2/connection-sharing.ts';
import { isProtocolViolation } from '../../../src/http/upstream/http2/http2-violations.ts';

test('connections are shared again ten minutes after the last violation', () => {
  let now = 0;
  const sharing = new ConnectionSharing({ now: () => now });
  const at = (minutes: number): { readonly resumed: boolean; readonly isPaused: boolean } => {
    now = minutes * 60_000;
    return { resumed: sharing.resumeIfDue(), isPaused: sharing.isPaused };
  };
  expect(at(0)).toEqual({ resumed: false, isPaused: false });
  expect(sharing.pause()).toBe(true);
  expect(at(6)).toEqual({ resumed: false, isPaused: true });
  expect(sharing.pause()).toBe(false);
  expect(at(15.9)).toEqual({ resumed: false, isPaused: true });
  expect(at(16)).toEqual({ resumed: true, isPaused: false });
  expect(at(17)).toEqual({ resumed: false, isPaused: false });
  expect(sharing.pause()).toBe(true);
});

test.each([
  ['an error that nghttp2 returns', { code: 'ERR_HTTP2_ERROR', errno: -505 }, true],
  ['its error with a code of Node', { code: 'ERR_HTTP2_TOO_MANY_INVALID_FRAMES', errno: -505 }, true],
  ['a GOAWAY', { code: 'ERR_HTTP2_SESSION_ERROR' }, false],
  ['an error of one stream', { code: 'ERR_HTTP2_STREAM_ERROR' }, false],
  ['a reset of the connection', { code: 'ECONNRESET', errno: -104 }, false],
])('%s: a violation %j: %s', (_, fields, expected) => {
  expect(isProtocolViolation(Object.assign(new Error('broken'), fields))).toBe(expected);
});
