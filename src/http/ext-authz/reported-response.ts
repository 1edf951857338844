import { z } from 'zod';
import { LONGEST } from '../../core/hints/hint-numbers.ts';
import { isLock, readHints } from '../../core/hints/read-hints.ts';
import type { Hints, Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Throttle } from '../upstream/throttle-rules.ts';

/** What an upstream said, as far as who asked it tells. */
export const Answer = z.strictObject({
  /** Beyond 599 it is the upstream's own. */
  status: z.int().min(100).max(999),
  /** In seconds; as Retry-After among the headers. */
  retryAfter: z.number().min(0).optional(),
  /** Which of its limits refused it: the name of a nested one, or '' for the upstream's own. */
  limit: z.string().max(128).optional(),
  /** In the upstream's word, as Stripe-Rate-Limited-Reason has it. */
  reason: z
    .string()
    .regex(/^[\w.:-]{1,64}$/, 'expected a word of at most 64 letters, digits and _ . : -')
    .optional(),
  /** What stands in its body, at `throttle.codeField`. */
  code: z.string().max(512).optional(),
  headers: z.record(z.string().max(128), z.string().max(1024)).optional(),
  /** What it answered: some rules are of certain methods and paths. */
  method: z.string().max(32).optional(),
  path: z.string().startsWith('/').max(4096).optional(),
});

export type Answer = Readonly<z.output<typeof Answer>>;

/** What it says, read as it would have been in the path. @param wallClock epoch ms */
export function readAnswer(answer: Answer, throttle: Throttle | undefined, wallClock: Millis): Hints {
  const { status, retryAfter, limit, reason, code, method = '', path = '/' } = answer;
  const headers = Object.entries(answer.headers ?? {}).flat();
  // In plain digits, whatever its size.
  if (retryAfter !== undefined) headers.unshift('Retry-After', Math.min(retryAfter, LONGEST / 1000).toFixed(3));
  const read = readHints(status, headers, wallClock);
  const hints = reason === undefined ? read : { ...read, reason, lock: read.lock || isLock(reason) };
  const told = throttle?.concerns(status, hints)
    ? throttle.read(
        { method, path: path.split('?')[0] ?? path, status, headers },
        hints,
        code === undefined ? [] : [code],
        wallClock,
      )
    : hints;
  const meant = told ?? hints;
  return limit === undefined ? meant : { ...meant, limit };
}
