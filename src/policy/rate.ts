import type { CutCause, LimitState } from './events.ts';
import { SendAccount } from './rate/account.ts';
import type { Blockade } from './rate/block.ts';
import { blockade, expectedEnd, isProof, planProbe, probeDelay, probeOverdue } from './rate/block.ts';
import type { Cut } from './rate/cut.ts';
import { noteRejection, settleCut } from './rate/cut.ts';
import { ErrorAccount } from './rate/errors.ts';
import { hasten, isCalm } from './rate/grow.ts';
import { InFlight } from './rate/in-flight.ts';
import { measure, MEASURED_OVER } from './rate/measure.ts';
import { doubtNoise, HELD_FOR } from './rate/noise.ts';
import type { Rules } from './rate/rules.ts';
import { RULES } from './rate/rules.ts';
import type { RateSettings, RateState } from './rate/state.ts';
import { clamp, FAST_GROWTH, forgetLimit, makeRateState, smoothRtt } from './rate/state.ts';
import type { Millis, PerSecond, Random } from './types.ts';

/** A longer gap says that we slept (a closed laptop, a paused container), not that the upstream was calm. */
const LONGEST_STEP: Millis = 1000;
/** While the limit is overrun, rejections in a row say that nothing passes when this long nothing was accepted. */
const NOTHING_PASSES: Millis = 1000;
/** With little seen before the upstream broke, come back to at least this. */
const LEAST_GOOD_RATE: PerSecond = 5;

export interface Rejection {
  /** When the rejected request was sent. */
  readonly sentAt: Millis;
  /** Requests in flight when it was sent, itself included; 0 where that is not known. */
  readonly among: number;
  readonly retryAfter: Millis | undefined;
  /** Among how many clients its Retry-After is shared: it holds only one of them. */
  readonly activeClients: number;
  /** More was being sent than the rate allows: it says what the limit is, and nothing of the rate. */
  readonly overrun?: boolean;
}

/**
 * The adaptive rate of one limit: feels for it, remembers where it was, backs off and comes back slowly.
 *
 *     open ─429─► backoff ─accepted─► cooldown ─hold over─► restoring ─long calm─► open
 *        any ─nothing gets through─► blocked ─probe accepted─► cooldown, or restoring
 *
 * Pure: fed by events, each with its time. It decides a rate, or how many may be in flight; the pacer spaces requests by
 * it. What is decided when stands here; how, in the rules.
 */
export class AdaptiveRate {
  readonly #settings: RateSettings;
  readonly #random: Random;
  readonly #rules: Rules;
  readonly #state: RateState;
  readonly #recent = new SendAccount(50, 24);
  readonly #long = new SendAccount(1000, 128);
  readonly #errors = new ErrorAccount();
  readonly #inFlight: InFlight;
  #block: Blockade | undefined;
  #advancedAt = Number.NEGATIVE_INFINITY;
  #acceptedAt = Number.NEGATIVE_INFINITY;
  /** After errors: when all of the rate will have come back. */
  #backAt = Number.NEGATIVE_INFINITY;
  /** After errors on an open limit: open again when this has passed. */
  #reopenAt: Millis | undefined;

  constructor(settings: RateSettings, random: Random, rules: Rules = RULES) {
    this.#settings = settings;
    this.#random = random;
    this.#rules = rules;
    this.#state = makeRateState(settings);
    this.#inFlight = new InFlight(rules.watchPlaces());
  }

  get phase(): LimitState {
    return this.#state.phase;
  }

  /** Infinity while open and unbounded. While blocked: what it is expected to come back to. */
  get rate(): PerSecond {
    return this.#state.rate;
  }

  /** What requests are spaced by. With places in flight, their number is the limit and `rate` is what comes of it. */
  get pace(): PerSecond {
    return this.#inFlight.isLimited ? this.#settings.maxRate : this.#state.rate;
  }

  /** How many may be in flight; Infinity where that is not what is limited. */
  get places(): number {
    return this.#inFlight.places;
  }

  get inFlight(): number {
    return this.#inFlight.count;
  }

  get ceiling(): PerSecond {
    return this.#state.ceiling;
  }

  /** Until when nothing but a probe passes. */
  get blockedUntil(): Millis | undefined {
    return this.#block?.probeAt;
  }

