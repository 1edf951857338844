// Which of the waiting tickets is served next, and how soon.

import type { Millis } from '../scalars.ts';
import type { Limit } from '../limits/limit.ts';
import type { ConnectionSlots } from './connection-slots.ts';
import { computeEffectiveWeight } from './effective-weight.ts';
import type { GateStore } from './gate-store.ts';
import { exceedsPlaceShare, hasSharedPlaces, placeYieldDelay } from '../limits/limit-places.ts';
import { attributesFor, type Ticket } from './ticket.ts';
import { hasBlockingLimit, hasReadyTicket, tokenDelay } from './wait-estimate.ts';

/**
 * Returns the next ticket of a limit's queue. While connections or places in flight are scarce, a client with more than its share of
 * them yields to others; so does a ticket that lacks a token which those behind it do not need, and one that leaves the free
 * connections or places to others. The last is returned only if no other was found.
 */
export function findNextTicket(store: GateStore, limit: Limit, now: Millis): Ticket | undefined {
  const { queue } = limit;
  if (queue.size < 2) return queue.peek();
  const slots = slotsAwaitedAt(store, limit);
  const isScarce = slots?.isScarce === true;
  const sharesPlaces = hasSharedPlaces(queue.front);
  if (!sharesPlaces && !isScarce && slots?.isNearlyFull !== true) {
    return hasMixedNeeds(limit) ? queue.peek((ticket) => lacksToken(ticket, limit, now)) : queue.peek();
  }
  if (sharesPlaces || isScarce) {
    const next = queue.peek(
      (ticket) =>
        (isScarce && slots.exceedsShare(ticket.fairnessKey, slots.shareOf(ticket.classWeight, now))) ||
        exceedsPlaceShare(ticket, now) ||
        (hasMixedNeeds(limit) && lacksToken(ticket, limit, now)),
    );
    if (next === undefined || slots?.isFull === true || yieldDelay(next, slots, now) === 0) return next;
  }
  return queue.peek(
    (ticket) => yieldDelay(ticket, slots, now) > 0 || (hasMixedNeeds(limit) && lacksToken(ticket, limit, now)),
  );
}

/** How long a ticket leaves the free connections, or the free places in flight, to others. */
function yieldDelay(ticket: Ticket, slots: ConnectionSlots | undefined, now: Millis): Millis {
  return Math.max(slots?.yieldDelay(ticket, now) ?? 0, placeYieldDelay(ticket, now));
}

/** The connections for which tickets wait in the queue of this limit; undefined if they wait in another one, or for none. */
export function slotsAwaitedAt(store: GateStore, limit: Limit): ConnectionSlots | undefined {
  const { connectionSlots } = store.upstream(limit.ref.upstream);
  return connectionSlots?.queueLimit === limit ? connectionSlots : undefined;
}

/**
 * Returns a ready ticket from a sibling queue whose client has received less of the shared limit than the client of
 * `ticket`. Returns undefined if `ticket` itself is next.
 * @param limit where `ticket` waits
 */
export function findCompetingTicket(
  store: GateStore,
  ticket: Ticket,
  limit: Limit,
  slots: ConnectionSlots | undefined,
  now: Millis,
): Ticket | undefined {
  if (ticket.limits.length === 1 && limit.nestedWithWaiters === undefined) return undefined;
  const bottleneck = findBottleneckLimit(ticket, now);
  if (bottleneck?.nestedWithWaiters === undefined) return undefined;
  bottleneck.scheduler.beginRound();
  let first = ticket;
  let smallestTag = finishTag(store, ticket, bottleneck, now);
  for (const queueLimit of [bottleneck, ...bottleneck.nestedWithWaiters]) {
    if (queueLimit === limit || (queueLimit === slots?.queueLimit && slots.isFull)) continue;
    const next = findNextTicket(store, queueLimit, now);
    if (!hasReadyTicket(queueLimit, next, now)) continue;
    if (queueLimit === slots?.queueLimit && !slots.hasFreeFor(next, now)) continue;
    const tag = finishTag(store, next, bottleneck, now);
    if (tag > smallestTag || (tag === smallestTag && next.queuedAt >= first.queuedAt)) continue;
    first = next;
    smallestTag = tag;
  }
  return first === ticket ? undefined : first;
}

function finishTag(store: GateStore, ticket: Ticket, limit: Limit, now: Millis): number {
  return ticket.clientSlot === undefined
    ? 0
    : limit.scheduler.finishTag(ticket.fairnessKey, computeEffectiveWeight(store, ticket, now, limit));
}

/** Returns the outermost limit that delays the request. Sibling queues take turns by what each client has received of it. */
export function findBottleneckLimit(ticket: Ticket, now: Millis): Limit | undefined {
  return ticket.limits.find(
    ({ meter }) => meter.rate(now) < Number.POSITIVE_INFINITY || meter.delay(now, attributesFor(meter, ticket)) > 0,
  );
}

/** Whether the tickets in this queue may lack tokens of different limits, or some of them may use the reserve of a quota. */
function hasMixedNeeds(limit: Limit): boolean {
  const { front } = limit.queue;
  return limit.hasMixedLimits || hasBlockingLimit(front) || front?.quotas?.hasReserve === true;
}

function lacksToken(ticket: Ticket, limit: Limit, now: Millis): boolean {
  return limit === ticket.limits.at(-1) && tokenDelay(ticket, now) > 0;
}

/** The least delay if the next ticket cannot be served yet and a ready one was not found: it bounds how often we look. */
const RECHECK_DELAY: Millis = 1;
/** The most, if not all flows were examined. */
const PARTIAL_RECHECK_DELAY: Millis = 10;

/**
 * How soon any ticket of this queue may have its tokens, and need not leave the free connections or places to others. With mixed
 * needs, that is not always the next ticket.
 * @param slots see `slotsAwaitedAt`
 */
export function soonestDelay(limit: Limit, next: Ticket, slots: ConnectionSlots | undefined, now: Millis): Millis {
  const { queue } = limit;
  const yielding = yieldDelay(next, slots, now);
  let delay = yielding > 0 ? Math.max(RECHECK_DELAY, ownDelay(next, limit, slots, now)) : tokenDelay(next, now);
  if (!(hasMixedNeeds(limit) || yielding > 0) || delay === 0) return delay;
  queue.peek((ticket) => {
    const other = ownDelay(ticket, limit, slots, now);
    delay = Math.min(delay, Math.max(RECHECK_DELAY, other));
    return other > 0;
  });
  return queue.wasSearchComplete ? delay : Math.min(delay, PARTIAL_RECHECK_DELAY);
}

function ownDelay(ticket: Ticket, limit: Limit, slots: ConnectionSlots | undefined, now: Millis): Millis {
  // A ticket that waits only for a connection has its tokens already.
  const forTokens = limit === ticket.limits.at(-1) ? tokenDelay(ticket, now) : 0;
  return Math.max(forTokens, yieldDelay(ticket, slots, now));
}
