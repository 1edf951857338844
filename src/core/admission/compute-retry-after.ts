import { isLimited, roomOf, shareOf } from './wait-estimate.ts';
import type { ClientSlot } from './client-allowance.ts';
import { FLOOD } from './client-allowance.ts';
import type { Listen } from '../events/proxy-events.ts';
import type { Limit } from '../limits/limit.ts';
import { LONGEST_PROMISE } from '../limits/limit.ts';
import type { Store } from './gate-store.ts';
import type { Ticket } from './ticket.ts';
import type { Millis, PerSecond, Refusal } from '../exchange/attempt-outcome.ts';

/** A request that is turned away, and how long it would have had to wait. */
interface TurnedAway {
  readonly ticket: Ticket;
  readonly slot: ClientSlot;
  readonly why: Refusal;
  readonly wait: Millis;
}

interface Told {
  readonly store: Store;
  readonly listen: Listen;
}

/**
 * When the refused may come back: a slot of its own, so that the refused do not return all at once. The client is
 * remembered by it, and its allowance is cut when it floods.
 */
export function tellWhen({ store, listen }: Told, { ticket, slot, why, wait }: TurnedAway, now: Millis): Millis {
  // The upstream's own word: in whole seconds, for no rounding of ours may make it earlier.
  if (why === 'held') return promise(store, slot, wholeSeconds(wait), now);
  const standing = standingOf(store, ticket, slot, now);
  if (standing === undefined) return wholeSeconds(wait);
  // A shortage of connections is no client's fault.
  const isShare = why !== 'blocked' && isLimited(ticket, now);
  const cutTo = isShare ? store.clients.refused(slot, standing.fair, now) : undefined;
  const { upstream, client } = ticket;
  if (cutTo !== undefined) listen({ type: 'client-cut', upstream, client, allowance: cutTo });
  const stalled = why === 'over_share' ? 0 : (roomOf(ticket, store.upstream(upstream))?.stalledFor(now) ?? 0);
  return promise(store, slot, reserve(store, standing, { ticket, slot, wait: Math.max(wait, stalled) }, now), now);
}

/**
 * When the client of a request that the upstream has refused may come back: as `tellWhen`, but no allowance is cut, for the
 * gate had admitted the request.
 * @param atLeast what the upstream asks for: never earlier than that, and of no concern to other clients
 */
export function tellWhenRefusedThere(
  store: Store,
  { ticket, slot, wait }: Omit<TurnedAway, 'why'>,
  atLeast: Millis,
  now: Millis,
): Millis {
  const standing = standingOf(store, ticket, slot, now);
  const own = standing === undefined ? wait : reserve(store, standing, { ticket, slot, wait }, now);
  return promise(store, slot, Math.max(own, wholeSeconds(atLeast)), now);
}

/** How a client stands at the limit that it would wait for. */
interface Standing {
  readonly limit: Limit;
  readonly rate: PerSecond;
  /** The most that is no flood. */
  readonly fair: PerSecond;
  /** It asks for far more than that, or all keys of its address together do. */
  readonly floods: boolean;
}

/** Returns undefined where nothing limits. */
function standingOf(store: Store, ticket: Ticket, slot: ClientSlot, now: Millis): Standing | undefined {
  const { activity, nests, room } = store.upstream(ticket.upstream);
  const limit = ticket.limits.at(-1) ?? room?.line;
  if (limit === undefined) return undefined;
  // Of a nested limit nobody knows who asks for how much: a flood is one against what all have together.
  const outermost = ticket.limits[0] ?? limit;
  const whole = Math.min(outermost.meter.rate(now), room?.rate ?? Number.POSITIVE_INFINITY);
  const felt = outermost.meter.rate(now);
  const share = shareOf(ticket, outermost, Number.isFinite(felt) ? felt : whole, activity, now);
  let rate = whole;
  for (const { meter } of ticket.limits) rate = Math.min(rate, meter.rate(now));
  const demand = store.clients.demand(slot, now);
  // What all do is no flood, however small a part the weights give to one.
  const fair = Math.max(share, activity.demandOfOthers(demand, now));
  const keys = ticket.nest === undefined ? 1 : nests.clients(ticket.nest, now);
  const fairTogether = Math.max(keys * share, activity.demandOfOthers(keys * demand, now, nests.extra(now)));
  return { limit, rate, fair, floods: demand > FLOOD * fair || keys * demand > FLOOD * fairTogether };
}

/** Takes the next free slot of the limit. @returns how long until then */
function reserve(
  { clients }: Store,
  { limit, rate, floods }: Standing,
  { ticket, slot, wait }: Omit<TurnedAway, 'why'>,
  now: Millis,
): Millis {
  const weight = ticket.weight * clients.allowance(slot, now);
  // One that floods is told its own turn, and does not push the others' further away.
  const at = floods
    ? Math.max(now + wait, clients.promised(slot)) + 1000 / (rate * limit.queue.share(slot, weight))
    : limit.reserveSlot(now, wait, rate);
  return Math.min(at, now + wait + LONGEST_PROMISE) - now;
}

function promise({ clients }: Store, slot: ClientSlot, wait: Millis, now: Millis): Millis {
  clients.promise(slot, now + wait);
  return wait;
}

function wholeSeconds(wait: Millis): Millis {
  return 1000 * Math.ceil(wait / 1000);
}
