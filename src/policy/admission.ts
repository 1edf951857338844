import type { Activity } from './activity.ts';
import type { ClientSlot, ClientStore } from './client.ts';
import type { Limit } from './limit.ts';
import type { Room } from './room.ts';
import type { Upstream } from './store.ts';
import type { Ticket } from './ticket.ts';
import type { Millis, PerSecond, Refusal } from './types.ts';

export interface QueueSettings {
  /** The longest a request waits for a token. */
  readonly maxWait: Millis;
  /** Requests that may wait at one limit. */
  readonly maxDepth: number;
}

/** A client that has been queueing for longer than this is at its share already: it waits less, and is told sooner. */
const STANDING: Millis = 1000;
const STANDING_SHARE = 0.3;
/** A client that comes back when it was told to is queued while its turn is at most this far ahead. */
export const PROMISE: Millis = 1000;
/** It is told whole seconds, rounded up or down: so much earlier it may come, and so much later. */
const ROUNDED: Millis = 1000;
/** The answer's way, its own timer and its request's way, beside that. */
const UNDER_WAY: Millis = 1000;

/** Whether who was told to come back at this time, and comes now, comes as told. */
export function isAsTold(promised: Millis, now: Millis): boolean {
  const late = now - promised;
  return late >= -ROUNDED && late <= ROUNDED + UNDER_WAY;
}

/** How long until every limit lets one request go; 0 when all do now. Infinity while a store is being asked. */
export function delayOf(limits: readonly Limit[], now: Millis): Millis {
  let delay = 0;
  for (const limit of limits) delay = Math.max(delay, limit.meter.delay(now));
  return delay;
}

/** Where a request arriving now has to wait: for a token, or for room; undefined where it need not. */
export function waitingPlace({ limits }: Ticket, room: Room | undefined, now: Millis): Limit | undefined {
  const limit = limits.at(-1);
  if (limit !== undefined && (limit.queue.size > 0 || delayOf(limits, now) > 0 || isAwaited(limits, now))) return limit;
  return room?.isAwaited === true ? room.line : undefined;
}

/** Others who stand under one of these limits, and another than all of them, have waited for what is there now. */
function isAwaited(limits: readonly Limit[], now: Millis): boolean {
  const innermost = limits.at(-1);
  for (const limit of limits) {
    const { queuedWithin, queue } = limit;
    if (limit !== innermost && isReady(limit, queue.peek(), now)) return true;
    if (queuedWithin === undefined || queuedWithin.size === 0) continue;
    for (const inner of queuedWithin) if (isReady(inner, inner.queue.peek(), now)) return true;
  }
  return false;
}

/** Whether who waits at the limit for tokens could have them now. Who waits for room alone has them. */
export function isReady(limit: Limit, ticket: Ticket | undefined, now: Millis): ticket is Ticket {
  return ticket !== undefined && ticket.limits.at(-1) === limit && delayOf(ticket.limits, now) === 0;
}

/** Until when its client is to stay away, from the upstream or from a limit that it stands under; in the past or −Infinity where it is not. */
export function heldUntil(clients: ClientStore, ticket: Ticket, slot: ClientSlot, now: Millis): Millis {
  let until = clients.heldUntil(slot);
  for (const { holds } of ticket.limits) if (holds !== undefined) until = Math.max(until, holds.until(ticket, now));
  return until;
}

/** The connections that it needs one of; undefined where it needs none, or where they are not bounded here. */
export function roomOf({ isSentElsewhere }: Ticket, { room }: Pick<Upstream, 'room'>): Room | undefined {
  return isSentElsewhere ? undefined : room;
}

/**
 * How long a request arriving now would wait: the gate's own delay, then one turn for each request of its client before
 * it, at the client's share of the rate; or its turns until there is room. `weight` is scaled by the allowance already.
 * @param roomRate how fast connections come free
 */
export function estimateWait(
  ticket: Ticket,
  room: Room | undefined,
  weight: number,
  now: Millis,
  roomRate: PerSecond = room?.rate ?? Number.POSITIVE_INFINITY,
): Millis {
  const innermost = ticket.limits.at(-1);
  const own = turnsAhead(innermost, ticket.slot, weight);
  let wait = room === undefined ? 0 : waitForRoom(room, turnsAhead(room.line, ticket.slot, weight), roomRate);
  for (const limit of ticket.limits) {
    const { meter } = limit;
    const turns = limit === innermost ? own : Math.max(own, turnsAmong(limit, ticket.slot, weight, now));
    wait = Math.max(wait, meter.expected(now) + (turns === 0 ? 0 : (1000 * turns) / meter.rate(now)));
  }
  return wait;
}

