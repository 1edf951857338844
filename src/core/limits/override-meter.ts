import type { CutCause, LimitState } from './limit-state.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { BlockStatus } from '../rate/breaker/active-block.ts';
import type { RequestAttributes } from '../rate/breaker/request-attributes.ts';
import type { FailedSend, RejectedSend, SettledCost } from '../rate/failed-send.ts';
import { Pacer } from '../rate/pacer.ts';
import { ForwardingMeter } from './forwarding-meter.ts';
import type { Meter } from './meter.ts';
import type { OperatorOverride } from './operator-override.ts';
import { NO_OVERRIDE } from './operator-override.ts';

/** The Retry-After of a request that is refused during an operator's block without a known end. */
const UNKNOWN_END_RETRY_AFTER: Millis = 30_000;

/**
 * A meter under an operator's override. While pinned, it spaces requests by the chosen rate; while blocked, it lets
 * nothing pass and sends no probes. The learned meter continues to learn: it shows the rate that would apply, and applies
 * it once the override ends. A limit keeps this meter after its first override; a token that was taken from one of the two
 * meters is released on the same one.
 */
export class OverrideMeter extends ForwardingMeter implements Meter {
  #pacer = new Pacer();
  #override: OperatorOverride = NO_OVERRIDE;
  /** Set until `advance` or `endExpiredBlock` finds that the block has expired. */
  #isBlockedByOperator = false;
  /** A stop that the upstream asked for. It holds whatever rate is pinned. */
  #upstreamStopUntil = Number.NEGATIVE_INFINITY;
  /** Tokens taken at the pinned rate and not released yet. */
  #reservedTokens = 0;

  setOverride(override: OperatorOverride, now: Millis): void {
    this.#override = override;
    this.#pacer.rewind(now);
    this.#isBlockedByOperator = override.blockedUntil !== Number.NEGATIVE_INFINITY;
  }

  get pinnedRate(): PerSecond | undefined {
    return this.#override.pinnedRate;
  }

  get isBlockedByOperator(): boolean {
    return this.#isBlockedByOperator;
  }

