import type { CutCause } from '../../core/limits/limit-state.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { Quota } from '../../core/hints/hints.ts';
import type { Meter } from '../../core/limits/meter.ts';
import type { QuotaOwner, Requester } from '../../core/quota/requester.ts';
import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';
import type { FailedSend, RejectedSend } from '../../core/rate/failed-send.ts';
import type { LeasedMeter } from '../protocol/leased-meter.ts';
import type { FallbackLimiter } from './fallback-limiter.ts';
import { ReplicaMeterView } from './replica-meter-view.ts';

/** Passes outcomes to the leased meter, which reports them, and to the fallback limiter while there is one. */
export abstract class ReplicaLearner extends ReplicaMeterView {
  protected readonly leased: LeasedMeter;

  constructor(leased: LeasedMeter) {
    super();
    this.leased = leased;
  }

  /** See `LeasedMeter.onSettingsChanged`. */
  onSettingsChanged(): void {
    this.leased.onSettingsChanged();
  }

  /** Undefined while the backend answers. */
  protected abstract get fallback(): FallbackLimiter | undefined;

  protected override get activeMeter(): Meter {
    return this.fallback?.meter ?? this.leased;
  }

  get inFlight(): number {
    return this.leased.inFlight;
  }

  onResponse(now: Millis): void {
    this.leased.onResponse(now);
    this.fallback?.meter.onResponse();
  }

  onEnded(now: Millis): boolean {
    this.leased.onEnded(now);
    return this.fallback?.meter.onEnded(now) ?? false;
  }

  onAccepted(sentAt: Millis, inFlightAtSend: number, now: Millis, source?: RequestAttributes): CutCause | undefined {
    this.leased.onAccepted(sentAt, inFlightAtSend, now, source);
    return this.fallback?.onAccepted(sentAt, inFlightAtSend, now, source);
  }

  /** Returns undefined while the backend answers: it decides whether this decreases the rate. */
  onRejected(rejection: RejectedSend, now: Millis): CutCause | undefined {
    this.leased.onRejected(rejection, now);
    return this.fallback?.onRejected(rejection, now);
  }

  onFailed(failure: FailedSend, now: Millis): CutCause | undefined {
    this.leased.onFailed(failure, now);
    return this.fallback?.meter.onFailed(failure, now);
  }

  onQuota(quota: Quota, sentAt: Millis, now: Millis, requester?: Requester): boolean {
    const isOfAll = this.leased.onQuota(quota, sentAt, now, requester);
    return this.fallback?.meter.onQuota(quota, sentAt, now, requester) ?? isOfAll;
  }

  dropQuota(isPerRequester: boolean, now: Millis): void {
    this.leased.dropQuota(isPerRequester, now);
    this.fallback?.meter.dropQuota(isPerRequester, now);
  }

  resumeQuota(owner: QuotaOwner, now: Millis): void {
    this.leased.resumeQuota(owner, now);
    this.fallback?.meter.resumeQuota(owner, now);
  }

  stop(until: Millis): void {
    this.leased.stop(until);
    this.fallback?.meter.stop(until);
  }

  resumeBlock(block: BlockStatus, now: Millis): void {
    this.leased.resumeBlock(block, now);
    this.fallback?.meter.resumeBlock(block, now);
  }

  seedHistory(accepted: PerSecond, now: Millis): void {
    this.leased.seedHistory(accepted, now);
    this.fallback?.meter.seedHistory(accepted, now);
  }

  abandonProbe(): void {
    this.activeMeter.abandonProbe();
  }

  advance(now: Millis, queued: boolean): void {
    this.fallback?.meter.advance(now, queued);
  }
}
