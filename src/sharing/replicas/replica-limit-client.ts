import { Heap } from '../../core/collections/binary-heap.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { Meter } from '../../core/limits/meter.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Clock, Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import type { Held } from '../workers/limit-client.ts';
import { countWaiting } from '../protocol/token-demand.ts';
import { nameOf } from '../protocol/limit-terms.ts';
import type { Hold } from '../workers/worker-protocol.ts';
import { Borrower } from './lease-client.ts';
import type { PooledMeter } from './replica-meter.ts';
import type { Answer, Call, News } from './replica-protocol.ts';

/** A sign that the pool is back counts so often. */
const SIGNS_APART: Millis = 1000;

/** Where there is a sign that it is back, it is tried within so long; with very many limits, in more than the pool takes for them. */
const TRIED_WITHIN: Millis = 50;
const TRIED_EACH: Millis = 1;

/** Of a pool that was away: it can be reached; an answer came after its time; another process has had one. */
export type PoolSign = 'connected' | 'late' | 'told';

export interface PoolMemberParts {
  /** No two processes are called the same, not even one after the other. */
  readonly holder: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Asks the pool; to be answered by the borrower's `hear` or `miss`. */
  readonly call: (borrower: Borrower, call: Call) => void;
  /** Tells the others of a client that is to wait. */
  readonly hold: (hold: Hold) => void;
  /** What was told here has cut the rate of a limit: nobody else says so. */
  readonly onCut: (ref: LimitRef, cut: Answer['cuts'][number]) => void;
  /** `nextWake` is earlier than before. */
  readonly rearm: () => void;
  /** The pool has gone away, or has come back. */
  readonly onAway: (isAway: boolean) => void;
}

/** All that one process borrows of a pool. Pure but for its clock: it says when it wants to be woken. */
export class PoolMember {
  readonly #parts: PoolMemberParts;
  readonly #borrowers = new Map<string, Borrower>();
  /** Those that have no meter of a limit yet, by it. */
  readonly #made = new WeakMap<Meter, Borrower>();
  readonly #wakes = new Heap<Borrower>((a, b) => a.wakeAt < b.wakeAt);
  readonly #alone = new Set<Borrower>();
  #held: Held | undefined;
  #signAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(parts: PoolMemberParts) {
    this.#parts = parts;
  }

  /** For the store: the meter of a limit. */
  makeMeter(ref: LimitRef, settings: RateSettings): PooledMeter {
    const { holder, clock, random, call, onCut } = this.#parts;
    const borrower = new Borrower(ref, settings, {
      holder,
      clock,
      random,
      call,
      onCut,
      schedule: (each) => this.#schedule(each),
      countWaiting: (limit) => countWaiting(limit, this.#held?.store),
      supply: (limit, now) => this.#held?.supply(limit, now),
      onAlone: (each, isAlone) => this.#noteAlone(each, isAlone),
      isScout: (each) => each === this.#scout,
    });
    this.#made.set(borrower.meter, borrower);
    return borrower.meter;
  }

  /** For the store: a limit has been made. */
  adopt(limit: Limit): void {
    const borrower = this.#made.get(limit.own);
    if (borrower === undefined) return;
    this.#borrowers.set(nameOf(limit.ref), borrower);
    borrower.adopt(limit);
    // Where others wait in vain, it need not.
    if (this.#alone.size > 0) borrower.goAlone(this.#parts.clock.now());
  }

  /** For the store: a limit has been forgotten. */
  forget(limit: Limit): void {
    const name = nameOf(limit.ref);
    const borrower = this.#borrowers.get(name);
    if (borrower === undefined) return;
    this.#borrowers.delete(name);
    borrower.release();
    this.#wakes.remove(borrower);
    if (!this.#alone.delete(borrower)) return;
    // That it is forgotten does not say that the pool is back.
    if (this.#scout === undefined) this.#parts.onAway(false);
    else this.#scout.scout(this.#parts.clock.now());
  }

  /** For the store: a client is to wait, or is allowed less, whatever process it comes to. */
  hold(hold: Hold): void {
    this.#parts.hold(hold);
  }

  wire(held: Held): void {
    this.#held = held;
  }

  /** A limit has changed, as others have felt. */
  hearNews(news: News, now: Millis): void {
    this.#borrowers.get(news.name)?.hearNews(news, now);
  }

  /** A client was told to wait, or was allowed less, where it came to another process. */
  hearHold(hold: Hold, now: Millis): void {
    this.#held?.store.heed(hold, now);
  }

  /** The pool may be there again. */
  hearSign(sign: PoolSign, now: Millis): void {
    if (this.#alone.size === 0) return;
    // Answers that all come late are no reason to ask more often than the probes do; nor are others that come and go.
    if (sign !== 'connected') {
      if (now - this.#signAt < SIGNS_APART) return;
      this.#signAt = now;
    }
    const within = Math.max(TRIED_WITHIN, TRIED_EACH * this.#alone.size);
    for (const borrower of this.#alone) borrower.tryAgain(now, within);
  }

  nextWake(): Millis | undefined {
    return this.#wakes.peek()?.wakeAt;
  }

  wake(now: Millis): void {
    for (let next = this.#wakes.peek(); next !== undefined && next.wakeAt <= now; next = this.#wakes.peek()) {
      this.#wakes.remove(next);
      next.wake(now);
    }
  }

  /** The one that has been alone for longest. */
  get #scout(): Borrower | undefined {
    return this.#alone.values().next().value;
  }

  #schedule(borrower: Borrower): void {
    this.#wakes.remove(borrower);
    this.#wakes.push(borrower);
    if (this.#wakes.peek() === borrower) this.#parts.rearm();
  }

  #noteAlone(borrower: Borrower, isAlone: boolean): void {
    const wasAway = this.#alone.size > 0;
    if (isAlone) this.#alone.add(borrower);
    else {
      this.#alone.delete(borrower);
      // Those that nobody uses do not ask, but for one: they would be found alone for ever.
      for (const each of this.#alone) if (each.wakeAt === Number.POSITIVE_INFINITY) this.#alone.delete(each);
    }
    const isAway = this.#alone.size > 0;
    if (isAway !== wasAway) this.#parts.onAway(isAway);
  }
}
