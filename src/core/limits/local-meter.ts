import type { CutCause, LimitState } from './limit-state.ts';
import type { Meter } from './meter.ts';
import { Pacer } from '../rate/pacer.ts';
import { QuotaPacing } from '../quota/quota-pacing.ts';
import type { BlockStatus } from '../rate/breaker/active-block.ts';
import type { FailedSend, LateLatency, RejectedSend } from '../rate/failed-send.ts';
import { AdaptiveRate } from '../rate/adaptive-rate.ts';
import { learnAcceptedBefore, learnInFlightAtSend, learnLatency, resumeRate } from '../rate/late-knowledge.ts';
import type { QuotaOwner, Requester } from '../quota/requester.ts';
import type { RateRules } from '../rate/rules.ts';
import type { RateSettings } from '../rate/rate-state.ts';
import type { RequestAttributes } from '../rate/breaker/request-attributes.ts';
import type { Millis, PerSecond, Random } from '../scalars.ts';
import type { Quota } from '../hints/hints.ts';

/** The meter of a limit that this process keeps: the adaptive rate, bounded by the reported quota, spaced by the pacer. */
export class LocalMeter implements Meter {
  readonly #rate: AdaptiveRate;
  readonly #pacer = new Pacer();
  readonly #quota = new QuotaPacing();
  #sendCount = 0;

  constructor(settings: RateSettings, random: Random, rules?: RateRules) {
    this.#rate = new AdaptiveRate(settings, random, rules);
  }

  get phase(): LimitState {
    return this.#rate.phase;
  }

  get ceiling(): PerSecond {
    return this.#rate.ceiling;
  }

  get concurrencyLimit(): number | undefined {
    const { limit } = this.#rate.inFlightLimiter;
    return Number.isFinite(limit) ? limit : undefined;
  }

  get latencyLimit(): Meter['latencyLimit'] {
    return this.#rate.inFlightLimiter.latencyLimit;
  }

  get countsResponses(): boolean {
    return this.#rate.settings.learnsFromLatency === true;
  }

