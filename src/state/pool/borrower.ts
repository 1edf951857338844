import type { HeapItem } from '../../policy/heap.ts';
import type { Limit } from '../../policy/limit.ts';
import type { LimitRef } from '../../policy/limit-ref.ts';
import type { RateSettings } from '../../policy/rate/state.ts';
import type { Clock, Millis, PerSecond, Random } from '../../policy/types.ts';
import { shiftTimes } from '../leasing/happenings.ts';
import { PoolClock } from './pool-clock.ts';
import { PooledMeter } from './pooled-meter.ts';
import type { Answer, Call, PoolTerms } from './words.ts';

/** What is not urgent is told so soon: together, it costs less. */
const TOLD_WITHIN: Millis = 100;
/** Even what is urgent is told no more often. */
const CALL_GAP: Millis = 2;
/** More tokens are asked for so long before the last in hand is due, and so many as will be needed in the time after. */
const LEAD: Millis = 50;
const NEEDED_FOR: Millis = 100;
/** Who holds anything is heard at least so often. */
const HEARTBEAT: Millis = 1000;
/** What is needed is known by what was needed lately. */
const SMOOTHED_OVER: Millis = 300;
/** Which clients wait is told so often, and of so many. */
const CLIENTS_EVERY: Millis = 200;
const MOST_CLIENTS = 32;
/** Alone, the pool is tried again after so long, and twice that each time, with jitter. */
const FIRST_PROBE: Millis = 250;
const LONGEST_PROBE: Millis = 2000;

export interface BorrowerParts {
  readonly holder: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Has `wake` called in time; to be called again whenever `wakeAt` is earlier than before. */
  readonly schedule: (borrower: Borrower) => void;
  /** To be answered by `hear` or `miss`. */
  readonly call: (borrower: Borrower, call: Call) => void;
  /** How many could go if they had a token. */
  readonly countWaiting: (limit: Limit) => number;
  /** Tokens have come, or word of the limit: who waits is to be served. */
  readonly supply: (limit: Limit, now: Millis) => void;
  /** What was told here has cut the rate. */
  readonly onCut: (ref: LimitRef, cut: Answer['cuts'][number]) => void;
  readonly onAlone: (borrower: Borrower, isAlone: boolean) => void;
}

/**
 * One limit as one process borrows of it: when to ask the pool for how much, with one call under way at a time, and what
 * to do while it does not answer.
 */
export class Borrower implements HeapItem {
  readonly ref: LimitRef;
  readonly settings: RateSettings;
  readonly meter: PooledMeter;
  wakeAt: Millis = Number.POSITIVE_INFINITY;
  heapIndex = -1;
  readonly #parts: BorrowerParts;
  readonly #clock = new PoolClock();
  #limit: Limit | undefined;
  #calledAt: Millis = Number.NEGATIVE_INFINITY;
  /** Of the call under way. */
  #clients: readonly string[] | undefined;
  #clientsToldAt: Millis = Number.NEGATIVE_INFINITY;
  #isTouched = false;
  #isUrgent = false;
  #needed: PerSecond = 0;
  #sendsThen = 0;
  #misses = 0;

