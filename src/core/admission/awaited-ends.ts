// Which queued requests wait until others end: for a connection, or for a place where the number in flight is limited.

import type { Millis } from '../scalars.ts';
import type { Limit } from '../limits/limit.ts';
import type { ConnectionSlots } from './connection-slots.ts';
import type { GateStore } from './gate-store.ts';
import { findNextTicket } from './queue-selection.ts';
import { attributesFor, type Ticket } from './ticket.ts';
import { awaitsPlaceAt } from './wait-estimate.ts';

/** Requests under way that have to end before queued ones can go. */
export interface AwaitedEnds {
  /** The limit whose places are lacking; undefined if connections are. */
  readonly limit: Limit | undefined;
  readonly count: number;
}

/**
 * Returns what the queues of an upstream wait for, if that is the end of other requests and nothing else: by the next request of
 * each queue. Limits of single clients are not considered where the upstream has no limit for all: a client with such a limit
 * delays no other. Nor are queues whose next request is observed: it was sent, and does not wait.
 */
export function findAwaitedEnds(store: GateStore, upstream: string, now: Millis): AwaitedEnds[] {
  const { connectionSlots: slots } = store.upstream(upstream);
  if (slots === undefined) return [];
  const counts = new Map<Limit | undefined, number>();
  for (const queueLimit of [slots.queueLimit, ...(slots.queueLimit.nestedWithWaiters ?? [])]) {
    const next = findNextTicket(store, queueLimit, now);
    if (next === undefined || next.mode === 'observe') continue;
    const lacking = findLackingResource(next, queueLimit, slots, now);
    if (lacking === 'other') continue;
    const count = Math.min(queueLimit.queue.size, admissibleSoon(next, now));
    counts.set(lacking, (counts.get(lacking) ?? 0) + count);
  }
  return [...counts].map(([limit, count]) => ({ limit, count: count + (limit === undefined ? 0 : excessAt(limit)) }));
}

/** Returns the innermost limit whose place is lacking, `undefined` for a connection, or `other` if not only ends are awaited. */
function findLackingResource(
  ticket: Ticket,
  queueLimit: Limit,
  slots: ConnectionSlots,
  now: Millis,
): Limit | undefined | 'other' {
  let full: Limit | undefined;
  // In a queue that is not its own limit's, it has its tokens.
  for (const limit of queueLimit === ticket.limits.at(-1) ? ticket.limits : []) {
    if (awaitsPlaceAt(limit, ticket, now)) {
      full = limit;
      continue;
    }
    const delay = limit.meter.delay(now, attributesFor(limit.meter, ticket));
    if (delay > 0 && (delay < Number.POSITIVE_INFINITY || isHeldBack(limit, ticket, now))) return 'other';
  }
  if (full !== undefined) return full;
  // Leased tokens that are lacking without an end are not even requested while no connection is free.
  return slots.isFull && !ticket.isSentExternally ? undefined : 'other';
}

function isHeldBack({ meter }: Limit, ticket: Ticket, now: Millis): boolean {
  return meter.isHeldBack?.(now, attributesFor(meter, ticket)) === true;
}

/** How many requests with these limits the rates allow within a second. Under a limit on places, the rate only follows. */
function admissibleSoon({ limits }: Ticket, now: Millis): number {
  let count = Number.POSITIVE_INFINITY;
  for (const { meter } of limits) {
    if (meter.concurrencyLimit === undefined) count = Math.min(count, Math.max(1, Math.ceil(meter.rate(now))));
  }
  return count;
}

/** How many more are in flight than may be: the limit has been found to be lower since. */
function excessAt({ meter }: Limit): number {
  return Math.max(0, meter.inFlight - (meter.concurrencyLimit ?? Number.POSITIVE_INFINITY));
}

/**
 * How long the request, or others before it, have waited for a place in vain, or for one of their own if they leave the free ones to
 * others: the wait is expected to last as long again.
 */
export function longestPlaceWait(ticket: Ticket, now: Millis): Millis {
  let longest = 0;
  for (const limit of ticket.limits) {
    const { places } = limit;
    if (awaitsPlaceAt(limit, ticket, now)) longest = Math.max(longest, now - limit.placeFreeAt);
    if (places === undefined || places.yieldDelay(ticket, now) <= 0) continue;
    longest = Math.max(longest, places.stalledFor(ticket.fairnessKey, now));
  }
  return longest;
}
