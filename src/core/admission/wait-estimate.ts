import type { ClientSlot, ClientStore } from './client-allowance.ts';
import type { Limit } from '../limits/limit.ts';
import { mayAwaitPlace } from '../limits/may-await-place.ts';
import type { ConnectionSlots } from './connection-slots.ts';
import { hasSharedPlaces, placeYieldDelay } from '../limits/limit-places.ts';
import { convertWeight, weightInAddress } from './effective-weight.ts';
import { attributesFor, type Ticket } from './ticket.ts';
import { largestCharge } from '../rate/pacer.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import { isBlockedAt } from './refusals/refusal-reasons.ts';

/**
 * Time until each limit has a token for this request, each quota a part left, and there is a place that it need not leave to others;
 * Infinity while a token is requested.
 */
export function tokenDelay(ticket: Ticket, now: Millis): Millis {
  const { quotas } = ticket;
  let delay = placeYieldDelay(ticket, now);
  if (quotas !== undefined) delay = Math.max(delay, quotas.delay(ticket, now));
  for (const { meter } of ticket.limits) delay = Math.max(delay, meter.delay(now, attributesFor(meter, ticket)));
  return delay;
}

/** The delay at this limit to report to the client: see `Pacing.expectedDelay`. */
export function expectedDelayAt({ meter }: Limit, ticket: Ticket, now: Millis): Millis {
  return meter.expectedDelay(now, attributesFor(meter, ticket));
}

/** See `Pacing.awaitsPlace`. */
export function awaitsPlaceAt({ meter }: Limit, ticket: Ticket, now: Millis): boolean {
  return meter.awaitsPlace(now, attributesFor(meter, ticket));
}

/** Returns the limit in whose queue an arriving request has to wait, for a token or a connection; undefined if it need not. */
export function findWaitingLimit(ticket: Ticket, slots: ConnectionSlots | undefined, now: Millis): Limit | undefined {
  const { limits } = ticket;
  const limit = limits.at(-1);
  const canTakeToken =
    limit === undefined ||
    (!hasEligibleWaiter(limit, slots, now) && tokenDelay(ticket, now) <= 0 && !isTokenClaimed(limits, slots, now));
  if (!canTakeToken) return limit;
  return slots?.mustWait(ticket, now) === true ? slots.queueLimit : undefined;
}

/** Whether tickets wait at this limit that no block holds back, and that leave no free connections or places in flight to others. */
function hasEligibleWaiter(limit: Limit, slots: ConnectionSlots | undefined, now: Millis): boolean {
  const { queue } = limit;
  if (queue.size === 0) return false;
  const mayYield = slots?.queueLimit === limit && slots.isNearlyFull && !slots.isFull;
  if (!mayYield && !hasBlockingLimit(queue.front) && !hasSharedPlaces(queue.front)) return true;
  const isPassed = (ticket: Ticket): boolean =>
    isHeldByBlock(ticket, now) || placeYieldDelay(ticket, now) > 0 || (mayYield && slots.yieldDelay(ticket, now) > 0);
  const next = queue.peek(isPassed);
  return next !== undefined && !isPassed(next);
}

/** Whether a block is in force at one of its limits, for this request or for others. */
export function hasBlockingLimit(ticket: Ticket | undefined): boolean {
  return ticket !== undefined && ticket.limits.some(({ meter }) => meter.hasBlock === true);
}

function isHeldByBlock(ticket: Ticket, now: Millis): boolean {
  return ticket.limits.some((limit) => limit.meter.hasBlock === true && isBlockedAt(limit, ticket, now));
}

/** True if a request queued at another limit is already entitled to the available token. */
function isTokenClaimed(limits: readonly Limit[], slots: ConnectionSlots | undefined, now: Millis): boolean {
  const innermost = limits.at(-1);
  for (const limit of limits) {
    const { nestedWithWaiters, queue } = limit;
    const front = limit === slots?.queueLimit ? slots.frontWaiter(now) : queue.front;
    if (limit !== innermost && hasReadyTicket(limit, front, now)) return true;
    if (nestedWithWaiters === undefined || nestedWithWaiters.size === 0) continue;
    for (const inner of nestedWithWaiters) if (hasReadyTicket(inner, inner.queue.front, now)) return true;
  }
  return false;
}

