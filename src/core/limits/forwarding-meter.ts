import type { CutCause } from './limit-state.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { Quota } from '../hints/hints.ts';
import type { QuotaOwner, Requester } from '../quota/requester.ts';
import type { BlockStatus } from '../rate/breaker/active-block.ts';
import type { RequestAttributes } from '../rate/breaker/request-attributes.ts';
import type { FailedSend, KnownCost, RejectedSend } from '../rate/failed-send.ts';
import type { Learner, Meter } from './meter.ts';

/**
 * Passes every observation to another meter, and has the state of that one. A subclass overrides what it handles differently, and adds
 * the pacing.
 */
export abstract class ForwardingMeter implements Learner {
  readonly learnedMeter: Meter;

  constructor(learnedMeter: Meter) {
    this.learnedMeter = learnedMeter;
  }

  onSent(now: Millis, cost?: number, expected?: number, isEstimate?: boolean): number {
    return this.learnedMeter.onSent(now, cost, expected, isEstimate);
  }

  onCostKnown(cost: KnownCost): void {
    this.learnedMeter.onCostKnown?.(cost);
  }

  onResponse(now: Millis): void {
    this.learnedMeter.onResponse(now);
  }

  onEnded(now: Millis): boolean {
    return this.learnedMeter.onEnded(now);
  }

  onAccepted(
    sentAt: Millis,
    inFlightAtSend: number,
    now: Millis,
    attributes?: RequestAttributes,
  ): CutCause | undefined {
    return this.learnedMeter.onAccepted(sentAt, inFlightAtSend, now, attributes);
  }

  onRejected(rejection: RejectedSend, now: Millis): CutCause | undefined {
    return this.learnedMeter.onRejected(rejection, now);
  }

  onFailed(failure: FailedSend, now: Millis): CutCause | undefined {
    return this.learnedMeter.onFailed(failure, now);
  }

  onUnattributedRejection(attributes: RequestAttributes, now: Millis): void {
    this.learnedMeter.onUnattributedRejection?.(attributes, now);
  }

  onQuota(quota: Quota, sentAt: Millis, now: Millis, requester?: Requester): boolean {
    return this.learnedMeter.onQuota(quota, sentAt, now, requester);
  }

  dropQuota(isPerRequester: boolean, now: Millis): void {
    this.learnedMeter.dropQuota(isPerRequester, now);
  }

  stop(until: Millis): void {
    this.learnedMeter.stop(until);
  }

  seedHistory(accepted: PerSecond, now: Millis): void {
    this.learnedMeter.seedHistory(accepted, now);
  }

  resumeQuota(owner: QuotaOwner, now: Millis): void {
    this.learnedMeter.resumeQuota(owner, now);
  }

  resumeBlock(block: BlockStatus, now: Millis): void {
    this.learnedMeter.resumeBlock?.(block, now);
  }

  advance(now: Millis, queued: boolean, feedbackLag?: Millis): void {
    this.learnedMeter.advance(now, queued, feedbackLag);
  }

  get ceiling(): PerSecond {
    return this.learnedMeter.ceiling;
  }

  get unit(): string | undefined {
    return this.learnedMeter.unit;
  }

  get quotaLeft(): number | undefined {
    return this.learnedMeter.quotaLeft;
  }

  get meanCost(): number {
    return this.learnedMeter.meanCost ?? 1;
  }

  get sendCount(): number {
    return this.learnedMeter.sendCount;
  }

  get inFlight(): number {
    return this.learnedMeter.inFlight;
  }

  get needsAttributes(): boolean {
    return this.learnedMeter.needsAttributes === true;
  }

  isQuotaInForce(now: Millis): boolean {
    return this.learnedMeter.isQuotaInForce(now);
  }

  quotaAppliesTo(requester: Requester): boolean {
    return this.learnedMeter.quotaAppliesTo(requester);
  }

  quotaOwner(now: Millis): QuotaOwner | undefined {
    return this.learnedMeter.quotaOwner(now);
  }
}
