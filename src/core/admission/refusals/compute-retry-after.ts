import { fairShare } from '../active-clients.ts';
import { longestPlaceWait } from '../awaited-ends.ts';
import { connectionSlotsFor } from '../connection-slots.ts';
import { hasFiniteRate, refusalIfStopped } from './refusal-reasons.ts';
import { tokenDelay } from '../wait-estimate.ts';
import { awaitReturn, computeEffectiveWeight, partOfAddress } from '../effective-weight.ts';
import { type ClientSlot, FLOOD_FACTOR } from '../client-allowance.ts';
import type { EventSink } from '../../events/proxy-events.ts';
import { AddressSlots } from '../../limits/address-slots.ts';
import type { Limit } from '../../limits/limit.ts';
import { MAX_LEARNED_RETRY_AFTER, returnRateOf } from '../../limits/return-slots.ts';
import {
  MAX_LATENESS,
  MIN_RETRY_AFTER,
  promisedReturn,
  recordPromisedReturn,
  RETRY_AFTER_ROUNDING,
  TRANSIT_ALLOWANCE,
} from '../../limits/client-return.ts';
import type { GateStore } from '../gate-store.ts';
import type { ReturnSlotKind, Ticket } from '../ticket.ts';
import type { Millis, PerSecond } from '../../scalars.ts';
import type { RefusalReason } from '../gate-decision.ts';

/** So early may a check take a token: clients whose slots are up to this far apart may return at once. */
const MAX_EARLINESS: Millis = 2 * RETRY_AFTER_ROUNDING + TRANSIT_ALLOWANCE;

/** A refused request, and how long it would have had to wait. */
interface RefusedRequest {
  readonly ticket: Ticket;
  readonly slot: ClientSlot;
  readonly why: RefusalReason;
  readonly wait: Millis;
}

interface RetryAfterContext {
  readonly store: GateStore;
  readonly emit: EventSink;
}

/**
 * Computes the Retry-After of a refusal: a reserved return slot, so that refused clients do not return all at once. Stores
 * the promised time with the client, and cuts the client's allowance if it floods.
 */
export function computeRetryAfter(
  { store, emit }: RetryAfterContext,
  { ticket, slot, why, wait }: RefusedRequest,
  now: Millis,
): Millis {
  ticket.returnSlot = undefined;
  // The upstream asked for it, or a quota begins anew. Round up here, so that later rounding cannot make it earlier.
  if (why === 'held' || why === 'quota_exceeded') {
    const delay = why === 'held' ? wait : (ticket.quotas?.returnDelay(ticket, now) ?? wait);
    return recordPromisedReturn(store, ticket, slot, roundUpToSeconds(delay), now);
  }
  const demand = assessDemand(store, ticket, slot, now);
  if (demand === undefined) return roundUpToSeconds(wait);
  // Scarce connections are no reason to cut a client's allowance.
  const isRateRefusal = why !== 'blocked' && hasFiniteRate(ticket, now);
  const cutTo = isRateRefusal ? store.clients.onRefused(slot, demand.fairRate, now) : undefined;
  const { upstream, client } = ticket;
  if (cutTo !== undefined) emit({ type: 'client-cut', upstream, client, allowance: cutTo });
  const connectionSlots = why === 'over_share' ? undefined : connectionSlotsFor(ticket, store.upstream(upstream));
  const stalled = Math.max(connectionSlots?.stalledFor(now) ?? 0, longestPlaceWait(ticket, now));
  const { delay, kind } = reserveReturnSlot(store, demand, { ticket, slot, wait: Math.max(wait, stalled) }, now);
  ticket.returnSlot = kind === 'shared' && stalled > wait ? 'stalled' : kind;
  return recordPromisedReturn(store, ticket, slot, delay, now);
}

/**
 * Computes the Retry-After for a request that the upstream rejected: as `computeRetryAfter`, but no allowance is cut,
 * because the gate had admitted the request.
 * @param atLeast what the upstream asks for. It bounds this client's delay and moves no other client's slot.
 */
