import { z } from 'zod';
import { MAX_DELAY } from '../../core/hints/hint-numbers.ts';
import { isObjectLockReason } from '../../core/hints/object-lock.ts';
import { readHints } from '../../core/hints/read-hints.ts';
import type { Hints } from '../../core/hints/hints.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ThrottleRules } from '../upstream/throttle-rules.ts';

/** An upstream's response, as an ingress reports it. */
export const ReportedResponse = z.strictObject({
  /** Some upstreams use statuses above 599. */
  status: z.int().min(100).max(999),
  /** In seconds; the same as a Retry-After among the headers. */
  retryAfter: z.number().min(0).optional(),
  /** The limit that rejected it: the name of a nested one, or '' for the upstream's own. */
  limit: z.string().max(128).optional(),
  /** The reason that the upstream gives, such as a Stripe-Rate-Limited-Reason. */
  reason: z
    .string()
    .regex(/^[\w.:-]{1,64}$/, 'expected a word of at most 64 letters, digits and _ . : -')
    .optional(),
  /** The error code in the body, at `throttle.codeField`. */
  code: z.string().max(512).optional(),
  headers: z.record(z.string().max(128), z.string().max(1024)).optional(),
  /** Of the request: some rules match certain methods and paths. */
  method: z.string().max(32).optional(),
  path: z.string().startsWith('/').max(4096).optional(),
});

export type ReportedResponse = Readonly<z.output<typeof ReportedResponse>>;

/** The hints of a reported response, as they would be read in the request path. @param wallClock epoch ms */
export function hintsOfReport(
  reported: ReportedResponse,
  throttle: ThrottleRules | undefined,
  wallClock: Millis,
): Hints {
  const { status, retryAfter, limit, reason, code, method = '', path = '/' } = reported;
  const headers = Object.entries(reported.headers ?? {}).flat();
  // In plain digits: a large number must not become 1e21.
  if (retryAfter !== undefined) headers.unshift('Retry-After', Math.min(retryAfter, MAX_DELAY / 1000).toFixed(3));
  const fromHeaders = readHints(status, headers, wallClock);
  const hints =
    reason === undefined
      ? fromHeaders
      : { ...fromHeaders, reason, lock: fromHeaders.lock || isObjectLockReason(reason) };
  const throttled = throttle?.appliesTo(status, hints)
    ? throttle.classify(
        { method, path: path.split('?')[0] ?? path, status, headers },
        hints,
        code === undefined ? [] : [code],
        wallClock,
      )
    : hints;
  const effective = throttled ?? hints;
  return limit === undefined ? effective : { ...effective, limit, quotaLimit: limit };
}
