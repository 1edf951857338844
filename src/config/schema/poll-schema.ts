import { z } from 'zod';
import { BackOffOverrideSchema } from './backoff-schema.ts';
import { PositiveDuration } from '../values/unit-schemas.ts';
import type { ParseResult } from '../values/text-codec.ts';
import { parseFailure, textCodec } from '../values/text-codec.ts';

/** Defaults of `backOff` of polls. Growth of 1.5 with a jitter of 0.2: no delay is shorter than the one before. */
export const DEFAULT_POLL_BACK_OFF = {
  strategy: 'exponential-jitter',
  baseInterval: 1000,
  multiplier: 1.5,
  maxInterval: 30_000,
  jitter: 0.2,
} as const;

const NotReadyStatus = textCodec<number>({
  expected: 'a status from 201 to 499',
  forms: [
    { type: 'integer', minimum: 201, maximum: 499 },
    { type: 'string', pattern: String.raw`^[234]\d\d$` },
  ],
  parse: parseNotReadyStatus,
  format: (status) => status,
});

function parseNotReadyStatus(input: string | number): ParseResult<number> {
  if (!/^\d{3}$/.test(String(input))) return parseFailure('expected a status from 201 to 499');
  const status = Number(input);
  if (status === 200) return parseFailure('a 200 means that the result is ready: its body is not examined', '202');
  if (status === 429) {
    return parseFailure('a 429 is a rejection by the rate limit, and is retried when the rate allows it');
  }
  if (status >= 500) return parseFailure('a 5xx is a failure: retry.retryOn decides whether it is retried');
  if (status < 200) return parseFailure('expected a status from 201 to 499');
  return { ok: true, value: status };
}

/** Polling for a result that is not ready yet: on behalf of clients that wait, with a Retry-After for others. GET and HEAD only. */
export const PollSchema = z.strictObject({
  notReady: z
    .array(NotReadyStatus)
    .min(1)
    .prefault([202])
    .describe('Statuses that mean “not ready yet”: 202, or 404 where the result does not exist until it is ready.'),
  backOff: BackOffOverrideSchema.prefault({
    strategy: 'exponential-jitter',
    baseInterval: '1s',
    multiplier: 1.5,
    maxInterval: '30s',
    jitter: 0.2,
  }).describe(
    'Delays between polls, and the Retry-After for clients that poll themselves, where the upstream names none.',
  ),
  maxWait: PositiveDuration.refine((time) => time >= 1000 && time <= 3_600_000, 'must be from 1s to 1h')
    .prefault('60s')
    .describe('Maximum wait for a client that sends Prefer: wait.'),
  maxPolls: z
    .int()
    .min(2)
    .max(1000)
    .prefault(50)
    .describe('Maximum polls for one request, the first included; the last is made when the wait ends.'),
  maxWaiting: z
    .int()
    .min(0)
    .max(1_000_000)
    .prefault(1000)
    .describe(
      'Maximum requests of this route waiting at a time, 8/9 of them from one address; others get the current response at once.',
    ),
});