  /**
   * How long until a request may leave, the pace aside: 0 now, and when it would be the probe of a blockade; Infinity
   * when the end of another is waited for.
   */
  delay(now: Millis): Millis {
    if (this.#block !== undefined) return probeDelay(this.#block, now);
    return this.#inFlight.isFull ? Number.POSITIVE_INFINITY : 0;
  }

  /** For how long a probe has been due and none has left; 0 when none is due. */
  overdue(now: Millis): Millis {
    return this.#block === undefined ? 0 : probeOverdue(this.#block, now);
  }

  /** As `delay`; where an answer is waited for, how long until it may be expected. */
  expected(now: Millis): Millis {
    if (this.#block !== undefined) return expectedEnd(this.#block, now);
    return this.#inFlight.isFull ? 1000 / this.#state.rate : 0;
  }

  /** To be called when `delay` was 0 and the request is let go: while blocked, it is the probe. */
  admit(now: Millis): void {
    this.#inFlight.admit();
    if (this.#block !== undefined) this.#block.probeSentAt = now;
  }

  /** An admitted request has been sent, or will not be. */
  giveBack(): void {
    this.#inFlight.giveBack();
  }

  /** The probe was not sent, or its answer will never be known: another may go. */
  abandonProbe(): void {
    if (this.#block !== undefined) this.#block.probeSentAt = undefined;
  }

  /** What a limit that is made at its first rejection has to know of the time before: requests accepted a second. */
  remember(accepted: PerSecond, now: Millis): void {
    this.#recent.preload(now, accepted);
    this.#long.preload(now, accepted);
  }

  /** Returns how many are in flight, this one included. */
  sent(now: Millis): number {
    this.#recent.sent(now);
    this.#long.sent(now);
    return this.#inFlight.sent();
  }

  /** One is in flight no longer. Returns whether another was waiting for that. */
  ended(): boolean {
    return this.#inFlight.ended();
  }

  /** An answer that is neither a rejection nor a sign of a broken upstream. `among`: as of a rejection. */
  accepted(sentAt: Millis, among: number, now: Millis): void {
    const state = this.#state;
    state.smoothedRtt = smoothRtt(state.smoothedRtt, now - sentAt);
    state.rejectedInRow = 0;
    if (sentAt >= state.cutAt) state.cycleAccepted += 1;
    this.#acceptedAt = now;
    this.#errors.note(now, false);
    this.#inFlight.accepted(among);
    if (this.#block !== undefined) {
      if (isProof(this.#block, sentAt)) this.#unblock(this.#block, sentAt, now);
    } else if (state.phase === 'backoff' && sentAt >= state.cutAt) {
      state.phase = 'cooldown';
      state.risingSince = state.cutAt;
    }
  }

  /** A 429 that speaks of this limit. Returns the cause if it was cut. */
  rejected(rejection: Rejection, now: Millis): CutCause | undefined {
    const { sentAt, retryAfter, activeClients, overrun = false } = rejection;
    this.#recent.rejected(sentAt);
    this.#long.rejected(sentAt);
    noteRejection(this.#state, this.#rules, sentAt, now);
    if (retryAfter !== undefined) this.#rules.noteCost(this.#state, retryAfter / 1000 / Math.max(1, activeClients));
    if (this.#block !== undefined) {
      this.#failProbe(this.#block, sentAt, now, retryAfter);
      return undefined;
    }
    this.#inFlight.rejected(now);
    const isHeard = this.#rules.isSameEpoch(this.#state, sentAt) || this.#hearNoise(now);
    const cause = isHeard ? undefined : this.#cut(rejection, now);
    // Where rejections are many by our own doing, some of them come in a row.
    const isChance = overrun && now - this.#acceptedAt < NOTHING_PASSES;
    if (isChance || !this.#rules.isBlackout(this.#state)) return cause;
    this.#enterBlock('rejections', now, retryAfter, overrun);
    return 'blocked';
  }

  /** No answer, or one that says that the upstream is broken. Returns the cause if nothing is let through any more. */
  failed(sentAt: Millis, now: Millis, retryAfter: Millis | undefined, overrun = false): CutCause | undefined {
    this.#errors.note(now, true);
    if (this.#block !== undefined) {
      this.#failProbe(this.#block, sentAt, now, retryAfter);
      return undefined;
    }
    if (!this.#errors.isAlarming(now)) return undefined;
    this.#enterBlock('errors', now, retryAfter, overrun);
    return 'errors';
  }

  /** Moves on with time. `queued`: whether requests wait for this limit. */
  advance(now: Millis, queued: boolean): void {
    const state = this.#state;
    const since = state.phase === 'cooldown' ? Math.max(this.#advancedAt, state.holdUntil) : this.#advancedAt;
    const elapsed = clamp(now - since, 0, LONGEST_STEP);
    this.#advancedAt = now;
    if (state.phase === 'cooldown' && now >= state.holdUntil) state.phase = 'restoring';
    if (state.phase !== 'restoring') return;
    const isLearned = this.#settings.initialRate === undefined;
    if (this.#reopenAt !== undefined && now >= this.#reopenAt) this.#open();
    else if (this.#inFlight.isLimited && queued) this.#growPlaces(now);
    else if (!this.#inFlight.isLimited && !this.#rules.isApplicationLimited(state, this.#recent, now, queued)) {
      this.#grow(elapsed);
    } else if (isLearned && isCalm(state, now)) this.#open();
  }

  #grow(elapsed: Millis): void {
    const state = this.#state;
    state.grown += elapsed;
    state.rate = Math.min(this.#settings.maxRate, Math.max(state.rate, this.#rules.rateOnCurve(state)));
    if (this.#rules.isStale(state)) hasten(state, this.#rules.planGrowth({ ...state, found: 'moved' }));
  }

  #hearNoise(now: Millis): boolean {
    const isPaced = this.#state.phase !== 'open' && !this.#inFlight.isLimited;
    return isPaced && this.#rules.hearNoise(this.#state, this.#long.heldRate(now, HELD_FOR));
  }

  #cut({ sentAt, among, overrun = false }: Rejection, now: Millis): CutCause | undefined {
    const state = this.#state;
    this.#reopenAt = undefined;
    if (state.phase !== 'open' && overrun) return this.#measure(sentAt, now);
    if (!overrun && this.#inFlight.feel(among, now)) {
      const rate = this.#recent.acceptedRate(now, 1000);
      this.#settle({ rate, ceiling: rate }, now);
      return 'places';
    }
    const cut = state.phase === 'open' ? this.#rules.cutFirst(state, this.#recent, now) : this.#rules.cutAgain(state);
    this.#settle(cut, now);
    return cut.cause;
  }

  #settle(cut: Pick<Cut, 'rate' | 'ceiling'>, now: Millis): void {
    settleCut(this.#state, this.#settings, cut, now);
    doubtNoise(this.#state);
    this.#state.growFor = this.#rules.planGrowth(this.#state);
  }

  /** What is measured goes on being measured: one long signal is one cut, told where it began. */
  #measure(sentAt: Millis, now: Millis): CutCause | undefined {
    const state = this.#state;
    const { phase } = state;
    const measured = measure(this.#long, sentAt);
    if (measured === undefined) return undefined;
    this.#settle(measured, now);
    // While what is measured still speaks of rejections, nothing grows.
    state.holdUntil = Math.max(state.holdUntil, now + MEASURED_OVER);
    if (phase === 'restoring') return 'small';
    state.phase = phase;
    return undefined;
  }

  /** The rate is what comes of the places. */
  #growPlaces(now: Millis): void {
    const { minRate, maxRate } = this.#settings;
    this.#state.rate = clamp(this.#recent.acceptedRate(now, 1000), minRate, maxRate);
    this.#inFlight.grow(now, this.#state);
  }

  #open(): void {
    this.#inFlight.release();
    this.#reopenAt = undefined;
    forgetLimit(this.#state, this.#settings);
  }

  #enterBlock(cause: Blockade['cause'], now: Millis, retryAfter: Millis | undefined, overrun: boolean): void {
    const state = this.#state;
    const wasOpen = state.phase === 'open' || this.#reopenAt !== undefined;
    const seen = Math.max(LEAST_GOOD_RATE, this.#long.acceptedRate(now, 10_000));
    // A rate that was not kept to, or has not come back yet, is not at fault: else errors would halve it again and again.
    const isComingBack = state.phase === 'restoring' && now < this.#backAt;
    const known = overrun || isComingBack ? state.ceiling : state.rate;
    const passed = Number.isFinite(known) && !wasOpen ? known : Math.min(known, seen);
    const goodRate = Math.max(this.#settings.minRate, passed);
    if (!Number.isFinite(state.rate)) state.rate = goodRate;
    this.#reopenAt = undefined;
    if (cause === 'rejections') this.#inFlight.doubt(); // a place is free whenever a request ends
    this.#block = blockade({ cause, goodRate, wasOpen, interval: this.#rules.probeInterval }, now);
    state.phase = 'blocked';
    planProbe(this.#block, now, retryAfter, this.#random);
  }

  /** An answer to what had left before the blockade tells nothing new, nor, where we observe, to what passed it by. */
  #failProbe(block: Blockade, sentAt: Millis, now: Millis, retryAfter: Millis | undefined): void {
    if (sentAt < block.probeAt) return; // no probe
    block.probes += 1;
    block.shutAt = sentAt;
    planProbe(block, now, retryAfter, this.#random);
  }

  /** After rejections, to what the blackout has shown to pass. After errors, to half of what did, back to all in 3 s. */
  #unblock(block: Blockade, sentAt: Millis, now: Millis): void {
    const state = this.#state;
    this.#block = undefined;
    this.#advancedAt = now; // nothing grows before
    this.#errors.clear();
    if (block.cause === 'rejections') {
      const { rate, ceiling, found, blackout } = this.#rules.reopen(state, this.#long, block, sentAt);
      this.#rules.noteCost(state, blackout / 1000);
      state.lastBlackout = blackout;
      state.found = found;
      this.#settle({ rate, ceiling }, now);
      state.phase = 'cooldown';
      state.risingSince = now;
      return;
    }
    this.#settle({ rate: block.goodRate / 2, ceiling: block.goodRate }, now);
    state.growFor = FAST_GROWTH;
    state.phase = 'restoring';
    this.#backAt = now + FAST_GROWTH;
    if (block.wasOpen && this.#settings.initialRate === undefined) this.#reopenAt = now + FAST_GROWTH;
  }
}
