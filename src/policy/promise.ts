import { shareOf } from './admission.ts';
import type { ClientSlot } from './client.ts';
import { FLOOD } from './client.ts';
import type { Listen } from './events.ts';
import { LONGEST_PROMISE } from './limit.ts';
import type { Store } from './store.ts';
import type { Ticket } from './ticket.ts';
import type { Millis, Refusal } from './types.ts';

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
  if (why === 'held') return 1000 * Math.ceil(wait / 1000);
  const { clients } = store;
  const { upstream, client } = ticket;
  const { activity, room } = store.upstream(upstream);
  const limit = ticket.limits.at(-1) ?? room?.line;
  if (limit === undefined) return 1000 * Math.ceil(wait / 1000);
  // Of a nested limit nobody knows who asks for how much: a flood is one against what all have together.
  const outermost = ticket.limits[0] ?? limit;
  const whole = Math.min(outermost.meter.rate(now), room?.rate ?? Number.POSITIVE_INFINITY);
  const share = shareOf(ticket, outermost, whole, activity, now);
  let rate = whole;
  for (const { meter } of ticket.limits) rate = Math.min(rate, meter.rate(now));
  const demand = clients.demand(slot, now);
  // What all do is no flood, however small a part the weights give to one.
  const fair = Math.max(share, activity.demandOfOthers(demand, now));
  const cutTo = why === 'blocked' ? undefined : clients.refused(slot, fair, now);
  if (cutTo !== undefined) listen({ type: 'client-cut', upstream, client, allowance: cutTo });
  const weight = ticket.weight * clients.allowance(slot, now);
  // One that floods is told its own turn, and does not push everybody else's further away.
  const floods = demand > FLOOD * fair;
  const at = floods
    ? Math.max(now + wait, clients.promised(slot)) + 1000 / (rate * limit.queue.share(slot, weight))
    : limit.reserveSlot(now, wait, rate);
  const bounded = Math.min(at, now + wait + LONGEST_PROMISE);
  clients.promise(slot, bounded);
  return bounded - now;
}