export function computeRejectionRetryAfter(
  store: GateStore,
  { ticket, slot, wait }: Omit<RefusedRequest, 'why'>,
  atLeast: Millis,
  now: Millis,
): Millis {
  const demand = assessDemand(store, ticket, slot, now);
  const own = demand === undefined ? wait : reserveReturnSlot(store, demand, { ticket, slot, wait }, now).delay;
  return recordPromisedReturn(store, ticket, slot, Math.max(own, roundUpToSeconds(atLeast)), now);
}

/** A client's demand, compared with its share of the limit that it would wait for. */
interface DemandAssessment {
  readonly limit: Limit;
  readonly rate: PerSecond;
  /** The highest rate that counts as fair: the client's share, or the mean demand of others if that is more. */
  readonly fairRate: PerSecond;
  /** The client asks for more than `FLOOD_FACTOR` times its fair rate. */
  readonly isFlooding: boolean;
  /** It leaves the free connections or places in flight to others, and `rate` is that at which it releases its own. */
  readonly isYielding: boolean;
  /** The share of all clients of its address together, and what the demand of other addresses leaves of the rate, if anything. */
  readonly share: PerSecond;
  readonly left: PerSecond;
}

/** Returns undefined if nothing limits the request. */
function assessDemand(store: GateStore, ticket: Ticket, slot: ClientSlot, now: Millis): DemandAssessment | undefined {
  const { activeClients, addressGroups, connectionSlots } = store.upstream(ticket.upstream);
  const limit = ticket.limits.at(-1) ?? connectionSlots?.queueLimit;
  if (limit === undefined) return undefined;
  awaitReturn(store, ticket, now, now); // it counts in the share of this process
  // Demand is not known per nested limit, so it is compared with the rate of the outermost one.
  const outermost = ticket.limits[0] ?? limit;
  const quotaRate = ticket.quotas?.rate(ticket, now) ?? Number.POSITIVE_INFINITY;
  const learnedRate = Math.min(returnRateOf(outermost.meter, now, ticket.weight), quotaRate);
  const whole = Math.min(learnedRate, connectionSlots?.turnoverRate ?? Number.POSITIVE_INFINITY);
  const share = fairShare(ticket, outermost, Number.isFinite(learnedRate) ? learnedRate : whole, activeClients, now);
  let rate = whole;
  for (const { meter } of ticket.limits) rate = Math.min(rate, returnRateOf(meter, now, ticket.weight));
  const slots = connectionSlotsFor(ticket, store.upstream(ticket.upstream));
  // It waits for connections or places of its own client, however soon others release theirs.
  let isYielding = false;
  for (const places of [slots, ...ticket.limits.map((each) => each.places)]) {
    if (places === undefined || places.yieldDelay(ticket, now) <= 0) continue;
    isYielding = true;
    rate = Math.min(rate, places.turnoverRateOf(ticket.fairnessKey));
  }
  const demand = store.clients.demand(slot, now);
  // Demand that all clients have in common is no flood, however small one client's share by weight.
  const fair = Math.max(share, activeClients.meanDemandOfOthers(demand, now));
  const { addressGroup } = ticket;
  const sharers = addressGroup === undefined ? 1 : addressGroups.activeClients(addressGroup, now);
  const ownDemand = addressGroup === undefined ? demand : addressGroups.freshDemand(addressGroup, now);
  return {
    limit,
    rate,
    fairRate: fair,
    isFlooding: demand > FLOOD_FACTOR * fair,
    isYielding,
    share: rate * Math.min(1, sharers * fairShare(ticket, outermost, 1, activeClients, now)),
    left: rate - Math.max(0, activeClients.freshDemand(now) - ownDemand),
  };
}

interface ReturnSlot {
  readonly delay: Millis;
  readonly kind: ReturnSlotKind;
}