  get blockedUntil(): Millis | undefined {
    const until = Math.max(this.#rate.breaker.probeAt ?? Number.NEGATIVE_INFINITY, this.#quota.stopUntil);
    return until === Number.NEGATIVE_INFINITY ? undefined : until;
  }

  get quotaLeft(): number | undefined {
    return this.#quota.left;
  }

  get cooldownUntil(): Millis | undefined {
    return this.#rate.cooldownUntil;
  }

  rate(now: Millis): PerSecond {
    return Math.min(this.#rate.rate, this.#quota.rate(now), this.#rate.inFlightLimiter.throughput);
  }

  get hasBlock(): boolean {
    return this.#rate.breaker.isActive;
  }

  get needsAttributes(): boolean {
    return this.#rate.breaker.detector.needsAttributes;
  }

  block(now: Millis, attributes?: RequestAttributes): BlockStatus | undefined {
    return this.#rate.breaker.status(now, attributes);
  }

  isHeldBack(now: Millis, attributes?: RequestAttributes): boolean {
    return this.#rate.breaker.isHeldBack(attributes) || this.#quota.delay(now) > 0;
  }

  delay(now: Millis, attributes?: RequestAttributes): Millis {
    return this.#delayAfterStops(this.#rate.delay(now, attributes), now, attributes);
  }

  probeOverdueFor(now: Millis, attributes?: RequestAttributes): Millis {
    return this.#rate.breaker.probeOverdueFor(now, attributes);
  }

  expectedDelay(now: Millis, attributes?: RequestAttributes): Millis {
    return this.#delayAfterStops(this.#rate.expectedDelay(now, attributes), now, attributes);
  }

  awaitsPlace(now: Millis, attributes?: RequestAttributes): boolean {
    if (!this.#rate.inFlightLimiter.isFull || this.#rate.breaker.isHeldBack(attributes)) return false;
    return this.#delayAfterStops(0, now, attributes) <= 0;
  }

  take(now: Millis, due: Millis, attributes?: RequestAttributes): boolean {
    const isProbe = this.#rate.admit(now, attributes);
    this.#pacer.take(due, Math.min(this.#rate.pace, this.#quota.rate(now)));
    return isProbe;
  }

  probe(now: Millis): void {
    this.#rate.probe(now);
  }

  onUnblockedSend(now: Millis): void {
    this.#rate.onUnblockedSend(now);
  }

  release(): void {
    this.#rate.inFlightLimiter.releaseReservation();
  }

  abandonProbe(attributes?: RequestAttributes): void {
    this.#rate.breaker.abandonProbe(attributes);
  }

  seedHistory(accepted: PerSecond, now: Millis): void {
    this.#rate.history.preload(now, accepted);
  }

  get sendCount(): number {
    return this.#sendCount;
  }

  get inFlight(): number {
    return this.#rate.inFlightLimiter.count;
  }

  onSent(now: Millis): number {
    this.#sendCount += 1;
    return this.#rate.onSent(now);
  }

  onResponse(): void {
    this.#rate.inFlightLimiter.onResponse();
  }

  onEnded(now: Millis): boolean {
    return this.#rate.inFlightLimiter.onEnded(now);
  }

  onAccepted(sentAt: Millis, inFlightAtSend: number, now: Millis, source?: RequestAttributes): CutCause | undefined {
    return this.#rate.onAccepted(sentAt, inFlightAtSend, now, source);
  }

  onRejected(rejection: RejectedSend, now: Millis): CutCause | undefined {
    return this.#rate.onRejected(rejection, now);
  }

  onUnattributedRejection(attributes: RequestAttributes, now: Millis): void {
    this.#rate.breaker.detector.onUnattributedRejection(attributes, now);
  }

  onFailed(failure: FailedSend, now: Millis): CutCause | undefined {
    return this.#rate.onFailed(failure, now);
  }

  onQuota(quota: Quota, sentAt: Millis, now: Millis, requester?: Requester): boolean {
    return this.#quota.onQuota(quota, sentAt, now, requester);
  }

  isQuotaInForce(now: Millis): boolean {
    return this.#quota.isInForce(now);
  }

  quotaAppliesTo(requester: Requester): boolean {
    return this.#quota.appliesTo(requester);
  }

  quotaOwner(now: Millis): QuotaOwner | undefined {
    return this.#quota.owner(now);
  }

  dropQuota(isPerRequester: boolean, now: Millis): void {
    this.#quota.drop(isPerRequester, now);
  }

  isQuotaPerRequester(now: Millis): boolean {
    return this.#quota.isPerRequester(now);
  }

  resumeQuota(owner: QuotaOwner, now: Millis): void {
    this.#quota.resume(owner, now);
  }

  stop(until: Millis): void {
    this.#quota.stop(until);
  }

  resumeBlock(block: BlockStatus, now: Millis): void {
    this.#rate.breaker.resume(this.#rate.state, block, now);
  }

  probeNow(now: Millis): void {
    this.#quota.clearStops();
    this.#rate.breaker.blocks.makeProbesDue(now);
  }

  advance(now: Millis, queued: boolean, feedbackLag?: Millis): void {
    this.#rate.advance(now, queued, feedbackLag);
  }

  skipTime(now: Millis): void {
    this.#rate.skipTime(now);
  }

  /** Continues at a known rate, > 0 and finite, without its history. @param concurrencyLimit see `resumeRate` */
  resume(rate: PerSecond, ceiling: PerSecond, now: Millis, concurrencyLimit?: number): void {
    resumeRate(this.#rate, { rate, ceiling }, now, concurrencyLimit);
  }

  reviseFirstDecrease(): void {
    learnAcceptedBefore(this.#rate);
  }

  learnInFlightAtSend(inFlightAtSend: number, isRejected: boolean, now: Millis): boolean {
    return learnInFlightAtSend(this.#rate, inFlightAtSend, isRejected, now);
  }

  learnLatency(ended: LateLatency): boolean {
    return learnLatency(this.#rate, ended);
  }

  get unanswered(): number {
    return this.#rate.inFlightLimiter.unanswered;
  }

  adjustInFlight(by: number, unanswered: number): void {
    this.#rate.inFlightLimiter.adjustCount(by, unanswered);
  }

  get lastToken(): Millis {
    return this.#pacer.last;
  }

  rewind(now: Millis): void {
    this.#pacer.rewind(now);
  }

  #delayAfterStops(blocked: Millis, now: Millis, attributes: RequestAttributes | undefined): Millis {
    const stopDelay = Math.max(this.#quota.delay(now), blocked);
    // A probe, the only request in flight, is not paced. Pacing by a quota ends at its reset, even within an interval.
    if (this.#rate.breaker.isHeldBack(attributes)) return stopDelay;
    const quotaDelay = Math.min(this.#pacer.delay(now, this.#quota.rate(now)), this.#quota.knownFor(now));
    return Math.max(stopDelay, quotaDelay, this.#pacer.delay(now, this.#rate.pace));
  }
}
