import type { CutCause, LimitState } from './limit-state.ts';
import type { Meter } from './meter.ts';
import { Pacer } from '../rate/pacer.ts';
import { QuotaPacing } from '../quota/quota-pacing.ts';
import type { BlockStatus } from '../rate/breaker/active-block.ts';
import type { FailedSend, KnownCost, RejectedSend, SettledCost } from '../rate/failed-send.ts';
import { AdaptiveRate } from '../rate/adaptive-rate.ts';
import { learnCost, resumeRate } from '../rate/late-knowledge.ts';
import type { QuotaOwner, Requester } from '../quota/requester.ts';
import type { RateRules } from '../rate/rules.ts';
import type { RateSettings } from '../rate/rate-state.ts';
import { adoptUnit } from '../rate/unit-change.ts';
import type { RequestAttributes } from '../rate/breaker/request-attributes.ts';
import type { Millis, PerSecond, Random } from '../scalars.ts';
import type { Quota } from '../hints/hints.ts';

/** The meter of a limit that this process keeps: the adaptive rate, bounded by the reported quota, spaced by the pacer. */
export class LocalMeter implements Meter {
  readonly adaptiveRate: AdaptiveRate;
  #pacer = new Pacer();
  readonly #quota = new QuotaPacing();
  sendCount = 0;
  sentUnits = 0;

  constructor(settings: RateSettings, random: Random, rules?: RateRules) {
    this.adaptiveRate = new AdaptiveRate(settings, random, rules);
  }

  get phase(): LimitState {
    return this.adaptiveRate.phase;
  }

  get ceiling(): PerSecond {
    return this.adaptiveRate.ceiling;
  }

  get concurrencyLimit(): number | undefined {
    const { limit } = this.adaptiveRate.inFlightLimiter;
    return Number.isFinite(limit) ? limit : undefined;
  }

  get latencyLimit(): Meter['latencyLimit'] {
    return this.adaptiveRate.inFlightLimiter.latencyLimit;
  }

  get countsResponses(): boolean {
    return this.adaptiveRate.settings.learnsFromLatency === true;
  }

