import type { ClientSlot } from '../admission/client-allowance.ts';
import type { LimitState, LimitView, TideEvent } from '../events/proxy-events.ts';
import { FairQueue } from '../admission/fair-queue.ts';
import type { Hearsay } from './external-outcomes.ts';
import type { HeapItem } from '../collections/binary-heap.ts';
import { LimitHolds } from './client-holds.ts';
import type { LimitRef } from './limit-ref.ts';
import { isOfClass, nameNested } from './limit-ref.ts';
import type { Meter } from './meter.ts';
import { partOf } from '../rate/breaker/request-attributes.ts';
import { SteeredMeter } from './override-meter.ts';
import type { Steering } from './operator-override.ts';
import { isSteered } from './operator-override.ts';
import type { Ticket } from '../admission/ticket.ts';
import { Turns } from '../admission/cross-queue-scheduler.ts';
import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';

type StateChange = Extract<TideEvent, { readonly type: 'limit-state' }>;

/** The furthest ahead that a client is told to come back for a rate we have learned; what the upstream asks may be longer. */
export const LONGEST_PROMISE: Millis = 30_000;

/** How long a limit feels that too much was sent. Of a window longer than this, we cannot tell. */
const OVERRUN_LASTS: Millis = 5000;

/** One limit: its tokens, who waits for them, and when those who were refused may come back. */
export class Limit implements HeapItem {
  readonly ref: LimitRef;
  /** Of us, and not of the upstream: nothing is held against it. */
  readonly isOurs: boolean;
  /** Its own, or that in the hands of an operator. */
  meter: Meter;
  /** The one it was made with, which learns. */
  readonly own: Meter;
  /** This one: what most requests need, and are given without making a list for each. */
  readonly alone: readonly Limit[] = [this];
  /** Who waits here: those for whom this is the innermost limit. */
  readonly queue = new FairQueue<Ticket>();
  /** Limits nested in this one at which somebody waits; made when first needed, for limits of clients are many. */
  queuedWithin: Set<Limit> | undefined = undefined;
  /** Those in whose `queuedWithin` it is. */
  #outers: Set<Limit> | undefined = undefined;
  /** Not all who wait here stand under the same limits: who cannot go yet lets others go first. */
  isMixed = false;
  /** Clients, with whatever credential or with one, that are to stay away from this limit; made when first needed. */
  holds: LimitHolds | undefined = undefined;
  /** Whose turn it is, of those who wait for this limit in several lines; made when first needed. */
  #turns: Turns | undefined = undefined;
  /** When its queue is worth another look; owned by the gate, like its place among the others. */
  wakeAt: Millis = Number.POSITIVE_INFINITY;
  heapIndex = -1;
  /**
   * Of clients that wait for the same limit elsewhere too, which part of their weight counts here; undefined while there
   * are none.
   */
  parts: ReadonlyMap<string, number> | undefined = undefined;
  /** Where we observe: when a request was sent last that would have waited here, or been refused. */
  overrunAt = Number.NEGATIVE_INFINITY;
  /** Of what others send, once it was let pass; made when there is such. */
  hearsay: Hearsay | undefined = undefined;
  /** An operator has chosen its rate, and who lends its tokens keeps to that. */
  isPinnedElsewhere = false;
  /** By a quota, when who keeps the limit was heard of last. */
  wasPaced = false;
  /** The state last told to listeners. */
  told: LimitState;
  #slot: Millis = Number.NEGATIVE_INFINITY;
  readonly #ceilingAtFirst: PerSecond;

  constructor(ref: LimitRef, meter: Meter) {
    this.ref = ref;
    this.isOurs = isOfClass(ref);
    this.meter = meter;
    this.own = meter;
    this.told = meter.phase;
    this.#ceilingAtFirst = meter.ceiling;
  }

  /** From now on it is held to this. */
  steer(steering: Steering, now: Millis): void {
    if (!(this.meter instanceof SteeredMeter)) {
      if (!isSteered(steering, now)) return;
      this.meter = new SteeredMeter(this.own);
    }
    if (this.meter instanceof SteeredMeter) this.meter.steer(steering, now);
  }

