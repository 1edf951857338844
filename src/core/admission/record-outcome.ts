import type { Store, Upstream } from './gate-store.ts';
import type { CutCause, Listen } from '../events/proxy-events.ts';
import type { Limit } from '../limits/limit.ts';
import type { LimitRef } from '../limits/limit-ref.ts';
import { isOfClass, nameNested } from '../limits/limit-ref.ts';
import { isScarce } from '../quota/quota-pacing.ts';
import { applyQuota } from '../quota/apply-quota.ts';
import type { Ticket } from './ticket.ts';
import type { Hints, Millis, Outcome, Quota } from '../exchange/attempt-outcome.ts';
import { isGatewayError, isOurs, isThrottled } from '../exchange/attempt-outcome.ts';

type Answer = Extract<Outcome, { readonly kind: 'response' }>;

interface Lesson {
  readonly ticket: Ticket;
  readonly upstream: Upstream;
  readonly store: Store;
  readonly listen: Listen;
}

/**
 * What one outcome teaches: a 429 (or what its preset calls throttled) is about a rate, 502 to 504 and broken connections are about the upstream's health,
 * everything else is an answer. A 500 is an answer too: a fault of one operation says nothing of capacity. An object
 * lock says nothing of either, and neither does a client that went away, nor one endpoint while others work.
 *
 * Returns whether a quota no longer holds back those who wait at its limit, and at limits nested in it.
 */
export function learn(lesson: Lesson, outcome: Outcome, now: Millis): boolean {
  const quota = outcome.kind === 'response' ? outcome.hints.quota : undefined;
  const isReleased = quota !== undefined && outcome.kind === 'response' && hearQuota(lesson, quota, outcome, now);
  learnOfOutcome(lesson, outcome, now);
  return isReleased;
}

function learnOfOutcome(lesson: Lesson, outcome: Outcome, now: Millis): void {
  const { ticket, upstream } = lesson;
  ticket.blamed = undefined;
  if (outcome.kind === 'error') {
    if (isOurs(outcome) || outcome.stale === true || outcome.othersWork === true) return abandonProbes(ticket);
    return fail(lesson, undefined, now);
  }
  const { status, hints } = outcome;
  if (isThrottled(status, hints)) return reject(lesson, hints, now);
  if (isGatewayError(status)) {
    return outcome.othersWork === true || hints.isCached === true
      ? abandonProbes(ticket)
      : fail(lesson, hints.retryAfter, now);
  }
  const isUntold = hints.quota === undefined && status < 400 && hints.isCached !== true;
  if (isUntold && ticket.refs.at(-1)?.nested === '') upstream.untold.note(ticket.client, now);
  const innermost = innermostOf(ticket);
  for (const limit of ticket.limits) accept(limit, ticket, limit === innermost ? ticket.among : 0, now);
  if (status < 500) upstream.budget.earn();
}

/**
 * A quota is about the limit that the answer names, else about the innermost. One that was never felt before is made once the
 * quota holds something back.
 */
function hearQuota(lesson: Lesson, quota: Quota, answer: Answer, now: Millis): boolean {
  const { ticket, upstream, store } = lesson;
  const { sentAt, number } = ticket;
  const ref = accused(ticket, answer.hints.limit, upstream);
  if (ref === undefined) return false;
  const limit = standingUnder(ticket, ref) ?? (isScarce(quota) ? firstFelt(lesson, ref, now) : undefined);
  if (limit === undefined) return false;
  const { meter } = limit;
  const { remaining } = quota;
  if (!limit.isOverrun(sentAt)) {
    // What was sent after it; of an outer limit nobody has counted.
    const isCounted = limit === innermostOf(ticket);
    const uncounted = isCounted ? meter.sends - number : 0;
    const left = Math.max(0, remaining - uncounted);
    const counted = left === remaining ? quota : { ...quota, remaining: left, told: remaining };
    return applyQuota(store, limit, ticket, counted, answer.status, now);
  }
  // What is in flight, and what is spent, is so by real requests that would not have been let go.
  const known = remaining === 0 ? { ...quota, resetIn: undefined } : quota;
  return applyQuota(store, limit, ticket, known, answer.status, now);
}

/**
 * Which limit an answer is about: the one it names, or the innermost of those; else the innermost of all. Undefined where
 * it names what the upstream has and this request does not stand under: the configuration does not know all of its
 * requests, and no other limit is to suffer for it.
 */
