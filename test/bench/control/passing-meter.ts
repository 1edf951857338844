import type { CutCause, LimitState } from '../../../src/core/limits/limit-state.ts';
import type { Meter } from '../../../src/core/limits/meter.ts';
import type { FailedSend, RejectedSend } from '../../../src/core/rate/failed-send.ts';
import type { Millis, PerSecond } from '../../../src/core/scalars.ts';

/**
 * Admits every request at once, and counts requests in flight. It never blocks, so it has no probes; it has no leases and
 * ignores quotas. Other controllers extend it with their own rule.
 */
export class PassingMeter implements Meter {
  readonly phase: LimitState = 'restoring';
  readonly blockedUntil = undefined;
  readonly quotaLeft = undefined;
  readonly concurrencyLimit = undefined;
  readonly sendCount = 0;
  inFlight = 0;

  get ceiling(): PerSecond {
    return Number.POSITIVE_INFINITY;
  }

  rate(_now: Millis): PerSecond {
    return Number.POSITIVE_INFINITY;
  }

  delay(_now: Millis): Millis {
    return 0;
  }

  expectedDelay(now: Millis): Millis {
    return this.delay(now);
  }

  awaitsPlace(): boolean {
    return false;
  }

  take(_now: Millis, _due: Millis): boolean {
    return false;
  }

  onSent(_now: Millis): number {
    this.inFlight += 1;
    return this.inFlight;
  }

  onResponse(): void {}

  onEnded(): boolean {
    this.inFlight -= 1;
    return false;
  }

  release(): void {}

  onAccepted(_sentAt: Millis, _among: number, _now: Millis): undefined {}

  onRejected(_rejection: RejectedSend, _now: Millis): CutCause | undefined {
    return undefined;
  }

  onFailed(_failure: FailedSend, _now: Millis): CutCause | undefined {
    return undefined;
  }

  stop(_until: Millis): void {}
  advance(_now: Millis): void {}

  probeOverdueFor(): Millis {
    return 0;
  }

  abandonProbe(): void {}
  seedHistory(): void {}

  onQuota(): boolean {
    return true;
  }

  isQuotaInForce(): boolean {
    return false;
  }

  quotaAppliesTo(): boolean {
    return true;
  }

  quotaOwner(): undefined {}
  dropQuota(): void {}
  resumeQuota(): void {}
}