/** Whether the ticket waits at this limit for tokens and could take them now. One that waits only for a connection has them. */
export function hasReadyTicket(limit: Limit, ticket: Ticket | undefined, now: Millis): ticket is Ticket {
  return ticket !== undefined && ticket.limits.at(-1) === limit && tokenDelay(ticket, now) === 0;
}

/** Until when its client is held, at the upstream or at one of its limits; in the past or −Infinity if it is not. */
export function clientHeldUntil(clients: ClientStore, ticket: Ticket, slot: ClientSlot, now: Millis): Millis {
  let until = clients.heldUntil(slot);
  for (const { clientHolds } of ticket.limits) {
    if (clientHolds !== undefined) until = Math.max(until, clientHolds.heldUntil(ticket, now));
  }
  return until;
}

/**
 * Estimates how long a request arriving now would wait. For each limit: its delay, then one turn for each queued request
 * of the client, at the client's share of the rate. For connections: the turns until one is free. The longest counts.
 * @param weight see `computeEffectiveWeight`
 * @param turnoverRate how fast connections become free
 */
export function estimateWait(
  ticket: Ticket,
  slots: ConnectionSlots | undefined,
  weight: number,
  now: Millis,
  turnoverRate: PerSecond = slots?.turnoverRate ?? Number.POSITIVE_INFINITY,
): Millis {
  const innermost = ticket.limits.at(-1);
  const own = turnsAhead(innermost, ticket, weight);
  let wait = slots === undefined ? 0 : waitForConnection(slots, ticket, weight, turnoverRate, now);
  for (const limit of ticket.limits) {
    const turns = limit === innermost ? own : turnsAheadAcross(limit, ticket, own, weight, now);
    wait = Math.max(wait, waitForToken(limit, ticket, turns, weight, slots, now));
  }
  return Math.max(wait, waitForQuota(ticket, own, now));
}

/** Time until each quota has a part for the request, after `turns` others. */
function waitForQuota(ticket: Ticket, turns: number, now: Millis): Millis {
  const { quotas } = ticket;
  if (quotas === undefined) return 0;
  const rate = quotas.rate(ticket, now);
  return quotas.expectedDelay(ticket, now) + (rate === Number.POSITIVE_INFINITY ? 0 : (1000 * turns) / rate);
}

/** Time until the limit has a token for the request, after `turns` others. Places that stalled clients give up come first. */
function waitForToken(
  limit: Limit,
  ticket: Ticket,
  turns: number,
  weight: number,
  slots: ConnectionSlots | undefined,
  now: Millis,
): Millis {
  const { places } = limit;
  if (places !== undefined && places.yieldDelay(ticket, now) > 0) {
    return places.timeToRelease(ticket.fairnessKey, turnsOfOwn(ticket.limits.at(-1) ?? limit, ticket, weight));
  }
  const mayYield = slots !== undefined && mayAwaitPlace(limit.meter, now, attributesFor(limit.meter, ticket));
  const yielding = mayYield ? slots.yieldingPlaces(limit) : 0;
  const [delay, lacking] =
    yielding > 0 ? [0, Math.max(0, turns + 1 - yielding)] : [expectedDelayAt(limit, ticket, now), turns];
  if (lacking === 0) return delay;
  const rate = limit.meter.rate(now);
  const { meanCost = 1, carriedUnits = 0 } = limit.meter;
  const largest = largestCharge(rate);
  const units = lacking * Math.min(meanCost, largest) + Math.min(carriedUnits, lacking * largest);
  return delay + (1000 * units) / rate;
}

/**
 * Time until enough connections have become free for the request and all that precede it. One that leaves the free connections to
 * others waits for those of its own client.
 */
