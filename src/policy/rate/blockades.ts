import type { Millis, PerSecond, Random } from '../types.ts';
import type { Blockade } from './block.ts';
import { blockade, expectedEnd, isProof, planProbe, probeDelay, probeOverdue } from './block.ts';
import { ErrorAccount } from './errors.ts';
import type { Rules } from './rules.ts';
import type { RateSettings, RateState } from './state.ts';
import { FAST_GROWTH } from './state.ts';

/** With little seen before the upstream broke, come back to at least this. */
const LEAST_GOOD_RATE: PerSecond = 5;

/** What was accepted lately is known of so long a time. Of a blockade in it, it says what the blockade let through. */
export const SEEN_OVER: Millis = 10_000;

/** Why a limit is blocked from now on. */
export interface Blocked {
  readonly cause: Blockade['cause'];
  /** Accepted a second, lately. */
  readonly seen: PerSecond;
  /** More was being sent than the rate allows: the rate is not at fault. */
  readonly overrun: boolean;
  readonly retryAfter: Millis | undefined;
}

/** Whether nothing gets through: the blockade that stands, if one does, and what the last one has left behind. */
export class Blockades {
  readonly #settings: RateSettings;
  readonly #random: Random;
  readonly #interval: Rules['probeInterval'];
  readonly #errors = new ErrorAccount();
  #standing: Blockade | undefined;
  /** After errors: when all of the rate will have come back, what that is, and until when it counts as what passes. */
  #backAt = Number.NEGATIVE_INFINITY;
  #goodRate: PerSecond = 0;
  #goodUntil = Number.NEGATIVE_INFINITY;
  /** After errors on an open limit: open again when this has passed. */
  #reopenAt: Millis | undefined;

  constructor(settings: RateSettings, random: Random, interval: Rules['probeInterval']) {
    this.#settings = settings;
    this.#random = random;
    this.#interval = interval;
  }

  get isStanding(): boolean {
    return this.#standing !== undefined;
  }

  /** When its next probe may leave; undefined when nothing is blocked. */
  get probeAt(): Millis | undefined {
    return this.#standing?.probeAt;
  }

  /** How long until its probe may leave; 0 when one is due, or nothing is blocked. */
  delay(now: Millis): Millis {
    return this.#standing === undefined ? 0 : probeDelay(this.#standing, now);
  }

  /** For how long a probe has been due and none has left; 0 when none is due. */
  overdue(now: Millis): Millis {
    return this.#standing === undefined ? 0 : probeOverdue(this.#standing, now);
  }

  /** How long it may be expected to last; 0 when nothing is blocked. */
  expected(now: Millis): Millis {
    return this.#standing === undefined ? 0 : expectedEnd(this.#standing, now);
  }

  /** What is let go now is its probe. */
  probe(now: Millis): void {
    if (this.#standing !== undefined) this.#standing.probeSentAt = now;
  }

  /** The probe was not sent, or its answer will never be known: another may go. */
  abandonProbe(): void {
    if (this.#standing !== undefined) this.#standing.probeSentAt = undefined;
  }

  /** The next probe is due, whatever was to be waited for. */
  probeNow(now: Millis): void {
    if (this.#standing === undefined) return;
    this.#standing.probeAt = Math.min(this.#standing.probeAt, now);
    this.#standing.probeSentAt = undefined;
  }

  /** An answer to what had left before the blockade tells nothing new, nor, where we observe, to what passed it by. */
  failProbe(sentAt: Millis, now: Millis, retryAfter: Millis | undefined): void {
    const block = this.#standing;
    if (block === undefined || sentAt < block.probeAt) return; // no probe
    block.probes += 1;
    block.shutAt = sentAt;
    planProbe(block, now, retryAfter, this.#random);
  }

  /**
   * One more answer. Returns whether errors are so many that the upstream must be broken. One that has just come back,
   * and fails in part, is not: while some get through, to let none through would make the most of a part.
   */
  hear(isError: boolean, now: Millis): boolean {
    this.#errors.note(now, isError);
    if (!isError) return false;
    return now < this.#goodUntil ? this.#errors.areInRow : this.#errors.isAlarming(now);
  }

  /** Nothing is let through from now on, but a probe at a time. */
  begin(state: RateState, { cause, seen, overrun, retryAfter }: Blocked, now: Millis): void {
    const wasOpen = state.phase === 'open' || this.#reopenAt !== undefined;
    const lately = Math.max(LEAST_GOOD_RATE, seen, now < this.#goodUntil ? this.#goodRate : 0);
    // A rate that was not kept to, or has not come back yet, is not at fault: else errors would halve it again and again.
    const isComingBack = state.phase === 'restoring' && now < this.#backAt;
    const known = overrun || isComingBack ? state.ceiling : state.rate;
    const passed = Number.isFinite(known) && !wasOpen ? known : Math.min(known, lately);
    const goodRate = Math.max(this.#settings.minRate, passed);
    if (!Number.isFinite(state.rate)) state.rate = goodRate;
    state.phase = 'blocked';
    this.#reopenAt = undefined;
    this.#standing = blockade({ cause, goodRate, wasOpen, interval: this.#interval }, now);
    planProbe(this.#standing, now, retryAfter, this.#random);
  }

  /** Ends with an accepted answer, if it is to a request that can tell. Returns the blockade that has ended. */
  lift(sentAt: Millis, now: Millis): Blockade | undefined {
    const block = this.#standing;
    if (block === undefined || !isProof(block, sentAt)) return undefined;
    this.#standing = undefined;
    this.#errors.clear();
    if (block.cause === 'errors') {
      this.#backAt = now + FAST_GROWTH;
      this.#goodRate = block.goodRate;
      this.#goodUntil = now + SEEN_OVER;
      if (block.wasOpen && this.#settings.initialRate === undefined) this.#reopenAt = this.#backAt;
    }
    return block;
  }

  /** A limit was open before errors blocked it, and has come back: it is open again. */
  isOver(now: Millis): boolean {
    return this.#reopenAt !== undefined && now >= this.#reopenAt;
  }

  /** A limit was felt since: it is not to be opened. */
  settle(): void {
    this.#reopenAt = undefined;
  }
}
