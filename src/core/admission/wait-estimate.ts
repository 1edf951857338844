import type { Activity } from './active-clients.ts';
import type { ClientSlot, ClientStore } from './client-allowance.ts';
import type { Limit } from '../limits/limit.ts';
import type { Meter } from '../limits/meter.ts';
import type { Room } from './connection-slots.ts';
import type { Source } from '../rate/breaker/request-attributes.ts';
import type { Upstream } from './gate-store.ts';
import type { Ticket } from './ticket.ts';
import type { Millis, PerSecond, Refusal } from '../exchange/attempt-outcome.ts';

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

/** How long until every limit lets this request go; 0 when all do now. Infinity while a store is being asked. */
export function delayOf(ticket: Ticket, now: Millis): Millis {
  let delay = 0;
  for (const { meter } of ticket.limits) delay = Math.max(delay, meter.delay(now, sourceAt(meter, ticket)));
  return delay;
}

/** As of a meter, which asks for it while something is blocked there. */
export function sourceAt({ isBlocking }: Meter, ticket: Ticket): Source | undefined {
  return isBlocking === true ? ticket.source : undefined;
}

/** How long it would be told to wait for this limit, as of a meter. */
export function expectedAt({ meter }: Limit, ticket: Ticket, now: Millis): Millis {
  return meter.expected(now, sourceAt(meter, ticket));
}

/** Where a request arriving now has to wait: for a token, or for room; undefined where it need not. */
export function waitingPlace(ticket: Ticket, room: Room | undefined, now: Millis): Limit | undefined {
  const { limits } = ticket;
  const limit = limits.at(-1);
  const isFirst =
    limit === undefined || (!isQueuedFor(limit, now) && delayOf(ticket, now) <= 0 && !isAwaited(limits, now));
  if (!isFirst) return limit;
  return room?.isAwaited === true ? room.line : undefined;
}

/** Others wait at this limit, and not because a block holds back them alone. */
function isQueuedFor(limit: Limit, now: Millis): boolean {
  const { queue } = limit;
  if (queue.size === 0 || !isAnyBlocking(queue.peek())) return queue.size > 0;
  const next = queue.peek((ticket) => isHeldBack(ticket, now));
  return next !== undefined && !isHeldBack(next, now);
}

/** Whether at a limit that it stands under something is blocked, be it this request or another. */
export function isAnyBlocking(ticket: Ticket | undefined): boolean {
  return ticket !== undefined && ticket.limits.some(({ meter }) => meter.isBlocking === true);
}

function isHeldBack(ticket: Ticket, now: Millis): boolean {
  return ticket.limits.some((limit) => limit.meter.isBlocking === true && isHeldAt(limit, ticket, now));
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
  return ticket !== undefined && ticket.limits.at(-1) === limit && delayOf(ticket, now) === 0;
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
    const turns = limit === innermost ? own : Math.max(own, turnsAmong(limit, ticket, weight, now));
    wait = Math.max(wait, expectedAt(limit, ticket, now) + (turns === 0 ? 0 : (1000 * turns) / meter.rate(now)));
  }
  return wait;
}

/** How long until enough places have come free, beside those that are: for it and for all that go before it. */
function waitForRoom(room: Room, turns: number, rate: PerSecond): Millis {
  const lacking = turns + 1 - Math.max(0, room.left);
  return room.isAwaited && lacking > 0 ? (1000 * lacking) / rate : 0;
}

/** Why it would have to wait for longer than it may. */
export function whyTooLong(ticket: Ticket, now: Millis): Refusal {
  return blockedBy(ticket, now) ?? (isLimited(ticket, now) ? 'over_share' : 'queue_timeout');
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
function turnsAmong(outer: Limit, ticket: Ticket, weight: number, now: Millis): number {
  const { slot } = ticket;
  const expected = expectedAt(outer, ticket, now);
  if (expected === 0 || slot === undefined || outer.queuedWithin === undefined) return 0;
  let waiting = 0;
  let others = 0;
  let own = 0;
  const seen = new Set<ClientSlot>();
  for (const line of [outer, ...outer.queuedWithin]) {
    if (line !== outer && expectedAt(line, ticket, now) > expected) continue;
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
export function isPoorProbe(ticket: Ticket, now: Millis): boolean {
  if (ticket.bodyInHand) return false;
  return ticket.limits.some((limit) => {
    const { meter } = limit;
    const isBlocked = meter.isBlocking === true || meter.phase === 'blocked';
    return isBlocked && meter.overdue(now) < CHOOSY && isHeldAt(limit, ticket, now);
  });
}

/** Whether a block or a stop at this limit holds it back. */
function isHeldAt(limit: Limit, ticket: Ticket, now: Millis): boolean {
  const { meter } = limit;
  return meter.isBlocking === true ? meter.holds?.(now, ticket.source) === true : limit.isBlocked(now);
}

/** A limit of the client's own that is stopped holds that client; one that all share is an upstream that is blocked. */
export function blockedBy(ticket: Ticket, now: Millis): Refusal | undefined {
  const limit = ticket.limits.find((each) => isHeldAt(each, ticket, now));
  if (limit === undefined) return undefined;
  return limit.ref.scope === 'upstream' || limit.isStopped ? 'blocked' : 'held';
}
