import type { CutCause, LimitState } from '../limits/limit-state.ts';
import { SendHistories } from './send-histories.ts';
import type { ActiveBlock } from './breaker/active-block.ts';
import { leaveBlock, rateAfterBlock, startBlock } from './breaker/apply-block.ts';
import { Breaker } from './breaker/breaker.ts';
import type { RateDecrease } from './decrease.ts';
import { applyDecrease, recordAcceptance, recordLimitRejection, recordRejection, recordSendCost } from './decrease.ts';
import { advanceGrowth, isCalm } from './growth.ts';
import { type EndedSend, InFlightLimiter } from './in-flight-limiter.ts';
import { detectPlaces, discardPlaces, placeRate, timeToNextEnd } from './place-detection.ts';
import { continueEstimate, estimateFromOverrun } from './overrun-estimator.ts';
import { discountBackgroundShare } from './background-rejections.ts';
import type { FailedSend, RejectedSend } from './failed-send.ts';
import { RATE_RULES, type RateRules } from './rules.ts';
import type { RateSettings, RateState } from './rate-state.ts';
import { clamp, clampToSettings, makeRateState, resetToSettings, resetToUnlimited } from './rate-state.ts';
import { FeedbackFreshness } from './feedback-freshness.ts';
import type { RequestAttributes } from './breaker/request-attributes.ts';
import type { Millis, PerSecond, Random } from '../scalars.ts';

/** A longer step means that the process was suspended (a closed laptop, a paused container), not that the upstream was calm. */
const MAX_TIME_STEP: Millis = 1000;
/** While the limit is overrun, rejections in a row mean a blackout only if nothing was accepted for this long. */
const BLACKOUT_AFTER: Millis = 1000;

/**
 * The adaptive rate of one limit: probes for the limit, records where it was met, is cut there and grows back slowly.
 *
 *     open ─429─► backoff ─accepted─► cooldown ─hold over─► restoring ─long calm─► open
 *        any ─nothing gets through─► blocked ─probe accepted─► cooldown, or restoring
 *
 * Pure: each event carries its time. The result is a rate, by which the pacer spaces requests, or a number in flight. This class decides
 * when something changes; the rules compute by how much.
 */
export class AdaptiveRate {
  readonly settings: RateSettings;
  readonly #rules: RateRules;
  /** Written only here, by the rules, the breaker, late-knowledge.ts and place-detection.ts. */
  readonly state: RateState;
  /** Replaced only in unit-change.ts, as the breaker. */
  history = new SendHistories();
  breaker: Breaker;
  readonly inFlightLimiter: InFlightLimiter;
  #advancedAt = Number.NEGATIVE_INFINITY;
  #acceptedAt = Number.NEGATIVE_INFINITY;
  readonly #feedback = new FeedbackFreshness();

  constructor(settings: RateSettings, random: Random, rules: RateRules = RATE_RULES) {
    this.settings = settings;
    this.#rules = rules;
    this.state = makeRateState(settings);
    this.breaker = new Breaker(settings, random, rules.probeInterval);
    this.inFlightLimiter = new InFlightLimiter(rules);
  }

  get phase(): LimitState {
    return this.state.phase;
  }

  /** Infinity while open and unbounded. While blocked: the rate expected afterwards. */
  get rate(): PerSecond {
    return this.state.rate;
  }

  /** The rate that spaces requests outside a block. Under a concurrency limit, `rate` is only derived from that. */
  get pace(): PerSecond {
    const { pace } = this.inFlightLimiter;
    if (pace === undefined) return this.breaker.unblockedRate(this.state);
    return clamp(pace * this.state.meanCost, this.settings.minRate, this.settings.maxRate);
  }

  get ceiling(): PerSecond {
    return this.state.ceiling;
  }

  /** When growth resumes; undefined outside cooldown. */
  get cooldownUntil(): Millis | undefined {
    return this.state.phase === 'cooldown' ? this.state.growthPausedUntil : undefined;
  }

  /** Time until a request may be sent, pacing aside: 0 if now, also as a probe; Infinity if another request has to end first. */
  delay(now: Millis, attributes?: RequestAttributes): Millis {
    if (this.breaker.isHeldBack(attributes)) return this.breaker.probeDelay(now, attributes);
    return this.inFlightLimiter.isFull ? Number.POSITIVE_INFINITY : 0;
  }

  /** As `delay`, but with an estimate of when the other request ends. */
  expectedDelay(now: Millis, attributes?: RequestAttributes): Millis {
    if (this.breaker.isHeldBack(attributes)) return this.breaker.expectedBlockTime(now, attributes);
    return this.inFlightLimiter.isFull ? timeToNextEnd(this) : 0;
  }