/** Reserves the next return slot of the limit, or of the client or its address. */
function reserveReturnSlot(
  store: GateStore,
  demand: DemandAssessment,
  { ticket, slot, wait }: Omit<RefusedRequest, 'why'>,
  now: Millis,
): ReturnSlot {
  const { limit, rate, isYielding } = demand;
  const hasOwnSlots = isYielding || demand.isFlooding;
  const { addressGroup } = ticket;
  const turn = now + wait;
  limit.followQuota(turn, now);
  const promised = promisedReturn(store, ticket, slot).last;
  const last = addressGroup === undefined ? promised : limit.lastSlotOfAddress(addressGroup);
  const hasSlot = last > now && !(ticket.keepsToPromise && last <= promised);
  let at: Millis;
  let kind: ReturnSlotKind = 'shared';
  if (hasOwnSlots) {
    kind = isYielding ? 'yielding' : 'own';
    // Such a client gets its own sequence of slots, so that it does not delay the others' slots.
    const weight = computeEffectiveWeight(store, ticket, now);
    const part = partOfAddress(store, ticket, now);
    at = Math.max(turn, promised) + 1000 / (rate * part * limit.queue.share(slot, weight, addressGroup));
  } else if (!hasSlot || mayShareAgain(limit, ticket, last, turn)) at = limit.reserveReturnSlot(now, wait, rate);
  else {
    kind = 'after_own';
    at = Math.max(turn, last) + ownSpacing(demand, ticket, turn);
  }
  at = Math.min(at, turn + MAX_LEARNED_RETRY_AFTER);
  // The turns of a low weight are rarer than the slots of others: that is no reason for theirs to be later.
  const speed = limit.turnProgress.update(limit.queue.virtualTime, now);
  const distance = limit.queue.keepRefusedPlace(slot, ticket.wholeWeight, addressGroup);
  if (speed !== undefined) at = Math.max(at, now + Math.min(distance / speed, MAX_LEARNED_RETRY_AFTER));
  if (!hasOwnSlots && addressGroup !== undefined) {
    (limit.addressSlots ??= new AddressSlots()).set(addressGroup, at, now);
  }
  awaitReturn(store, ticket, at + MAX_LATENESS, now);
  return { delay: at - now, kind };
}

/**
 * Whether a client that has a slot gets another one in the sequence of the limit. That has no effect on others while the sequence
 * is no longer than the shortest Retry-After. Beyond that, clients that return too early would push back all others.
 */
function mayShareAgain(limit: Limit, { addressGroup }: Ticket, last: Millis, turn: Millis): boolean {
  const isShort = limit.lastReturnSlot - turn <= MIN_RETRY_AFTER;
  return addressGroup === undefined && isShort && last <= limit.lastReturnSlot;
}

/**
 * How far apart the slots of one client or one address are in its own sequence: by its share, or by the rate that others leave.
 * Of an address with many clients, only one has a slot in the sequence of the limit, where each of the others has one, too: its
 * slots are at least as far apart as that sequence reaches, unless it is short.
 */
function ownSpacing({ limit, share, left }: DemandAssessment, { addressGroup }: Ticket, turn: Millis): Millis {
  const round = limit.lastReturnSlot - turn;
  if (addressGroup === undefined || round <= MIN_RETRY_AFTER) return 1000 / Math.max(share, left);
  return Math.max(1000 / share, round);
}

function roundUpToSeconds(wait: Millis): Millis {
  return 1000 * Math.ceil(wait / 1000);
}

/**
 * Whether a check that cannot wait any longer may take the next token before it is due, because its client returns in the second
 * that it was told. A request would wait for that token here. An ingress does not; and later tokens come later by as much.
 */
export function mayTakeEarly(ticket: Ticket, now: Millis): boolean {
  if (!ticket.keepsToPromise || !ticket.isSentExternally || refusalIfStopped(ticket, now) !== undefined) return false;
  return tokenDelay(ticket, now) <= MAX_EARLINESS;
}
