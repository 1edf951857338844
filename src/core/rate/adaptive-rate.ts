import type { CutCause, LimitState } from '../events/proxy-events.ts';
import { SendAccounts } from './send-histories.ts';
import type { Block, Blockade, BlockCause } from './breaker/active-block.ts';
import { Blockades, SEEN_OVER } from './breaker/breaker.ts';
import type { Cut } from './decrease.ts';
import { acceptedLately, noteFelt, noteRejection, reviseFirst, settleCut } from './decrease.ts';
import { hasten, isCalm } from './growth.ts';
import { InFlight } from './in-flight-limiter.ts';
import { goOnMeasuring, measure } from './overrun-estimator.ts';
import { doubtNoise } from './background-rejections.ts';
import type { RejectedPart } from './breaker/rejected-part.ts';
import type { Failure, Rejection } from './failed-send.ts';
import { learnOf } from './recovery.ts';
import type { Rules } from './rules.ts';
import { RULES } from './rules.ts';
import type { RateSettings, RateState } from './rate-state.ts';
import { beginAnew, clamp, FAST_GROWTH, forgetLimit, keepWithin, makeRateState, smoothRtt } from './rate-state.ts';
import { Told } from './feedback-freshness.ts';
import type { Source } from './breaker/request-attributes.ts';
import type { Millis, PerSecond, Random } from '../exchange/attempt-outcome.ts';