  get blockedUntil(): Millis | undefined {
    const until = Math.max(this.adaptiveRate.breaker.probeAt ?? Number.NEGATIVE_INFINITY, this.#quota.stopUntil);
    return until === Number.NEGATIVE_INFINITY ? undefined : until;
  }

  get quotaLeft(): number | undefined {
    return this.#quota.left;
  }

  get unit(): string | undefined {
    return this.adaptiveRate.state.unit;
  }

  get meanCost(): number {
    return this.adaptiveRate.state.meanCost;
  }

  get carriedUnits(): number {
    return this.#pacer.carried;
  }

  get cooldownUntil(): Millis | undefined {
    return this.adaptiveRate.cooldownUntil;
  }

  rate(now: Millis): PerSecond {
    const { rate, inFlightLimiter } = this.adaptiveRate;
    return Math.min(rate, this.#quota.rate(now), inFlightLimiter.throughput * this.meanCost);
  }

  get hasBlock(): boolean {
    return this.adaptiveRate.breaker.isActive;
  }

  get needsAttributes(): boolean {
    return this.adaptiveRate.breaker.detector.needsAttributes;
  }

  block(now: Millis, attributes?: RequestAttributes): BlockStatus | undefined {
    return this.adaptiveRate.breaker.status(now, attributes);
  }

  isHeldBack(now: Millis, attributes?: RequestAttributes): boolean {
    return this.adaptiveRate.breaker.isHeldBack(attributes) || this.#quota.delay(now) > 0;
  }

  delay(now: Millis, attributes?: RequestAttributes): Millis {
    return this.#delayAfterStops(this.adaptiveRate.delay(now, attributes), now, attributes);
  }

  probeOverdueFor(now: Millis, attributes?: RequestAttributes): Millis {
    return this.adaptiveRate.breaker.probeOverdueFor(now, attributes);
  }

  expectedDelay(now: Millis, attributes?: RequestAttributes): Millis {
    return this.#delayAfterStops(this.adaptiveRate.expectedDelay(now, attributes), now, attributes);
  }

  awaitsPlace(now: Millis, attributes?: RequestAttributes): boolean {
    if (!this.adaptiveRate.inFlightLimiter.isFull || this.adaptiveRate.breaker.isHeldBack(attributes)) return false;
    return this.#delayAfterStops(0, now, attributes) <= 0;
  }

  take(now: Millis, due: Millis, attributes?: RequestAttributes, cost?: number): boolean {
    const isProbe = this.adaptiveRate.admit(now, attributes);
    this.#pacer.take(due, this.#paceAt(now), cost);
    return isProbe;
  }

  settle(settled: SettledCost, now: Millis): void {
    this.#pacer.settle(settled, now, this.#paceAt(now));
  }

  onCostKnown(cost: KnownCost): void {
    learnCost(this.adaptiveRate, cost);
  }

  release(): void {
    this.adaptiveRate.inFlightLimiter.releaseReservation();
  }

  abandonProbe(attributes?: RequestAttributes): void {
    this.adaptiveRate.breaker.abandonProbe(attributes);
  }

  seedHistory(accepted: PerSecond, now: Millis): void {
    this.adaptiveRate.history.preload(now, accepted);
  }

  get inFlight(): number {
    return this.adaptiveRate.inFlightLimiter.count;
  }

  onSent(now: Millis, cost = 1, expected = cost, isEstimate = false): number {
    this.sendCount += 1;
    this.sentUnits += cost;
    return this.adaptiveRate.onSent(now, cost, expected, isEstimate);
  }

  onResponse(): void {
    this.adaptiveRate.inFlightLimiter.onResponse();
  }

  onEnded(now: Millis): boolean {
    return this.adaptiveRate.inFlightLimiter.onEnded(now);
  }

  onAccepted(sentAt: Millis, inFlightAtSend: number, now: Millis, source?: RequestAttributes): CutCause | undefined {
    return this.adaptiveRate.onAccepted(sentAt, inFlightAtSend, now, source);
  }

  onRejected(rejection: RejectedSend, now: Millis): CutCause | undefined {
    return this.adaptiveRate.onRejected(rejection, now);
  }

  onUnattributedRejection(attributes: RequestAttributes, now: Millis): void {
    this.adaptiveRate.breaker.detector.onUnattributedRejection(attributes, now);
  }

  onFailed(failure: FailedSend, now: Millis): CutCause | undefined {
    return this.adaptiveRate.onFailed(failure, now);
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
    this.adaptiveRate.breaker.resume(this.adaptiveRate.state, block, now);
  }

  probeNow(now: Millis): void {
    this.#quota.clearStops();
    this.adaptiveRate.breaker.blocks.makeProbesDue(now);
  }

  advance(now: Millis, queued: boolean, feedbackLag?: Millis): void {
    if (adoptUnit(this.adaptiveRate)) this.#pacer = new Pacer();
    this.adaptiveRate.advance(now, queued, feedbackLag);
  }

  /** Continues at a known rate, > 0 and finite, without its history. @param concurrencyLimit see `resumeRate` */
  resume(rate: PerSecond, ceiling: PerSecond, now: Millis, concurrencyLimit?: number): void {
    resumeRate(this.adaptiveRate, { rate, ceiling }, now, concurrencyLimit);
  }

  get unanswered(): number {
    return this.adaptiveRate.inFlightLimiter.unanswered;
  }

  get lastToken(): Millis {
    return this.#pacer.last;
  }

  rewind(now: Millis): void {
    this.#pacer.rewind(now);
  }

  #paceAt(now: Millis): PerSecond {
    return Math.min(this.adaptiveRate.pace, this.#quota.rate(now));
  }

  #delayAfterStops(blocked: Millis, now: Millis, attributes: RequestAttributes | undefined): Millis {
    const stopDelay = Math.max(this.#quota.delay(now), blocked);
    // A probe, the only request in flight, is not paced. Pacing by a quota ends at its reset, even within an interval.
    if (this.adaptiveRate.breaker.isHeldBack(attributes)) return stopDelay;
    const quotaDelay = Math.min(this.#pacer.delay(now, this.#quota.rate(now)), this.#quota.knownFor(now));
    return Math.max(stopDelay, quotaDelay, this.#pacer.delay(now, this.adaptiveRate.pace));
  }
}
