import type { CutCause, LimitState } from '../../../src/core/events/proxy-events.ts';
import type { Meter } from '../../../src/core/limits/meter.ts';
import type { Failure, Rejection } from '../../../src/core/rate/failed-send.ts';
import type { Millis, PerSecond } from '../../../src/core/exchange/attempt-outcome.ts';

/**
 * Lets everything pass at once, and counts what is in flight. It never blocks, so it has no probes; it leases nothing,
 * and hears of no quota. Other controllers are this one with a rule of their own.
 */
export class PassingMeter implements Meter {
  readonly phase: LimitState = 'restoring';
  readonly blockedUntil = undefined;
  readonly quotaLeft = undefined;
  readonly places = undefined;
  readonly sends = 0;
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

  expected(now: Millis): Millis {
    return this.delay(now);
  }

  take(_now: Millis, _due: Millis): boolean {
    return false;
  }

  sent(_now: Millis): number {
    this.inFlight += 1;
    return this.inFlight;
  }

  ended(): boolean {
    this.inFlight -= 1;
    return false;
  }

  giveBack(): void {}

  accepted(_sentAt: Millis, _among: number, _now: Millis): void {}

  rejected(_rejection: Rejection, _now: Millis): CutCause | undefined {
    return undefined;
  }

  failed(_failure: Failure, _now: Millis): CutCause | undefined {
    return undefined;
  }

  stop(_until: Millis): void {}
  advance(_now: Millis): void {}

  overdue(): Millis {
    return 0;
  }

  abandonProbe(): void {}
  remember(): void {}

  noteQuota(): boolean {
    return true;
  }

  isQuotaInForce(): boolean {
    return false;
  }

  isQuotaOf(): boolean {
    return true;
  }

  quotaOwner(): undefined {}
  disownQuota(): void {}
  resumeQuota(): void {}
}