  /** While pinned, a learned block does not apply: requests pass. */
  get phase(): LimitState {
    if (this.#isBlockedByOperator) return 'blocked';
    const { phase } = this.learnedMeter;
    return phase === 'blocked' && this.pinnedRate !== undefined ? 'backoff' : phase;
  }

  get latencyLimit(): Meter['latencyLimit'] {
    return this.pinnedRate === undefined ? this.learnedMeter.latencyLimit : undefined;
  }

  get concurrencyLimit(): number | undefined {
    return this.pinnedRate === undefined ? this.learnedMeter.concurrencyLimit : undefined;
  }

  get blockedUntil(): Millis | undefined {
    if (this.#isBlockedByOperator) return finiteOrUndefined(this.#override.blockedUntil);
    return this.pinnedRate === undefined ? this.learnedMeter.blockedUntil : finiteOrUndefined(this.#upstreamStopUntil);
  }

  get cooldownUntil(): Millis | undefined {
    return this.pinnedRate === undefined ? this.learnedMeter.cooldownUntil : undefined;
  }

  get carriedUnits(): number {
    return this.pinnedRate === undefined ? (this.learnedMeter.carriedUnits ?? 0) : this.#pacer.carried;
  }

  rate(now: Millis): PerSecond {
    return this.pinnedRate ?? this.learnedMeter.rate(now);
  }

  returnRate(now: Millis, weight: number): PerSecond {
    return this.pinnedRate ?? this.learnedMeter.returnRate?.(now, weight) ?? this.learnedMeter.rate(now);
  }

  sharedRate(now: Millis): PerSecond {
    return this.pinnedRate ?? this.learnedRate(now);
  }

  /** The rate of the whole limit without the override. */
  learnedRate(now: Millis): PerSecond {
    return this.learnedMeter.sharedRate?.(now) ?? this.learnedMeter.rate(now);
  }

  /** While pinned or blocked by an operator, a learned block does not apply. */
  get hasBlock(): boolean {
    return !this.#isBlockedByOperator && this.pinnedRate === undefined && this.learnedMeter.hasBlock === true;
  }

  block(now: Millis, attributes?: RequestAttributes): BlockStatus | undefined {
    return this.hasBlock ? this.learnedMeter.block?.(now, attributes) : undefined;
  }

  isHeldBack(now: Millis, attributes?: RequestAttributes): boolean {
    if (this.#isBlockedByOperator) return true;
    return this.pinnedRate === undefined
      ? this.learnedMeter.isHeldBack?.(now, attributes) === true
      : this.#upstreamStopUntil > now;
  }

  delay(now: Millis, attributes?: RequestAttributes): Millis {
    if (this.#isBlockedByOperator) return Math.max(0, this.#override.blockedUntil - now);
    const { pinnedRate } = this;
    return pinnedRate === undefined ? this.learnedMeter.delay(now, attributes) : this.#pacedDelay(pinnedRate, now);
  }

  expectedDelay(now: Millis, attributes?: RequestAttributes): Millis {
    if (this.#isBlockedByOperator) return Math.max(0, this.#expectedBlockEnd(now));
    const { pinnedRate } = this;
    return pinnedRate === undefined
      ? this.learnedMeter.expectedDelay(now, attributes)
      : this.#pacedDelay(pinnedRate, now);
  }

  awaitsPlace(now: Millis, attributes?: RequestAttributes): boolean {
    if (this.#isBlockedByOperator || this.pinnedRate !== undefined) return false;
    return this.learnedMeter.awaitsPlace(now, attributes);
  }

  probeOverdueFor(now: Millis, attributes?: RequestAttributes): Millis {
    if (this.#isBlockedByOperator || this.pinnedRate !== undefined) return 0;
    return this.learnedMeter.probeOverdueFor(now, attributes);
  }

  take(now: Millis, due: Millis, attributes?: RequestAttributes, cost?: number): boolean {
    const { pinnedRate } = this;
    if (pinnedRate === undefined) return this.learnedMeter.take(now, due, attributes, cost);
    this.#reservedTokens += 1;
    this.#pacer.take(due, pinnedRate, cost);
    return false;
  }

  settle(settled: SettledCost, now: Millis): void {
    if (this.pinnedRate === undefined) this.learnedMeter.settle?.(settled, now);
    else this.#pacer.settle(settled, now, this.pinnedRate);
  }

  release(): void {
    if (this.#reservedTokens === 0) this.learnedMeter.release();
    else this.#reservedTokens -= 1;
  }

  abandonProbe(attributes?: RequestAttributes): void {
    this.learnedMeter.abandonProbe(attributes);
  }

  probeNow(now: Millis): void {
    this.#upstreamStopUntil = Number.NEGATIVE_INFINITY;
    this.learnedMeter.probeNow?.(now);
  }

  /** While pinned, no cut takes effect and none is reported. A rejection above the learned rate is no evidence against it. */
  override onRejected(rejection: RejectedSend, now: Millis): CutCause | undefined {
    const { pinnedRate } = this;
    if (pinnedRate === undefined) return this.learnedMeter.onRejected(rejection, now);
    const overrun = rejection.overrun === true || pinnedRate > this.learnedMeter.rate(now);
    this.learnedMeter.onRejected({ ...rejection, overrun }, now);
    return undefined;
  }

  override onFailed(failure: FailedSend, now: Millis): CutCause | undefined {
    const { pinnedRate } = this;
    if (pinnedRate === undefined) return this.learnedMeter.onFailed(failure, now);
    const overrun = failure.overrun === true || pinnedRate > this.learnedMeter.rate(now);
    this.learnedMeter.onFailed({ ...failure, overrun }, now);
    return undefined;
  }

  override stop(until: Millis): void {
    this.#upstreamStopUntil = Math.max(this.#upstreamStopUntil, until);
    this.learnedMeter.stop(until);
  }

  /** Requests that wait because of the override are no sign of demand above the learned rate. */
  override advance(now: Millis, queued: boolean, feedbackLag?: Millis): void {
    this.endExpiredBlock(now);
    const { unit } = this;
    this.learnedMeter.advance(now, queued && !this.isRestricting(now), feedbackLag);
    if (this.unit !== unit) this.#pacer = new Pacer();
  }

  endExpiredBlock(now: Millis): void {
    if (this.#override.blockedUntil <= now) this.#isBlockedByOperator = false;
  }

  /** Whether the override lets less pass than the learned rate. */
  isRestricting(now: Millis): boolean {
    return (
      this.#isBlockedByOperator || (this.pinnedRate !== undefined && this.pinnedRate < this.learnedMeter.rate(now))
    );
  }

  /** Paces the next request after a send whose token came from the learned meter. */
  recordSend(due: Millis): void {
    if (this.pinnedRate !== undefined) this.#pacer.take(due, this.pinnedRate);
  }

  #pacedDelay(rate: PerSecond, now: Millis): Millis {
    return Math.max(0, this.#upstreamStopUntil - now, this.#pacer.delay(now, rate));
  }

  #expectedBlockEnd(now: Millis): Millis {
    const { blockedUntil } = this.#override;
    return blockedUntil === Number.POSITIVE_INFINITY ? UNKNOWN_END_RETRY_AFTER : blockedUntil - now;
  }
}

function finiteOrUndefined(at: Millis): Millis | undefined {
  return Number.isFinite(at) ? at : undefined;
}
