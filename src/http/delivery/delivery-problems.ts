import type { AddResult } from '../../core/delivery/delivery-store.ts';
import type { Millis } from '../../core/scalars.ts';
import { asUnknownOutcome, requestProblem } from '../response/problem-details.ts';
import type { Problem } from '../response/problem.ts';

/** A full store empties at the pace of the receiver, a full disk when somebody acts: no exact time is known. */
const FULL_RETRY_AFTER: Millis = 30_000;
const UNAVAILABLE_RETRY_AFTER: Millis = 10_000;

export const BODY_TOO_LARGE = requestProblem(
  413,
  'Content too large',
  'The body is longer than this route stores. Send a shorter one, or ask the operator of Tidegate to raise deliver.maxBody.',
  'body_too_large',
);

export const WRITE_TOO_LARGE = requestProblem(
  413,
  'Content too large',
  'The body is longer than this route stores of a write. Send it without Prefer: respond-async, or ask the operator of Tidegate to raise retry.replayLimit.',
  'body_too_large',
);

export const KEY_MISSING = requestProblem(
  400,
  'Idempotency key missing',
  'Prefer: respond-async needs an idempotency key, without which the write could take effect twice. Send a key, or leave out the preference.',
  'key_missing',
);

export const KEY_REUSED_BY_WRITE = requestProblem(
  422,
  'Key reused',
  'An earlier write with this idempotency key had another query or body. This one was not stored. Use a new key for a new write.',
  'key_reused',
);

export const CALLBACK_REJECTED = requestProblem(
  400,
  'Callback rejected',
  'Tidegate-Callback has to be a path, without a query, of the route for callbacks, which async.callback names. If this route has none, leave the header out.',
  'callback_rejected',
);

/** The sender has to send the request again. If the store cannot confirm that it has stored one, it may have done so. */
export function storeProblem(
  result: Extract<AddResult, { readonly kind: 'full' | 'unavailable' }>,
  { isWrite }: { readonly isWrite: boolean },
): Problem {
  const isFull = result.kind === 'full';
  if (isWrite && result.kind === 'unavailable' && result.mayBeStored === true) return WRITE_PERHAPS_STORED;
  return {
    status: isFull ? 503 : 507,
    title: isFull ? 'Too many deliveries' : 'Insufficient storage',
    detail: isFull
      ? 'The delivery store is full (limits.deliveries or limits.deliveryBytes). This request was not stored: send it again later.'
      : 'The delivery store cannot be written now. Send the request again later.',
    reason: isFull ? 'deliveries_full' : 'deliveries_unavailable',
    proxyError: 'http_request_denied',
    retryAfterMs: isFull ? FULL_RETRY_AFTER : UNAVAILABLE_RETRY_AFTER,
    unknown: false,
  };
}

const WRITE_PERHAPS_STORED = asUnknownOutcome(
  {
    status: 504,
    title: 'Outcome unknown',
    detail: 'The delivery store has not replied. The write may be stored, and sent later.',
    reason: 'deliveries_unavailable',
    proxyError: 'http_request_denied',
    retryAfterMs: undefined,
    unknown: true,
  },
  'this_request',
);

/** The state of a delivery cannot be read. */
export const STATE_UNAVAILABLE: Problem = {
  status: 503,
  title: 'Service unavailable',
  detail: 'The state of deliveries cannot be read now. Read it again later.',
  reason: 'deliveries_unavailable',
  proxyError: 'http_request_denied',
  retryAfterMs: UNAVAILABLE_RETRY_AFTER,
  unknown: false,
};
