import type { LimitState } from '../../core/limits/limit-state.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { Meter } from '../../core/limits/meter.ts';
import type { QuotaOwner, Requester } from '../../core/quota/requester.ts';
import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';

/** The view of a meter on its limit, read from the meter in use: the leased one, or the fallback. */
export abstract class ReplicaMeterView {
  protected abstract get activeMeter(): Meter;

  get phase(): LimitState {
    return this.activeMeter.phase;
  }

  get ceiling(): PerSecond {
    return this.activeMeter.ceiling;
  }

  get concurrencyLimit(): number | undefined {
    return this.activeMeter.concurrencyLimit;
  }

  get latencyLimit(): Meter['latencyLimit'] {
    return this.activeMeter.latencyLimit;
  }

  get blockedUntil(): Millis | undefined {
    return this.activeMeter.blockedUntil;
  }

  get quotaLeft(): number | undefined {
    return this.activeMeter.quotaLeft;
  }

  get hasBlock(): boolean {
    return this.activeMeter.hasBlock === true;
  }

  get needsAttributes(): boolean {
    return this.activeMeter.needsAttributes === true;
  }

  block(now: Millis): BlockStatus | undefined {
    return this.activeMeter.block?.(now);
  }

  isHeldBack(now: Millis, source?: RequestAttributes): boolean {
    return this.activeMeter.isHeldBack?.(now, source) === true;
  }

  expectedDelay(now: Millis, source?: RequestAttributes): Millis {
    return this.activeMeter.expectedDelay(now, source);
  }

  awaitsPlace(now: Millis, source?: RequestAttributes): boolean {
    return this.activeMeter.awaitsPlace(now, source);
  }

  probeOverdueFor(now: Millis): Millis {
    return this.activeMeter.probeOverdueFor(now);
  }

  isQuotaInForce(now: Millis): boolean {
    return this.activeMeter.isQuotaInForce(now);
  }

  quotaAppliesTo(requester: Requester): boolean {
    return this.activeMeter.quotaAppliesTo(requester);
  }

  quotaOwner(now: Millis): QuotaOwner | undefined {
    return this.activeMeter.quotaOwner(now);
  }
}