function accused({ refs }: Ticket, named: Hints['limit'], upstream: Upstream): LimitRef | undefined {
  if (named !== undefined) {
    const names = (typeof named === 'string' ? [named] : named).filter((nested) => !isOfClass({ nested }));
    const ref = refs.findLast(({ nested }) => names.includes(nested));
    if (ref !== undefined || names.some((name) => upstream.has?.(name) === true)) return ref;
  }
  return refs.findLast((ref) => !isOfClass(ref));
}

/**
 * A 429 goes to the limit it is about; to the others it is an answer. One that was never felt before is made now, with what
 * the client sent as its past.
 */
function reject(lesson: Lesson, hints: Hints, now: Millis): void {
  const { ticket, upstream, listen } = lesson;
  listen({ type: 'throttled', upstream: ticket.upstream, reason: hints.reason ?? 'unspecified' });
  const { slot } = ticket;
  const ref = accused(ticket, hints.limit, upstream);
  const limit = ref === undefined ? undefined : (standingUnder(ticket, ref) ?? firstFelt(lesson, ref, now));
  if (hints.isCached === true) {
    abandonProbes(ticket);
    if (limit !== undefined) holdClient(lesson, limit, now + (hints.retryAfter ?? 0), now);
    return;
  }
  for (const other of ticket.limits) if (other !== limit) accept(other, ticket, 0, now);
  if (limit === undefined || slot === undefined) return;

  ticket.blamed = limit;
  const rejection = {
    sentAt: ticket.sentAt,
    among: limit === innermostOf(ticket) ? ticket.among : 0,
    retryAfter: hints.retryAfter,
    activeClients: limit.ref.scope === 'upstream' ? upstream.activity.clients(now) : 1,
    overrun: limit.isOverrun(ticket.sentAt),
    source: ticket.source,
  };
  const from = limit.meter.rate(now);
  const cause = limit.meter.rejected(rejection, now);
  if (cause !== undefined) tellCut(lesson, limit, cause, from, now);

  if (hints.retryAfter === undefined || hints.retryAfter === 0 || rejection.overrun) return;
  const until = now + hints.retryAfter;
  // Under a shared limit it is meant for who asked; others are told by their own answers. A limit of one's own stops.
  if (limit.ref.scope !== 'upstream') limit.meter.stop(until);
  else holdClient(lesson, limit, until, now);
}

/** Keeps the client that was asked to wait from the upstream, or from the limit that the answer is about. */
function holdClient({ ticket, store }: Lesson, limit: Limit, until: Millis, now: Millis): void {
  if (ticket.slot === undefined || until <= now) return;
  if (limit.ref.nested === '') store.clients.hold(ticket.slot, until, now);
  else limit.hold(ticket.client, until, now); // what does not stand under it may go on
}

/** Of the upstream's own: that of which it was counted how many were in flight. */
function innermostOf({ limits }: Ticket): Limit | undefined {
  const last = limits.at(-1);
  return last?.isOurs === true ? limits.findLast((limit) => !limit.isOurs) : last;
}

function standingUnder({ limits }: Ticket, { nested }: LimitRef): Limit | undefined {
  return limits.find(({ ref }) => ref.nested === nested);
}

function firstFelt({ ticket, store }: Lesson, ref: LimitRef, now: Millis): Limit | undefined {
  if (ticket.slot === undefined) return undefined;
  const made = store.find(ref); // by another's rejection, while this request was out
  if (made !== undefined) return made;
  const limit = store.make(ref);
  limit.meter.remember(store.clients.demand(ticket.slot, now), now);
  return limit;
}

function accept({ meter }: Limit, ticket: Ticket, among: number, now: Millis): void {
  const isAsked = meter.isBlocking === true || meter.isTroubled === true;
  meter.accepted(ticket.sentAt, among, now, isAsked ? ticket.source : undefined);
}

function fail(lesson: Lesson, retryAfter: Millis | undefined, now: Millis): void {
  const { ticket } = lesson;
  const { sentAt, source } = ticket;
  for (const limit of ticket.limits) {
    if (limit.isOurs) continue;
    const from = limit.meter.rate(now);
    const cause = limit.meter.failed({ sentAt, retryAfter, overrun: limit.isOverrun(sentAt), source }, now);
    if (cause !== undefined) tellCut(lesson, limit, cause, from, now);
  }
}

function abandonProbes(ticket: Ticket): void {
  for (const limit of ticket.probes) limit.meter.abandonProbe();
}

function tellCut({ ticket, listen }: Lesson, limit: Limit, cause: CutCause, from: number, now: Millis): void {
  const { scope } = limit.ref;
  listen({
    type: 'cut',
    upstream: ticket.upstream,
    ...nameNested(limit.ref),
    scope,
    cause,
    from,
    to: limit.meter.rate(now),
  });
}