  /** Admits a request whose `delay` is 0. Returns whether it is the probe of a block. */
  admit(now: Millis, attributes?: RequestAttributes): boolean {
    this.inFlightLimiter.reserve();
    if (this.breaker.isHeldBack(attributes)) return this.probe(now, attributes);
    if (this.breaker.isActive) this.onUnblockedSend(now);
    return false;
  }

  /** A request that another process admitted is the probe of the block. */
  probe(now: Millis, attributes?: RequestAttributes): boolean {
    this.breaker.onProbeSent(now, attributes);
    return this.breaker.isActive;
  }

  /** A request outside the block's scope is being sent. */
  onUnblockedSend(now: Millis): void {
    if (this.breaker.onUnblockedSend(this.state)) this.#advancedAt = now;
  }

  /** Returns how many requests are in flight, this one included. */
  onSent(now: Millis, cost = 1, expected = cost, isEstimate = false): number {
    this.history.onSent(now, recordSendCost(this.state, cost, expected, isEstimate));
    return this.inFlightLimiter.onSent(now);
  }

  /** A response that is no rejection and no sign of a broken upstream. Returns the cause if it limits the number in flight. */
  onAccepted(sentAt: Millis, inFlightAtSend: number, now: Millis, source?: RequestAttributes): CutCause | undefined {
    const state = this.state;
    recordAcceptance(state, sentAt, now);
    this.#acceptedAt = now;
    this.#feedback.onAccepted(state.growthElapsed);
    this.breaker.detector.onAccepted(sentAt, now, source);
    const isQueueFound = this.inFlightLimiter.onAccepted(inFlightAtSend, this.#ended(sentAt, now));
    const endedBlock = this.breaker.endIfProven(state, sentAt, now, source);
    if (endedBlock !== undefined && !endedBlock.isPartial) this.#unblock(endedBlock, sentAt, now);
    else if (state.phase === 'backoff' && sentAt >= state.decreasedAt) {
      state.phase = 'cooldown';
      state.risingSince = state.decreasedAt;
    }
    return isQueueFound ? 'latency' : undefined;
  }

  /** A rejection that counts against this limit. Returns the cause if the rate was cut or the limit blocked. */
  onRejected(rejection: RejectedSend, now: Millis): CutCause | undefined {
    const { sentAt, retryAfterMs, activeClients, overrun = false, attributes } = rejection;
    this.history.onRejected(sentAt, rejection.cost);
    this.inFlightLimiter.discountEnd();
    // A rejection within a partial block says nothing about the rate outside it.
    if (this.breaker.isInBlockedPart(attributes)) return this.breaker.onProbeFailed(rejection, now);
    const isPassedOver = this.breaker.detector.isPassedOver(attributes, now);
    const part = this.breaker.onRejected(this.state, rejection, now);
    if (part !== undefined) return startBlock(this, 'rejections', rejection, now, part);
    if (isPassedOver) return this.breaker.onProbeFailed(rejection, now);
    recordRejection(this.state, sentAt, now, rejection.cost);
    const isBackground = !this.inFlightLimiter.isLimited && this.#rules.isBackgroundRejection(this.state);
    if (!isBackground) recordLimitRejection(this.state, this.#rules, overrun ? undefined : retryAfterMs, now);
    const seconds = (retryAfterMs ?? 0) / 1000 / Math.max(1, activeClients);
    if (retryAfterMs !== undefined) this.#rules.recordRejectionCost(this.state, seconds);
    if (this.breaker.isHeldBack(attributes)) return this.breaker.onProbeFailed(rejection, now);
    if (this.state.phase === 'blocked') return this.breaker.widen(attributes);
    this.inFlightLimiter.onRejected(now);
    const cause =
      isBackground || this.#rules.isSameEpoch(this.state, sentAt) ? undefined : this.#decrease(rejection, now);
    // During an overrun rejections are frequent, so that some come in a row by chance.
    const isChance = overrun && now - this.#acceptedAt < BLACKOUT_AFTER;
    if (isChance || !this.#rules.isBlackout(this.state)) return cause;
    this.inFlightLimiter.discardLimit(); // else a request would pass whenever one ends
    return startBlock(this, 'rejections', rejection, now);
  }

  /** No response, or one of a broken upstream. Returns the cause if the limit is blocked now. */
  onFailed(failure: FailedSend, now: Millis): CutCause | undefined {
    const { sentAt, attributes, isAbandoned } = failure;
    if (failure.isTimedLater !== true) this.inFlightLimiter.onTimeout(this.#ended(sentAt, now, isAbandoned));
    if (isAbandoned === true) return undefined;
    if (this.breaker.isHeldBack(attributes)) return this.breaker.onProbeFailed(failure, now);
    const failed = this.breaker.onFailed(this.state, failure, now);
    return failed && startBlock(this, 'errors', failure, now, failed.part);
  }

  /**
   * Advances to `now`: ends the cooldown, grows the rate, or reopens a calm limit. @param queued whether requests wait for this limit
   * @param feedbackLag how late sends are reported; at most 200 ms, the slack in the recent send history
   */
  advance(now: Millis, queued: boolean, feedbackLag: Millis = 0): void {
    const state = this.state;
    if (state.phase !== 'blocked') state.rate = placeRate(this) ?? state.rate;
    clampToSettings(state, this.settings);
    this.breaker.blocks.removeUnused(now);
    this.inFlightLimiter.advance(now - feedbackLag);
    const since = state.phase === 'cooldown' ? Math.max(this.#advancedAt, state.growthPausedUntil) : this.#advancedAt;
    const elapsed = clamp(now - since, 0, MAX_TIME_STEP);
    this.#advancedAt = now;
    if (state.phase === 'cooldown' && now >= state.growthPausedUntil) state.phase = 'restoring';
    if (state.phase !== 'restoring') return;
    if (this.breaker.isReopenDue(now)) this.#reopen(0, now);
    else if (this.inFlightLimiter.isExceeded) discardPlaces(this, now);
    else if (this.inFlightLimiter.isLimited && queued) this.inFlightLimiter.grow(state, now);
    else if (
      !this.inFlightLimiter.isLimited &&
      !this.#rules.isApplicationLimited(state, this.history.recent, now - feedbackLag, queued)
    ) {
      if (this.#feedback.isExpired(elapsed)) resetToSettings(state, this.settings);
      else if (!this.#feedback.isStale(state)) advanceGrowth(state, this.settings, this.#rules, elapsed);
    } else if (this.settings.initialRate === undefined && isCalm(state, now)) {
      this.#reopen(this.inFlightLimiter.isLimited ? 0 : state.rate, now); // beside a number in flight, no rate is known
    }
  }

  /** Skips time without observations: the rate does not grow for it. */
  skipTime(now: Millis): void {
    this.#advancedAt = now;
  }

  #ended(sentAt: Millis, now: Millis, isAbandoned = false): EndedSend | undefined {
    if (this.settings.learnsFromLatency !== true) return undefined;
    return { latency: now - sentAt, at: now, isRejecting: !isCalm(this.state, now), isAbandoned };
  }

  #decrease({ sentAt, inFlightAtSend, overrun = false }: RejectedSend, now: Millis): CutCause | undefined {
    const state = this.state;
    this.breaker.cancelReopen();
    if (state.phase !== 'open' && overrun) {
      const measured = estimateFromOverrun(this.history.long, sentAt);
      return measured && continueEstimate(state, () => this.applyDecrease(measured, now), now);
    }
    if (!overrun && detectPlaces(this, inFlightAtSend, now)) return 'places';
    const cut =
      state.phase === 'open'
        ? this.#rules.computeFirstDecrease(state, this.history.recent, now)
        : this.#rules.computeLaterDecrease(state);
    this.applyDecrease(cut, now);
    return cut.cause;
  }

  /** Cuts the rate and plans its growth from there. */
  applyDecrease(cut: Pick<RateDecrease, 'rate' | 'ceiling'>, now: Millis): void {
    discountBackgroundShare(this.state);
    this.#feedback.onDecrease();
    applyDecrease(this.state, this.settings, cut, now);
    this.state.growthPeriod = this.#rules.planGrowthPeriod(this.state);
  }

  #reopen(rateBefore: PerSecond, now: Millis): void {
    this.inFlightLimiter.removeLimit();
    this.breaker.cancelReopen();
    resetToUnlimited(this.state, this.settings, rateBefore, now);
  }

  /** After rejections: to the rate that the blackout has shown. After errors: to half the rate before, and back in 3 s. */
  #unblock(block: ActiveBlock, sentAt: Millis, now: Millis): void {
    this.#advancedAt = now; // no growth for the time before
    this.applyDecrease(rateAfterBlock(this.state, this.#rules, this.history.long, block, sentAt), now);
    leaveBlock(this.state, block, now);
  }
}
