/**
 * Whether clients return when their Retry-After named. A promise is valid for one request, at the limit whose Retry-After it was.
 */
import type { ClientSlot } from '../admission/client-allowance.ts';
import type { GateStore } from '../admission/gate-store.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Millis } from '../scalars.ts';
import type { Limit } from './limit.ts';
import { ReturnPromises, type ReturnPromise } from './return-promises.ts';

/** Retry-After is in whole seconds, rounded up or down: a client may return this much too early or too late. */
export const RETRY_AFTER_ROUNDING: Millis = 1000;
/** In addition, the time for the response, the client's timer and the new request. */
export const TRANSIT_ALLOWANCE: Millis = 1000;
/** How much later than named a client may return. */
export const MAX_LATENESS: Millis = RETRY_AFTER_ROUNDING + TRANSIT_ALLOWANCE;
export const MIN_RETRY_AFTER: Millis = 1000;
const NEVER = Number.NEGATIVE_INFINITY;
const TIMER_TOLERANCE: Millis = 20;

/** When the client of a request was asked to return to its innermost limit. */
export function promisedReturn(store: GateStore, ticket: Ticket, slot: ClientSlot): ReturnPromise {
  const limit = limitOfPromise(store, ticket);
  if (limit !== undefined) return limit.promisedReturn(ticket.client);
  const { clients } = store;
  return {
    first: clients.firstPromisedReturn(slot),
    last: clients.promisedReturn(slot),
    askedAt: clients.previousArrival(slot),
  };
}

/** Several requests of a client may have been refused: it keeps the first time and the last. */
export function recordPromisedReturn(
  store: GateStore,
  ticket: Ticket,
  slot: ClientSlot,
  wait: Millis,
  now: Millis,
): Millis {
  movePromise(store, ticket, slot, now);
  const known = promisedReturn(store, ticket, slot);
  const last = now + wait;
  const first = [known.first, known.last].find((promised) => now - promised <= MAX_LATENESS) ?? last;
  const limit = limitOfPromise(store, ticket);
  store.clients.setPromisedReturn(slot, last, first, limit !== undefined);
  if (limit !== undefined) keepPromise(limit, ticket, { first, last, askedAt: now }, now);
  return wait;
}

/**
 * Records whether the client of a request returns when its Retry-After named. What counts is when the head of the request
 * arrived: a slow upload that begins on time is on time.
 */
export function recordReturn(store: GateStore, ticket: Ticket, slot: ClientSlot, now: Millis): void {
  movePromise(store, ticket, slot, now);
  const promise = promisedReturn(store, ticket, slot);
  const arrivedAt = ticket.arrivedAt ?? now;
  ticket.isReturning = findDueReturn(promise, arrivedAt) !== undefined;
  ticket.keepsToPromise = ticket.isReturning && hasPaused(promise, arrivedAt);
}

/** The request is the one for which its client was asked to return. */
export function usePromise(store: GateStore, ticket: Ticket, slot: ClientSlot, now: Millis): void {
  const { addressGroup, client } = ticket;
  const promise = promisedReturn(store, ticket, slot);
  const { last } = promise;
  const promised = findDueReturn(promise, ticket.arrivedAt ?? now) ?? last;
  const innermost = ticket.limits.at(-1);
  if (addressGroup !== undefined && innermost !== undefined && promised > NEVER) {
    // Its slot was not in the sequence of the limit, so later ones there are that much later.
    if (innermost.lastSlotOfAddress(addressGroup) > promised) innermost.delayReturnSlots(now);
    else innermost.addressSlots?.release(addressGroup);
  }
  const remaining = promised < last ? last : NEVER;
  const limit = limitOfPromise(store, ticket);
  const { clients } = store;
  if (limit === undefined || clients.promisedReturn(slot) === last) {
    clients.setPromisedReturn(slot, remaining, remaining, limit !== undefined);
  }
  if (remaining === NEVER) limit?.returnPromises?.delete(client);
  else limit?.returnPromises?.set(client, { ...promise, first: last }, MAX_LATENESS, now);
}

/**
 * A client has one promise until its upstream gets a nested limit. From then on, the upstream's own limit keeps that one: the next
 * promise may be of another limit.
 */
function movePromise(store: GateStore, ticket: Ticket, slot: ClientSlot, now: Millis): void {
  const { clients } = store;
  const [own] = ticket.limits;
  if (own?.ref.nested !== '' || store.upstream(ticket.upstream).hasNestedLimits !== true) return;
  const last = clients.promisedReturn(slot);
  const at = ticket.arrivedAt ?? now;
  if (clients.isPromiseKeptByLimit(slot) || at - last > MAX_LATENESS) return;
  const first = clients.firstPromisedReturn(slot);
  keepPromise(own, ticket, { first, last, askedAt: clients.previousArrival(slot) }, at);
  clients.setPromisedReturn(slot, last, first, true);
}

function keepPromise(limit: Limit, { client }: Ticket, promise: ReturnPromise, now: Millis): void {
  limit.returnPromises ??= new ReturnPromises();
  limit.returnPromises.set(client, promise, MAX_LATENESS, now);
}

/** Returns the innermost limit if its upstream has several; otherwise the client has one promise. */
function limitOfPromise(store: GateStore, ticket: Ticket): Limit | undefined {
  return store.upstream(ticket.upstream).hasNestedLimits === true ? ticket.limits.at(-1) : undefined;
}

/** Returns the time at which a client was asked to return, if that is `at`. Any but the last counts only if the client has paused. */
function findDueReturn(promise: ReturnPromise, at: Millis): Millis | undefined {
  const { first, last } = promise;
  if (isDue(last, at)) return last;
  return isDue(first, at) && hasPaused(promise, at) ? first : undefined;
}

function isDue(promised: Millis, at: Millis): boolean {
  const lateBy = at - promised;
  return lateBy >= -RETRY_AFTER_ROUNDING && lateBy <= MAX_LATENESS;
}

/** No Retry-After is shorter: a client that asked a moment ago does not keep to it. */
function hasPaused({ askedAt }: ReturnPromise, at: Millis): boolean {
  return at - askedAt >= MIN_RETRY_AFTER - TIMER_TOLERANCE;
}