  enqueue(ticket: Ticket, slot: ClientSlot, weight: number, now: Millis): void {
    const first = this.queue.peek();
    if (first !== undefined && !areSame(first.limits, ticket.limits)) this.isMixed = true;
    this.queue.push(slot, weight, ticket, now);
    ticket.waitsAt = this;
    for (const outer of ticket.limits) {
      if (outer === this) continue;
      (outer.queuedWithin ??= new Set()).add(this);
      (this.#outers ??= new Set()).add(outer);
    }
  }

  /** Takes out who is served next. */
  serve(next: Ticket): void {
    this.queue.take(next);
    next.waitsAt = undefined;
    this.#tellEmpty();
  }

  /** Takes out one that will not be served. */
  dequeue(ticket: Ticket): void {
    this.queue.remove(ticket);
    ticket.waitsAt = undefined;
    this.#tellEmpty();
  }

  /**
   * When a refused client should come back: the refused are given one slot after another, so that they return at the
   * rate that will be free instead of all at once. `wait` is what it would have had to wait now.
   */
  reserveSlot(now: Millis, wait: Millis, rate: PerSecond = this.meter.rate(now)): Millis {
    const next = Math.max(this.#slot, now + wait) + 1000 / rate;
    this.#slot = Math.min(next, now + wait + LONGEST_PROMISE);
    return this.#slot;
  }

  /** Whether what left then may have met a limit overrun by more than would have been sent. Never, unless we observe, or were told to. */
  isOverrun(sentAt: Millis): boolean {
    return this.isPinnedElsewhere || sentAt - this.overrunAt < OVERRUN_LASTS;
  }

  get turns(): Turns {
    return (this.#turns ??= new Turns());
  }

  /** The weight of all who wait for it, here or at limits nested in it. */
  get waitingWeight(): number {
    let weight = this.queue.activeWeight;
    for (const inner of this.queuedWithin ?? []) weight += inner.queue.activeWeight;
    return weight;
  }

  /** It is to come back no earlier. @param key as of `LimitHolds` */
  hold(key: string, until: Millis, now: Millis): void {
    this.holds ??= new LimitHolds();
    this.holds.hold(key, until, now);
  }

  /** Nothing passes but a probe, or nothing at all. */
  isBlocked(now: Millis): boolean {
    return isBlocked(this.meter, now);
  }

  /** Whether an answer has taught it anything that would be lost with it. */
  get hasLearned(): boolean {
    const { phase, ceiling } = this.own;
    return phase !== 'open' && (phase !== 'restoring' || ceiling !== this.#ceilingAtFirst);
  }

  /** By an operator. */
  get isStopped(): boolean {
    return this.meter instanceof SteeredMeter && this.meter.isStopped;
  }

  /** Its state, where that is another than was told. It is told once. */
  takeChange(now: Millis): StateChange | undefined {
    const from = this.told;
    const to = this.meter.phase;
    if (from === to) return undefined;
    this.told = to;
    const { upstream, scope } = this.ref;
    const block = this.meter.block?.(now);
    const blocked = block === undefined ? {} : { blocked: partOf(block.scope) };
    return { type: 'limit-state', upstream, ...nameNested(this.ref), scope, from, to, ...blocked };
  }

  /** @param meter `own`: what has been learned, whatever an operator wants */
  view(now: Millis, meter: Meter = this.meter): LimitView {
    const blocked = isBlocked(meter, now);
    return {
      ...this.ref,
      state: blocked ? 'blocked' : meter.phase,
      rate: meter.wholeRate?.(now) ?? meter.rate(now),
      ceiling: meter.ceiling,
      places: meter.places,
      blockedUntil: blocked ? meter.blockedUntil : undefined,
      block: meter.block?.(now),
      quotaLeft: meter.quotaLeft,
      quotaOwner: meter.quotaOwner(now),
      queued: this.queue.size,
      inFlight: meter.inFlight,
      cooldownUntil: meter.cooldownUntil,
      isProbed: meter.phase === 'blocked' ? true : undefined,
      ...(meter instanceof SteeredMeter
        ? { pinned: meter.pinned, learned: meter.learned(now), isStopped: meter.isStopped }
        : {}),
    };
  }

  #tellEmpty(): void {
    if (this.queue.size > 0) return;
    this.isMixed = false;
    if (this.#outers === undefined) return;
    for (const outer of this.#outers) outer.queuedWithin?.delete(this);
    this.#outers.clear();
  }
}

function areSame(some: readonly Limit[], others: readonly Limit[]): boolean {
  return some === others || (some.length === others.length && some.every((limit, i) => limit === others[i]));
}

function isBlocked({ phase, blockedUntil }: Meter, now: Millis): boolean {
  return phase === 'blocked' || (blockedUntil ?? now) > now;
}
