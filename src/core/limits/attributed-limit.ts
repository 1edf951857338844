import { tellLimit } from './limit-ref.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Outcome } from '../exchange/attempt-outcome.ts';

/**
 * Of a request that stands under several limits: which one the answer is held against, as people are told of it. Empty
 * where it names one that the request does not stand under; undefined where it is no refusal for a rate.
 */
export function tellBlamed(
  { refs, blamed }: Pick<Ticket, 'refs' | 'blamed'>,
  { status, hints }: Extract<Outcome, { readonly kind: 'response' }>,
): string | undefined {
  if (blamed !== undefined) return refs.length === 1 ? undefined : tellLimit(blamed.ref) || 'the upstream’s own';
  const isThrottled = (status === 429 || hints.throttled === true) && !hints.lock;
  return isThrottled && hints.limit !== undefined ? '' : undefined;
}
