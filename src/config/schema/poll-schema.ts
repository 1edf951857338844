import { z } from 'zod';
import { BackOffOverride } from './backoff-schema.ts';
import { PositiveDuration } from '../values/unit-schemas.ts';
import type { Reading } from '../values/text-codec.ts';
import { misread, written } from '../values/text-codec.ts';

/** What is left out of a `backOff` of polls. Growing by half, a fifth of it chance: no delay is shorter than the one before. */
export const POLL_BACK_OFF = {
  strategy: 'exponential-jitter',
  baseInterval: 1000,
  multiplier: 1.5,
  maxInterval: 30_000,
  jitter: 0.2,
} as const;

const NotReady = written<number>({
  expected: 'a status from 201 to 499',
  forms: [
    { type: 'integer', minimum: 201, maximum: 499 },
    { type: 'string', pattern: String.raw`^[234]\d\d$` },
  ],
  read: readNotReady,
  write: (status) => status,
});

function readNotReady(input: string | number): Reading<number> {
  if (!/^\d{3}$/.test(String(input))) return misread('expected a status from 201 to 499');
  const status = Number(input);
  if (status === 200) return misread('a 200 is what is waited for: nobody looks into its body', '202');
  if (status === 429) return misread('a 429 says that too much is asked for, and is retried when the rate allows it');
  if (status >= 500) return misread('a 5xx is a failure: retry.retryOn says what becomes of it');
  if (status < 200) return misread('expected a status from 201 to 499');
  return { ok: true, value: status };
}

/** Asking again for what is not ready yet, on behalf of clients that wait; and telling the others when to. GET and HEAD only. */
export const Poll = z.strictObject({
  notReady: z
    .array(NotReady)
    .min(1)
    .prefault([202])
    .describe('Statuses that say “not ready yet”: 202, or 404 where a thing is not there until it is ready.'),
  backOff: BackOffOverride.prefault({
    strategy: 'exponential-jitter',
    baseInterval: '1s',
    multiplier: 1.5,
    maxInterval: '30s',
    jitter: 0.2,
  }).describe('Delays between polls, and what clients that ask again are told, where the upstream names none.'),
  maxWait: PositiveDuration.refine((time) => time >= 1000 && time <= 3_600_000, 'must be from 1s to 1h')
    .prefault('60s')
    .describe('The longest that is waited for a client that asks for it by Prefer: wait.'),
  maxPolls: z
    .int()
    .min(2)
    .max(1000)
    .prefault(50)
    .describe('How often it is asked for a request, the first time included; the last time when the wait ends.'),
  maxWaiting: z
    .int()
    .min(0)
    .max(1_000_000)
    .prefault(1000)
    .describe('Requests of this route that are waited for at a time; others get their answer at once.'),
});
