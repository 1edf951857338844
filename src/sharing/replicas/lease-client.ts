import type { HeapItem } from '../../core/collections/binary-heap.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Clock, Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import type { Urgency } from '../protocol/leased-meter.ts';
import { shiftTimes } from '../protocol/usage-entries.ts';
import { Need } from './demand-estimator.ts';
import { atOurTime, PoolClock } from './backend-clock.ts';
import { PooledMeter } from './replica-meter.ts';
import type { Answer, Call, News } from './replica-protocol.ts';

/** What is not urgent is told so soon: together, it costs less. */
const TOLD_WITHIN: Millis = 100;
const TOLD_EACH: Millis = 0.2;
/** Even what is urgent is told no more often. */
const CALL_GAP: Millis = 2;
/** More tokens are asked for so long before the last in hand is due, and so many as will be needed in the time after. */
const LEAD: Millis = 50;
const NEEDED_FOR: Millis = 100;
/** Who holds anything is heard at least so often. */
const HEARTBEAT: Millis = 1000;
/** Who has so much more weight waiting than it told asks anew. */
const GAINED = 1.5;
/** Which clients wait is told so often, and of so many. */
const CLIENTS_EVERY: Millis = 200;
const MOST_CLIENTS = 32;
/** Alone, the pool is tried again after so long, and twice that each time, with jitter. */
const FIRST_PROBE: Millis = 250;
const LONGEST_PROBE: Millis = 2000;
const NOBODY: readonly string[] = [];

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
  /** It is the one that goes on trying, used or not: else nobody would find that the pool is back. */
  readonly isScout: (borrower: Borrower) => boolean;
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
  readonly #need = new Need();
  #limit: Limit | undefined;
  #calledAt: Millis = Number.NEGATIVE_INFINITY;
  /** Of the call under way. */
  #clients: readonly string[] | undefined;
  #clientsToldAt: Millis = Number.NEGATIVE_INFINITY;
  /** There is something to tell, and at the latest by then; Infinity while there is not. */
  #tellBy: Millis = Number.POSITIVE_INFINITY;
  /** Something has happened since the last call. */
  #isToBeTold = false;
  /** More tokens may be needed then. */
  #askAt: Millis = Number.POSITIVE_INFINITY;
  /** Told or not, it is not forgotten that it was used. */
  #isUsed = false;
  #toldWeight = 0;
  #misses = 0;

  constructor(ref: LimitRef, settings: RateSettings, parts: BorrowerParts) {
    this.ref = ref;
    this.settings = settings;
    this.#parts = parts;
    this.meter = new PooledMeter(settings, parts.random, (urgency) => this.#touch(urgency));
  }

  get limit(): Limit | undefined {
    return this.#limit;
  }

  /** The limit of this meter has been made: its pool is asked how it stands. */
  adopt(limit: Limit): void {
    this.#limit = limit;
    this.meter.limit = limit;
    this.#touch('now');
  }

  /** The limit is forgotten: whatever still comes for it, nobody calls again. */
  release(): void {
    this.#limit = undefined;
  }

  /** Calls, if there is something to call about. */
  wake(now: Millis): void {
    const limit = this.#limit;
    if (this.#clients !== undefined || limit === undefined) return;
    const needed = this.meter.isAlone
      ? 0
      : this.#parts.countWaiting(limit) + this.#need.within(NEEDED_FOR, this.meter.ownSends, now);
    if (now < this.#tellBy && !this.meter.isShortOf(needed)) {
      this.#askAt = this.meter.inHand > 0 ? now + LEAD : Number.POSITIVE_INFINITY;
      this.#arm();
      return;
    }
    const { want, happenings, lent, inFlight, known } = this.meter.tell(needed, now);
    const { offset, roundTrip } = this.#clock;
    this.#toldWeight = limit.waitingWeight;
    const clients = want > 0 ? this.#someWhoWait(limit, now) : NOBODY;
    this.#tellBy = Number.POSITIVE_INFINITY;
    this.#askAt = Number.POSITIVE_INFINITY;
    this.#isToBeTold = false;
    this.#clients = clients;
    this.#calledAt = now;
    this.#arm();
    this.#parts.call(this, {
      holder: this.#parts.holder,
      now: now + offset,
      happenings: shiftTimes(happenings, offset),
      lent,
      inFlight,
      want,
      weight: limit.waitingWeight,
      roundTrip,
      known: { ...known, since: known.since + offset },
      chance: this.#parts.random(),
      clients,
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
    this.meter.hear(atOurTime(answer.terms, offset), slots, now);
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
    const isWorthAsking =
      this.#isUsed || limit.ref.scope === 'upstream' || limit.queue.size > 0 || this.#parts.isScout(this);
    this.#isUsed = false;
    const pause = Math.min(LONGEST_PROBE, FIRST_PROBE * 2 ** (this.#misses - 1));
    // Where nobody has used it since: who does next will ask.
    this.#tellBy =
      wasAlone && !isWorthAsking ? Number.POSITIVE_INFINITY : now + pause * (0.5 + 0.5 * this.#parts.random());
    this.#askAt = Number.POSITIVE_INFINITY;
    this.#arm();
    this.#parts.onAlone(this, true);
    this.#parts.supply(limit, now);
  }

  /** The pool may be there again: others are alone too until they know, and what was a share is not one when one has all. */
  tryAgain(now: Millis, within: Millis): void {
    if (!this.meter.isAlone || this.#clients !== undefined || this.#tellBy === Number.POSITIVE_INFINITY) return;
    this.#tellBy = Math.min(this.#tellBy, now + within * this.#parts.random());
    this.#arm();
  }

  /** It is to find out from now on whether the pool is back. */
  scout(now: Millis): void {
    if (this.#clients !== undefined || this.#tellBy < Number.POSITIVE_INFINITY) return;
    this.#tellBy = now + FIRST_PROBE * this.#parts.random();
    this.#arm();
  }

  /** Of a limit that has changed, as others have felt. */
  hearNews({ terms, now: toldAt }: News, now: Millis): void {
    // Before the first answer its times are no times of ours: a client would be told to wait for decades.
    if (this.#limit === undefined || !this.#clock.isKnown) return;
    if (!this.meter.hearNews(atOurTime(terms, this.#clock.offsetBy(toldAt, now)), now)) return;
    this.#parts.supply(this.#limit, now);
  }

  #touch(urgency: Urgency): void {
    this.#isUsed = true;
    // The pool has said when to ask again: to those who waited then.
    if (urgency === 'with-the-next' && !this.#hasGained()) return;
    if (urgency === 'soon' && this.#isToBeTold) return;
    this.#isToBeTold = true;
    if (this.meter.isAlone && this.#tellBy < Number.POSITIVE_INFINITY) return;
    const now = this.#parts.clock.now();
    const by = urgency === 'soon' ? now + this.#tellWithin : Math.max(now, this.#calledAt + CALL_GAP);
    if (by >= this.#tellBy) return;
    this.#tellBy = by;
    this.#arm();
  }

  /** Others wait here now, whose turn it may be. */
  #hasGained(): boolean {
    return (this.#limit?.waitingWeight ?? 0) > GAINED * this.#toldWeight;
  }

  /** After an answer: when to call next. */
  #plan(againAt: Millis, now: Millis): void {
    const { meter } = this;
    const gone = this.#calledAt + CALL_GAP;
    if (meter.inFlight > 0 || meter.inHand > 0) this.#tellBy = Math.min(this.#tellBy, now + HEARTBEAT);
    this.#askAt = Math.max(gone, Math.min(againAt, this.#refillAt(now)));
    this.#tellBy = Math.max(gone, this.#tellBy);
    this.#arm();
  }

  /** Before the last token in hand is due, and all of them will have been used, as it was lately; Infinity where there is none. */
  #refillAt(now: Millis): Millis {
    const { lastSlot, inHand } = this.meter;
    if (lastSlot === undefined) return Number.POSITIVE_INFINITY;
    const usedUpAt = now + Math.min(NEEDED_FOR, (1000 * inHand) / this.#need.rate);
    return Math.max(now + LEAD, lastSlot - LEAD, usedUpAt - LEAD / 2);
  }

  /** With very many who share a limit, each tells of less at a time: calls cost more than what is told late. */
  get #tellWithin(): Millis {
    return Math.max(TOLD_WITHIN, this.meter.holders * TOLD_EACH);
  }

  #arm(): void {
    const at = this.#clients === undefined ? Math.min(this.#tellBy, this.#askAt) : Number.POSITIVE_INFINITY;
    if (at === this.wakeAt) return;
    this.wakeAt = at;
    this.#parts.schedule(this);
  }

  #someWhoWait({ queue }: Limit, now: Millis): readonly string[] {
    if (now - this.#clientsToldAt < CLIENTS_EVERY) return NOBODY;
    this.#clientsToldAt = now;
    return queue.flows.slice(0, MOST_CLIENTS).map(({ head }) => head?.client ?? '');
  }
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
