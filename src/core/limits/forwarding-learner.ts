import type { CutCause } from './limit-state.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { Quota } from '../hints/hints.ts';
import type { QuotaOwner, Requester } from '../quota/requester.ts';
import type { BlockStatus } from '../rate/breaker/active-block.ts';
import type { RequestAttributes } from '../rate/breaker/request-attributes.ts';
import type { FailedSend, RejectedSend } from '../rate/failed-send.ts';
import type { Learner } from './meter.ts';

/** Passes every observation to another learner. A subclass overrides those that it handles differently. */
export class ForwardingLearner<L extends Learner> implements Learner {
  readonly learnedMeter: L;

  constructor(learnedMeter: L) {
    this.learnedMeter = learnedMeter;
  }

  onSent(now: Millis, cost?: number, isEstimate?: boolean): number {
    return this.learnedMeter.onSent(now, cost, isEstimate);
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
}