  constructor(ref: LimitRef, settings: RateSettings, parts: BorrowerParts) {
    this.ref = ref;
    this.settings = settings;
    this.#parts = parts;
    this.meter = new PooledMeter(settings, parts.random, (urgent) => this.#touch(urgent));
  }

  get limit(): Limit | undefined {
    return this.#limit;
  }

  /** The limit of this meter has been made: its pool is asked how it stands. */
  adopt(limit: Limit): void {
    this.#limit = limit;
    this.meter.limit = limit;
    this.#touch(true);
  }

  /** Calls, if there is something to call about. */
  wake(now: Millis): void {
    this.wakeAt = Number.POSITIVE_INFINITY;
    if (this.#clients !== undefined || this.#limit === undefined) return;
    const limit = this.#limit;
    this.#isTouched = false;
    this.#isUrgent = false;
    this.#estimateNeed(now);
    const needed = this.meter.isAlone ? 0 : Math.floor((this.#needed * NEEDED_FOR) / 1000);
    const { want, happenings, lent, inFlight, known } = this.meter.tell(this.#parts.countWaiting(limit) + needed, now);
    const { offset, roundTrip } = this.#clock;
    this.#clients = this.#someWhoWait(limit, now);
    this.#calledAt = now;
    this.#parts.call(this, {
      holder: this.#parts.holder,
      now: now + offset,
      happenings: shiftTimes(happenings, offset),
      lent,
      inFlight,
      want: this.meter.isAlone ? 0 : want,
      weight: limit.queue.activeWeight,
      roundTrip,
      known: { ...known, since: known.since + offset },
      chance: this.#parts.random(),
      clients: this.#clients,
    });
  }

  /** The answer to the call under way. */
  hear(answer: Answer, now: Millis): void {
    const limit = this.#limit;
    const clients = this.#clients;
    if (limit === undefined || clients === undefined) return;
    this.#clients = undefined;
    this.#clock.note(this.#calledAt, now, answer.now);
    const { offset } = this.#clock;
    const slots = answer.slots.map((slot) => slot - offset);
    this.meter.hear(ourTerms(answer.terms, offset), slots, now);
    if (clients.length > 0) limit.parts = partsOf(clients, answer.waitsWith);
    for (const cut of answer.cuts) this.#parts.onCut(this.ref, cut);
    if (this.#misses > 0) {
      this.#misses = 0;
      this.#parts.onAlone(this, false);
    }
    this.#parts.supply(limit, now);
    this.#plan(answer.againAt - offset, now);
  }

  /** The call under way was not answered in time, or not as it should be. */
  miss(now: Millis): void {
    this.#clients = undefined;
    this.goAlone(now);
  }

  /** The pool is away. */
  goAlone(now: Millis): void {
    const limit = this.#limit;
    if (limit === undefined) return;
    const wasAlone = this.#misses > 0;
    this.#misses += 1;
    this.meter.goAlone(now);
    const isWorthAsking = this.#isTouched || limit.ref.scope === 'upstream' || limit.queue.size > 0;
    if (wasAlone && !isWorthAsking) {
      // Nobody has used it since: who does next will ask.
      this.wakeAt = Number.POSITIVE_INFINITY;
      this.#parts.schedule(this);
      return;
    }
    if (!wasAlone) this.#parts.onAlone(this, true);
    const longest = Math.min(LONGEST_PROBE, FIRST_PROBE * 2 ** (this.#misses - 1));
    this.#wakeBy(now + longest * (0.5 + 0.5 * this.#parts.random()));
    this.#parts.supply(limit, now);
  }

  /** Of a limit that has changed, as others have felt. */
  hearNews(terms: PoolTerms, now: Millis): void {
    if (this.#limit === undefined || !this.meter.hearNews(ourTerms(terms, this.#clock.offset), now)) return;
    this.#parts.supply(this.#limit, now);
  }

  #touch(urgent: boolean): void {
    if (this.#isTouched && (this.#isUrgent || !urgent)) return;
    this.#isTouched = true;
    this.#isUrgent ||= urgent;
    if (this.#clients !== undefined || (this.meter.isAlone && this.wakeAt < Number.POSITIVE_INFINITY)) return;
    const now = this.#parts.clock.now();
    this.#wakeBy(urgent ? Math.max(now, this.#calledAt + CALL_GAP) : now + TOLD_WITHIN);
  }

  /** After an answer: when to call next. */
  #plan(againAt: Millis, now: Millis): void {
    const { meter } = this;
    if (this.#isTouched) this.#wakeBy(this.#isUrgent ? this.#calledAt + CALL_GAP : now + TOLD_WITHIN);
    if (againAt < Number.POSITIVE_INFINITY) this.#wakeBy(Math.max(againAt, this.#calledAt + CALL_GAP));
    const { lastSlot } = meter;
    if (lastSlot !== undefined) this.#wakeBy(Math.max(lastSlot - LEAD, now + LEAD));
    if (meter.inFlight > 0 || meter.inHand > 0) this.#wakeBy(now + HEARTBEAT);
  }

  #wakeBy(at: Millis): void {
    if (at >= this.wakeAt) return;
    this.wakeAt = at;
    this.#parts.schedule(this);
  }

  #estimateNeed(now: Millis): void {
    const elapsed = now - this.#calledAt;
    const sent = this.meter.ownSends - this.#sendsThen;
    this.#sendsThen = this.meter.ownSends;
    if (elapsed <= 0) return;
    const weight = -Math.expm1(-elapsed / SMOOTHED_OVER);
    this.#needed += ((1000 * sent) / elapsed - this.#needed) * weight;
  }

  #someWhoWait({ queue }: Limit, now: Millis): readonly string[] {
    if (now - this.#clientsToldAt < CLIENTS_EVERY || this.meter.isAlone) return [];
    this.#clientsToldAt = now;
    return queue.flows.slice(0, MOST_CLIENTS).map(({ head }) => head?.client ?? '');
  }
}

function ourTerms(terms: PoolTerms, offset: Millis): PoolTerms {
  const { blockedUntil, expectedAt } = terms;
  return {
    ...terms,
    expectedAt: expectedAt - offset,
    blockedUntil: blockedUntil === undefined ? undefined : blockedUntil - offset,
  };
}

/** A client that waits in several places has one share, and a part of it in each. */
function partsOf(clients: readonly string[], waitsWith: readonly number[]): ReadonlyMap<string, number> | undefined {
  const parts = new Map<string, number>();
  for (const [index, client] of clients.entries()) {
    const places = waitsWith[index] ?? 1;
    if (places > 1) parts.set(client, 1 / places);
  }
  return parts.size === 0 ? undefined : parts;
}
