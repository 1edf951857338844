import type { AddResult } from '../../core/delivery/delivery-store.ts';
import type { Millis } from '../../core/scalars.ts';
import { requestProblem } from '../response/problem-details.ts';
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

/** Nothing was stored, so the sender has to send it again. */
export function storeProblem({ kind }: Extract<AddResult, { readonly kind: 'full' | 'unavailable' }>): Problem {
  const isFull = kind === 'full';
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
