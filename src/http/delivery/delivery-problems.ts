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
  'The body is longer than what is stored for delivery. Ask for a larger deliver.maxBody of the route.',
  'body_too_large',
);

export const WRITE_TOO_LARGE = requestProblem(
  413,
  'Content too large',
  'The body is longer than what is stored of a write that is sent later. Send it without Prefer: respond-async, or ask for a larger retry.replayLimit of the route.',
  'body_too_large',
);

export const KEY_MISSING = requestProblem(
  400,
  'Idempotency key missing',
  'A write that is sent later needs an idempotency key, without which it could take effect twice. Send one, or leave out Prefer: respond-async.',
  'key_missing',
);

export const KEY_REUSED_BY_WRITE = requestProblem(
  422,
  'Key reused',
  'A write with this idempotency key was accepted with another query or body. This one was not. For another write, use a new key.',
  'key_reused',
);

export const CALLBACK_REJECTED = requestProblem(
  400,
  'Callback rejected',
  'Tidegate-Callback has to be a path, without a query, of the route that async.callback of this route names.',
  'callback_rejected',
);

/** Nothing was stored, as far as is known, so the sender has to send it again. */
export function storeProblem(result: Extract<AddResult, { readonly kind: 'full' | 'unavailable' }>): Problem {
  const isFull = result.kind === 'full';
  if (result.kind === 'unavailable' && result.mayBeStored === true)
    return asUnknownOutcome(PERHAPS_STORED, 'this_request');
  return {
    status: isFull ? 503 : 507,
    title: isFull ? 'Too many deliveries' : 'Insufficient storage',
    detail: isFull
      ? 'As many deliveries wait as may be stored. This one was not stored: send it again later.'
      : 'Deliveries cannot be stored now. This one was not stored: send it again later.',
    reason: isFull ? 'deliveries_full' : 'deliveries_unavailable',
    proxyError: 'http_request_denied',
    retryAfterMs: isFull ? FULL_RETRY_AFTER : UNAVAILABLE_RETRY_AFTER,
    unknown: false,
  };
}

const PERHAPS_STORED: Problem = {
  status: 504,
  title: 'Outcome unknown',
  detail: 'The store of deliveries has not replied. This one may be stored, and sent later.',
  reason: 'deliveries_unavailable',
  proxyError: 'http_request_denied',
  retryAfterMs: undefined,
  unknown: true,
};

/** The state of a delivery cannot be read. */
export const STATE_UNAVAILABLE: Problem = {
  status: 503,
  title: 'Service unavailable',
  detail: 'The state of deliveries cannot be read now. Ask again later.',
  reason: 'deliveries_unavailable',
  proxyError: 'http_request_denied',
  retryAfterMs: UNAVAILABLE_RETRY_AFTER,
  unknown: false,
};
