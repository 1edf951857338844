import type { Ticket } from '../admission/ticket.ts';
import { hasFiniteRate, refusalIfBlocked } from '../admission/refusals/refusal-reasons.ts';
import type { Millis } from '../scalars.ts';
import type { Limit } from './limit.ts';

export interface QueueSettings {
  /** The longest time that a request waits. */
  readonly maxWait: Millis;
  /** The maximum number of requests that wait for one upstream. */
  readonly maxDepth: number;
}

/** A client that has been queueing for longer than this uses its whole share, so its requests are refused sooner. */
const STANDING_QUEUE_AFTER: Millis = 1000;
const STANDING_WAIT_SHARE = 0.3;
/** How much longer a request may wait if its client returns at the time of its Retry-After. */
export const RETURN_GRACE: Millis = 1000;
/**
 * The same while a rate paces requests: those without a Retry-After may have been queued before, and several clients return at
 * the start of the same second.
 */
export const PACED_RETURN_GRACE: Millis = 5000;

/** In a shorter time until the deadline, hardly any return on time is served: docs/messages.md. */
const MIN_TIME_TO_SHARE: Millis = 2000;

/**
 * Returns the longest wait at this limit. A client that returns on time may wait longer than others. If the deadline is nearer than
 * that, others leave it some of the time: their requests would fill all of it, and no return on time would be served.
 */
export function longestWait(ticket: Ticket, limit: Limit, queue: QueueSettings, deadline: Millis, now: Millis): Millis {
  const maxWait = maxWaitFor(ticket, limit, queue, now);
  const grace = returnGrace(ticket, now);
  if (ticket.isReturning) return maxWait + grace;
  const timeLeft = deadline - now;
  if (timeLeft <= MIN_TIME_TO_SHARE || !hasFiniteRate(ticket, now)) return maxWait;
  return Math.min(maxWait, Math.max(timeLeft - grace, timeLeft / 2));
}

/** Whether its deadline shortens the longest wait, by what `longestWait` returned. */
export function isCutShort(ticket: Ticket, limit: Limit, queue: QueueSettings, now: Millis): boolean {
  const longest = longestWait(ticket, limit, queue, Number.POSITIVE_INFINITY, now);
  return ticket.maxWait !== undefined && ticket.maxWait < longest;
}

/** How much longer the request of a client that returns on time may wait. An ingress waits only briefly for a check. */
function returnGrace(ticket: Ticket, now: Millis): Millis {
  const isPaced = hasFiniteRate(ticket, now) && refusalIfBlocked(ticket, now) === undefined;
  return isPaced && !ticket.isSentExternally ? PACED_RETURN_GRACE : RETURN_GRACE;
}

/** The longest wait by the settings. A client with a standing queue waits less, unless only connections are scarce. */
function maxWaitFor(ticket: Ticket, limit: Limit, { maxWait }: QueueSettings, now: Millis): Millis {
  const { clientSlot } = ticket;
  const isStanding = clientSlot !== undefined && limit.queue.activeFor(clientSlot, now) > STANDING_QUEUE_AFTER;
  const longest = isStanding && hasFiniteRate(ticket, now) ? STANDING_WAIT_SHARE * maxWait : maxWait;
  return ticket.quotas === undefined ? longest : Math.max(longest, ticket.quotas.leaseWait);
}