/** A longer gap says that we slept (a closed laptop, a paused container), not that the upstream was calm. */
const LONGEST_STEP: Millis = 1000;
/** While the limit is overrun, rejections in a row say that nothing passes when this long nothing was accepted. */
const NOTHING_PASSES: Millis = 1000;

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
  readonly #rules: Rules;
  readonly #state: RateState;
  readonly #sends = new SendAccounts();
  /** What is blocked, and what ends it. */
  readonly blockades: Blockades;
  readonly #inFlight: InFlight;
  #advancedAt = Number.NEGATIVE_INFINITY;
  #acceptedAt = Number.NEGATIVE_INFINITY;
  readonly #told = new Told();

  constructor(settings: RateSettings, random: Random, rules: Rules = RULES) {
    this.#settings = settings;
    this.#rules = rules;
    this.#state = makeRateState(settings);
    this.blockades = new Blockades(settings, random, rules.probeInterval);
    this.#inFlight = new InFlight(rules.watchPlaces());
  }

  get phase(): LimitState {
    return this.#state.phase;
  }

  /** Infinity while open and unbounded. While blocked: what it is expected to come back to. */
  get rate(): PerSecond {
    return this.#state.rate;
  }

  /** What requests are spaced by that no block holds back. With places in flight, their number is the limit and `rate` is what comes of it. */
  get pace(): PerSecond {
    return this.#inFlight.isLimited ? this.#settings.maxRate : this.blockades.rateOutside(this.#state);
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

  /** Until when it does not grow, while it is in cooldown. */
  get cooldownUntil(): Millis | undefined {
    return this.#state.phase === 'cooldown' ? this.#state.holdUntil : undefined;
  }

  /**
   * How long until a request may leave, the pace aside: 0 now, and when it would be the probe of a blockade; Infinity
   * when the end of another is waited for.
   */
  delay(now: Millis, source?: Source): Millis {
    if (this.blockades.holds(source)) return this.blockades.delay(now, source);
    return this.#inFlight.isFull ? Number.POSITIVE_INFINITY : 0;
  }

  /** As `delay`; where an answer is waited for, how long until it may be expected. */
  expected(now: Millis, source?: Source): Millis {
    if (this.blockades.holds(source)) return this.blockades.expected(now, source);
    return this.#inFlight.isFull ? 1000 / this.#state.rate : 0;
  }

  /** To be called when `delay` was 0 and the request is let go. Returns whether it is the probe of what is blocked. */
  admit(now: Millis, source?: Source): boolean {
    this.#inFlight.admit();
    if (this.blockades.holds(source)) return this.probe(now);
    if (this.blockades.isStanding) this.passBy(now);
    return false;
  }

  /** A request that was let go elsewhere is the probe of what is blocked. */
  probe(now: Millis): boolean {
    this.blockades.probe(now);
    return this.blockades.isStanding;
  }

  /** Requests pass that the block is not about. */
  passBy(now: Millis): void {
    if (this.blockades.passBy(this.#state)) this.#advancedAt = now;
  }

  /** Goes on with a block that another process had made. */
  resumeBlock(block: Block, now: Millis): void {
    this.blockades.resume(this.#state, block, now);
  }

  /** An admitted request has been sent, or will not be. */
  giveBack(): void {
    this.#inFlight.giveBack();
  }

  /** What a limit that is made at its first rejection has to know of the time before: requests accepted a second. */
  remember(accepted: PerSecond, now: Millis): void {
    this.#sends.preload(now, accepted);
  }

  /**
   * Goes on as one that is known of, whose own history is lost: at its rate at once, and above it as after a cut.
   * @param places how many may be in flight, where that was found to be the limit
   */
  resume(known: Pick<Cut, 'rate' | 'ceiling'>, now: Millis, places?: number): void {
    this.#settle(known, now);
    this.#state.phase = 'cooldown';
    if (places !== undefined) this.#inFlight.resume(places, now);
  }

  /**
   * Among how many an accepted one was sent, or one whose rejection cut the rate, where that was found out later. Returns
   * whether their number is what is limited, and was not known to be.
   */
  learnAmong(among: number, isRejected: boolean, now: Millis): boolean {
    if (!isRejected) this.#inFlight.learn(among);
    if (!isRejected || this.#inFlight.isLimited || this.blockades.isStanding) return false;
    if (!this.#inFlight.feel(among, now)) return false;
    const rate = this.#sends.recent.acceptedRate(now, 1000);
    this.#settle({ rate, ceiling: rate }, now);
    return true;
  }

  /** More is known now of what had been accepted before the first cut. */
  reviseFirst(): void {
    if (!this.#inFlight.isLimited) reviseFirst(this.#state, this.#settings, this.#sends.recent);
  }

  /** As of `InFlight`. */
  recount(by: number): void {
    this.#inFlight.recount(by);
  }

  /** Returns how many are in flight, this one included. */
  sent(now: Millis): number {
    this.#sends.sent(now);
    return this.#inFlight.sent();
  }

  /** One is in flight no longer. Returns whether another was waiting for that. */
  ended(): boolean {
    return this.#inFlight.ended();
  }

  /** An answer that is neither a rejection nor a sign of a broken upstream. `among`: as of a rejection. */
  accepted(sentAt: Millis, among: number, now: Millis, source?: Source): void {
    const state = this.#state;
    state.smoothedRtt = smoothRtt(state.smoothedRtt, now - sentAt);
    state.rejectedInRow = 0;
    if (sentAt >= state.cutAt) {
      state.cycleAccepted += 1;
      state.latelyAccepted += 1;
    }
    this.#acceptedAt = now;
    this.#told.accepted(state.grown);
    this.blockades.hearAccepted(sentAt, now, source);
    this.#inFlight.accepted(among);
    const lifted = this.blockades.lift(state, sentAt, now, source);
    if (lifted !== undefined && !lifted.isPartial) this.#unblock(lifted, sentAt, now);
    else if (state.phase === 'backoff' && sentAt >= state.cutAt) {
      state.phase = 'cooldown';
      state.risingSince = state.cutAt;
    }
  }

  /** A 429 that speaks of this limit. Returns the cause if it was cut. */
  rejected(rejection: Rejection, now: Millis): CutCause | undefined {
    const { sentAt, retryAfter, activeClients, overrun = false, source } = rejection;
    this.#sends.rejected(sentAt);
    // A rejection inside the block says nothing about the rate outside it.
    if (this.blockades.isPartial && this.blockades.holds(source)) return this.blockades.failProbe(rejection, now);
    const part = this.blockades.hearRejected(this.#state, source, now);
    if (part !== undefined) return this.#block('rejections', rejection, now, part);
    noteRejection(this.#state, sentAt, now);
    const isNoise = this.#hearNoise();
    if (!isNoise) noteFelt(this.#state, this.#rules, now);
    if (retryAfter !== undefined) this.#rules.noteCost(this.#state, retryAfter / 1000 / Math.max(1, activeClients));
    if (this.blockades.holds(source)) return this.blockades.failProbe(rejection, now);
    if (this.#state.phase === 'blocked') {
      this.blockades.widen(source);
      return undefined;
    }
    this.#inFlight.rejected(now);
    const cause = isNoise || this.#rules.isSameEpoch(this.#state, sentAt) ? undefined : this.#cut(rejection, now);
    // Where rejections are many by our own doing, some of them come in a row.
    const isChance = overrun && now - this.#acceptedAt < NOTHING_PASSES;
    if (isChance || !this.#rules.isBlackout(this.#state)) return cause;
    this.#inFlight.doubt(); // a place is free whenever a request ends
    return this.#block('rejections', rejection, now);
  }

  /** No answer, or one that says that the upstream is broken. Returns the cause if nothing is let through any more. */
  failed(failure: Failure, now: Millis): CutCause | undefined {
    const { source } = failure;
    if (this.blockades.holds(source)) return this.blockades.failProbe(failure, now);
    if (!this.blockades.hearFailed(source, now)) return undefined;
    return this.#block('errors', failure, now);
  }

  /**
   * Moves on with time. `queued`: whether requests wait for this limit. `late`: how long it takes until what was sent is
   * told of; up to 200 ms, which is what the account of sends has room for.
   */
  advance(now: Millis, queued: boolean, late: Millis = 0): void {
    const state = this.#state;
    keepWithin(state, this.#settings);
    this.blockades.forget(now);
    const since = state.phase === 'cooldown' ? Math.max(this.#advancedAt, state.holdUntil) : this.#advancedAt;
    const elapsed = clamp(now - since, 0, LONGEST_STEP);
    this.#advancedAt = now;
    if (state.phase === 'cooldown' && now >= state.holdUntil) state.phase = 'restoring';
    if (state.phase !== 'restoring') return;
    const isLearned = this.#settings.initialRate === undefined;
    if (this.blockades.isOver(now)) this.#open();
    else if (this.#inFlight.isLimited && queued) this.#growPlaces(now);
    else if (
      !this.#inFlight.isLimited &&
      !this.#rules.isApplicationLimited(state, this.#sends.recent, now - late, queued)
    ) {
      if (this.#told.isForgotten(elapsed)) beginAnew(state, this.#settings);
      else if (!this.#told.isSilent(state)) this.#grow(elapsed);
    } else if (isLearned && isCalm(state, now)) this.#open();
  }

  /** Time has passed of which nothing is known: no reason to grow. */
  pass(now: Millis): void {
    this.#advancedAt = now;
  }

  #grow(elapsed: Millis): void {
    const state = this.#state;
    state.grown += elapsed;
    state.rate = Math.min(this.#settings.maxRate, Math.max(state.rate, this.#rules.rateOnCurve(state)));
    if (this.#rules.isStale(state)) hasten(state, this.#rules.planGrowth({ ...state, found: 'moved' }));
  }

  #hearNoise(): boolean {
    return !this.#inFlight.isLimited && this.#rules.hearNoise(this.#state);
  }

  #cut({ sentAt, among, overrun = false }: Rejection, now: Millis): CutCause | undefined {
    const state = this.#state;
    this.blockades.settle();
    if (state.phase !== 'open' && overrun) {
      const measured = measure(this.#sends.long, sentAt);
      return measured && goOnMeasuring(state, () => this.#settle(measured, now), now);
    }
    if (!overrun && this.#inFlight.feel(among, now)) {
      const rate = this.#sends.recent.acceptedRate(now, 1000);
      this.#settle({ rate, ceiling: rate }, now);
      return 'places';
    }
    const cut =
      state.phase === 'open' ? this.#rules.cutFirst(state, this.#sends.recent, now) : this.#rules.cutAgain(state);
    this.#settle(cut, now);
    return cut.cause;
  }

  #settle(cut: Pick<Cut, 'rate' | 'ceiling'>, now: Millis): void {
    doubtNoise(this.#state);
    this.#told.cut();
    settleCut(this.#state, this.#settings, cut, now);
    this.#state.growFor = this.#rules.planGrowth(this.#state);
  }

  /** The rate is what comes of the places. */
  #growPlaces(now: Millis): void {
    const { minRate, maxRate } = this.#settings;
    this.#state.rate = clamp(this.#sends.recent.acceptedRate(now, 1000), minRate, maxRate);
    this.#inFlight.grow(now, this.#state);
  }

  #open(): void {
    this.#inFlight.release();
    this.blockades.settle();
    forgetLimit(this.#state, this.#settings);
  }

  /** @param part what it is about, where others are known to pass */
  #block(cause: BlockCause, failure: Failure, now: Millis, part?: RejectedPart): CutCause {
    const seen = Math.max(acceptedLately(this.#sends.recent, now), this.#sends.long.acceptedRate(now, SEEN_OVER));
    this.blockades.begin(this.#state, { cause, failure, seen, part }, now);
    return cause === 'rejections' ? 'blocked' : 'errors';
  }

  /** After rejections, to what the blackout has shown to pass. After errors, to half of what did, back to all in 3 s. */
  #unblock(block: Blockade, sentAt: Millis, now: Millis): void {
    const state = this.#state;
    this.#advancedAt = now; // nothing grows before
    if (block.cause === 'rejections') {
      this.#settle(learnOf(state, this.#rules, this.#rules.reopen(state, this.#sends.long, block, sentAt)), now);
      state.phase = 'cooldown';
      state.risingSince = now;
    } else {
      this.#settle({ rate: block.goodRate / 2, ceiling: block.goodRate }, now);
      state.growFor = FAST_GROWTH;
      state.phase = 'restoring';
    }
  }
}
