import type { Store, Upstream } from './store.ts';
import type { CutCause, Listen } from './events.ts';
import type { Limit } from './limit.ts';
import type { Ticket } from './ticket.ts';
import type { Hints, Millis, Outcome, Quota } from './types.ts';
import { isGatewayError, isOurs } from './types.ts';

interface Lesson {
  readonly ticket: Ticket;
  readonly upstream: Upstream;
  readonly store: Store;
  readonly listen: Listen;
}

/**
 * What one outcome teaches: a 429 is about a rate, 502 to 504 and broken connections are about the upstream's health,
 * everything else is an answer. A 500 is an answer too: a fault of one operation says nothing of capacity. An object
 * lock says nothing of either, and neither does a client that went away, nor one endpoint while others work.
 */
export function learn(lesson: Lesson, outcome: Outcome, now: Millis): void {
  const { ticket, upstream } = lesson;
  if (outcome.kind === 'error') {
    if (isOurs(outcome) || outcome.stale === true || outcome.othersWork === true) return abandonProbes(ticket);
    return fail(lesson, undefined, now);
  }
  const { status, hints } = outcome;
  if (hints.quota !== undefined) hearQuota(ticket, hints.quota, now);
  if (status === 429 && !hints.lock) return reject(lesson, hints, now);
  if (isGatewayError(status)) {
    return outcome.othersWork === true ? abandonProbes(ticket) : fail(lesson, hints.retryAfter, now);
  }
  const innermost = ticket.limits.at(-1);
  for (const limit of ticket.limits) limit.meter.accepted(ticket.sentAt, limit === innermost ? ticket.among : 0, now);
  if (status < 500) upstream.budget.earn();
}

/** A quota is about the innermost limit. */
function hearQuota({ limits, sentAt, number }: Ticket, quota: Quota, now: Millis): void {
  const limit = limits.at(-1);
  if (limit === undefined) return;
  const { meter } = limit;
  if (!limit.isOverrun(sentAt)) {
    const uncounted = meter.sends - number; // what was sent after it
    const left = Math.max(0, quota.remaining - uncounted);
    return meter.noteQuota(left === quota.remaining ? quota : { ...quota, remaining: left }, sentAt, now);
  }
  // What is in flight, and what is spent, is so by real requests that would not have been let go.
  meter.noteQuota(quota.remaining === 0 ? { ...quota, resetIn: undefined } : quota, sentAt, now);
}

/** A 429 goes to the innermost limit; one that was never felt before is made now, with what the client sent as its past. */
function reject(lesson: Lesson, hints: Hints, now: Millis): void {
  const { ticket, upstream, store, listen } = lesson;
  listen({ type: 'throttled', upstream: ticket.upstream, reason: hints.reason ?? 'unspecified' });
  const { slot } = ticket;
  const limit = ticket.limits.at(-1) ?? firstFelt(lesson, now);
  if (limit === undefined || slot === undefined) return;

  const rejection = {
    sentAt: ticket.sentAt,
    among: ticket.among,
    retryAfter: hints.retryAfter,
    activeClients: limit.ref.scope === 'upstream' ? upstream.activity.clients(now) : 1,
    overrun: limit.isOverrun(ticket.sentAt),
  };
  const from = limit.meter.rate(now);
  const cause = limit.meter.rejected(rejection, now);
  if (cause !== undefined) tellCut(lesson, limit, cause, from, now);
  for (const outer of ticket.limits) if (outer !== limit) outer.meter.accepted(ticket.sentAt, 0, now);

  if (hints.retryAfter === undefined || hints.retryAfter === 0 || rejection.overrun) return;
  const until = now + hints.retryAfter;
  // Under a shared limit it is meant for who asked; others are told by their own answers. A limit of one's own stops.
  if (limit.ref.scope === 'upstream') store.clients.hold(slot, until, now);
  else limit.meter.stop(until);
}

function firstFelt({ ticket, store }: Lesson, now: Millis): Limit | undefined {
  const ref = ticket.refs.at(-1);
  if (ref === undefined || ticket.slot === undefined) return undefined;
  const made = store.find(ref); // by another's rejection, while this request was out
  if (made !== undefined) return made;
  const limit = store.make(ref);
  limit.meter.remember(store.clients.demand(ticket.slot, now), now);
  return limit;
}

function fail(lesson: Lesson, retryAfter: Millis | undefined, now: Millis): void {
  const { ticket } = lesson;
  for (const limit of ticket.limits) {
    const from = limit.meter.rate(now);
    const cause = limit.meter.failed(ticket.sentAt, now, retryAfter, limit.isOverrun(ticket.sentAt));
    if (cause !== undefined) tellCut(lesson, limit, cause, from, now);
  }
}

function abandonProbes(ticket: Ticket): void {
  for (const limit of ticket.probes) limit.meter.abandonProbe();
}

function tellCut({ ticket, listen }: Lesson, limit: Limit, cause: CutCause, from: number, now: Millis): void {
  const { scope } = limit.ref;
  listen({ type: 'cut', upstream: ticket.upstream, scope, cause, from, to: limit.meter.rate(now) });
}