function waitForConnection(
  slots: ConnectionSlots,
  ticket: Ticket,
  weight: number,
  rate: PerSecond,
  now: Millis,
): Millis {
  const { queueLimit } = slots;
  if (slots.yieldDelay(ticket, now) > 0) {
    const lacking = Math.min(turnsOfOwn(queueLimit, ticket, weight), queueLimit.queue.size + 1) - slots.yielding;
    return slots.timeToRelease(ticket.fairnessKey, lacking, rate);
  }
  if (!slots.mustWait(ticket, now)) return 0;
  const lacking = turnsAhead(queueLimit, ticket, weight) + 1 - Math.max(0, slots.available) - slots.yielding;
  return lacking > 0 ? (1000 * lacking) / rate : 0;
}

/**
 * The number of requests served before this one: (own queue + 1) ÷ share − 1, at most the length of the queue. Without
 * that bound, the weight of a client with few requests would count for each of ours, and part of the rate stay unused.
 */
function turnsAhead(limit: Limit | undefined, ticket: Ticket, weight: number): number {
  const { clientSlot, addressGroup } = ticket;
  if (limit === undefined || limit.queue.size === 0 || clientSlot === undefined) return 0;
  const { queue } = limit;
  return Math.min(turnsOfOwn(limit, ticket, weight) / queue.share(clientSlot, weight, addressGroup) - 1, queue.size);
}

/** The number of requests of its client, or its address, that are served up to this one, itself included. */
function turnsOfOwn({ queue }: Limit, ticket: Ticket, weight: number): number {
  const { clientSlot, addressGroup } = ticket;
  if (clientSlot === undefined) return 1;
  return (
    (queue.queuedBy(clientSlot) + 1) / queue.partOfGroup(clientSlot, weightInAddress(weight, ticket), addressGroup)
  );
}

/** As `turnsAhead`, at an outer limit: `own` at least, or among the tickets of all queues that lack only its token. */
function turnsAheadAcross(outer: Limit, ticket: Ticket, own: number, innerWeight: number, now: Millis): number {
  const { clientSlot, addressGroup } = ticket;
  if (!outer.isAwaited) return 0; // those ahead have other outer limits, such as one for each client
  const expected = expectedDelayAt(outer, ticket, now);
  if (expected === 0 || clientSlot === undefined || outer.nestedWithWaiters === undefined) return own;
  const weight = convertWeight(innerWeight, ticket, ticket.limits.at(-1), outer);
  const weightOfOwn = weightInAddress(weight, ticket, outer);
  let [waiting, ownQueued] = [0, 0];
  let [ofAddress, others] = [0, 0]; // the weight of the other clients of its address, and of all others
  const seen = new Set<ClientSlot | string>();
  for (const queueLimit of [outer, ...outer.nestedWithWaiters]) {
    if (queueLimit !== outer && expectedDelayAt(queueLimit, ticket, now) > expected) continue;
    waiting += queueLimit.queue.size;
    ownQueued += queueLimit.queue.queuedBy(clientSlot);
    if (seen.size >= MAX_CLIENTS_COUNTED) {
      others += queueLimit.queue.activeWeight;
      continue;
    }
    for (const { key, group, head, weight: flowWeight } of queueLimit.queue.flows) {
      const isOfAddress = group !== undefined && group.key === addressGroup;
      const counted = isOfAddress ? key : (group?.key ?? key);
      if (key === clientSlot || head === undefined || seen.has(counted)) continue;
      const active = convertWeight(isOfAddress ? flowWeight : (group?.weight ?? flowWeight), head, queueLimit, outer);
      if (isOfAddress) ofAddress += weightInAddress(active, head, outer);
      else others += active;
      if (seen.size < MAX_CLIENTS_COUNTED) seen.add(counted);
    }
  }
  const turnsOfAddress = ((ownQueued + 1) * (ofAddress + weightOfOwn)) / weightOfOwn;
  return Math.max(own, Math.min((turnsOfAddress * (others + weight)) / weight - 1, waiting));
}

/** This many clients that wait in several queues are counted once; beyond that, some count twice. */
const MAX_CLIENTS_COUNTED = 1000;
