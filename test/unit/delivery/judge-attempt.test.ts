import { expect, test } from 'vitest';
import { judgeAttempt } from '../../../src/http/delivery/judge-attempt.ts';

test.each([
  [30, 30_000],
  [30 * 86_400, 3_600_000], // the reset of a quota; a reload may raise its limit before
])('postpones a delivery that was refused for %i s by %i ms', (retryAfterSeconds, retryAfterMs) => {
  const refusal = { outcome: 'refused', status: 429, reason: 'quota_exceeded', attempts: 0, detail: 'why' } as const;
  const acknowledgement = { statuses: new Set([200]), body: undefined };
  expect(judgeAttempt({ ...refusal, retryAfterSeconds }, undefined, acknowledgement)).toEqual({
    kind: 'not_sent',
    retryAfterMs,
  });
});