/** How long until enough places have come free, beside those that are: for it and for all that go before it. */
function waitForRoom(room: Room, turns: number, rate: PerSecond): Millis {
  const lacking = turns + 1 - Math.max(0, room.left);
  return room.isAwaited && lacking > 0 ? (1000 * lacking) / rate : 0;
}

/** The longest its client may be kept waiting here. Where only connections are short, nobody has more than its share of a limit. */
export function patienceOf(ticket: Ticket, limit: Limit, { maxWait }: QueueSettings, now: Millis): Millis {
  const { slot } = ticket;
  const isStanding = slot !== undefined && limit.queue.waitingFor(slot, now) > STANDING;
  return isStanding && isLimited(ticket, now) ? STANDING_SHARE * maxWait : maxWait;
}

/** Whether it stands under a limit that has been felt: only then there is a rate to share. */
export function isLimited({ limits }: Pick<Ticket, 'limits'>, now: Millis): boolean {
  return limits.some(({ meter }) => meter.rate(now) < Number.POSITIVE_INFINITY);
}

/**
 * (own queue + 1) ÷ share requests go before it and with it; itself is not waited for. No more than wait now: the weight
 * of one that has little queued would else be counted for each of ours, and a part of the rate left unused.
 */
function turnsAhead(limit: Limit | undefined, slot: number | undefined, weight: number): number {
  if (limit === undefined || limit.queue.size === 0 || slot === undefined) return 0;
  return Math.min((limit.queue.backlog(slot) + 1) / limit.queue.share(slot, weight) - 1, limit.queue.size);
}

/** As `turnsAhead`, at an outer limit: among all who lack nothing but its token, in whatever line. */
function turnsAmong(outer: Limit, slot: ClientSlot | undefined, weight: number, now: Millis): number {
  const expected = outer.meter.expected(now);
  if (expected === 0 || slot === undefined || outer.queuedWithin === undefined) return 0;
  let waiting = 0;
  let others = 0;
  let own = 0;
  const seen = new Set<ClientSlot>();
  for (const line of [outer, ...outer.queuedWithin]) {
    if (line !== outer && line.meter.expected(now) > expected) continue;
    waiting += line.queue.size;
    own += line.queue.backlog(slot);
    if (seen.size >= LOOKED_AT) {
      others += line.queue.activeWeight;
      continue;
    }
    for (const flow of line.queue.flows) {
      if (flow.key === slot || seen.has(flow.key)) continue;
      others += flow.weight;
      if (seen.size < LOOKED_AT) seen.add(flow.key);
    }
  }
  return Math.min(((own + 1) * (others + weight)) / weight - 1, waiting);
}

/** So many clients that wait in several lines are counted once; of more, some count twice. */
const LOOKED_AT = 1000;

/** φ: the client's share of the rate among all who are active, by weight. One's own limit is shared with nobody. */
export function shareOf(
  { weight }: Ticket,
  { ref }: Limit,
  rate: PerSecond,
  activity: Activity,
  now: Millis,
): PerSecond {
  const active = ref.scope === 'upstream' ? activity.weight(now, weight) : weight;
  return (rate * weight) / active;
}

/** While another might come, a blocked limit waits this long for a probe whose body is in hand. */
const CHOOSY: Millis = 2000;

/** Whether the ticket would be the probe of a blocked limit, and had better not be. */
export function isPoorProbe({ bodyInHand, limits }: Ticket, now: Millis): boolean {
  return !bodyInHand && limits.some(({ meter }) => meter.phase === 'blocked' && meter.overdue(now) < CHOOSY);
}

/** A limit of the client's own that is stopped holds that client; one that all share is an upstream that is blocked. */
export function blockedBy(limits: readonly Limit[], now: Millis): Refusal | undefined {
  const limit = limits.find((each) => each.isBlocked(now));
  if (limit === undefined) return undefined;
  return limit.ref.scope === 'upstream' || limit.isStopped ? 'blocked' : 'held';
}
