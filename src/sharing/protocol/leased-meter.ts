import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { Meter } from '../../core/limits/meter.ts';
import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import { clientHeldUntilIn, isBlockedBy, MAX_PROBE_TIMEOUT } from '../../core/rate/breaker/active-block.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';
import { LeasedTokens } from './leased-tokens.ts';
import type { LimitTerms } from './limit-terms.ts';
import { expectedDelayUnder } from './limit-terms.ts';
import type { ReportUrgency } from './usage-recorder.ts';
import { UsageRecorder } from './usage-recorder.ts';

/** The failure of a probe that has just left may be known this soon. */
const PROBE_RECHECK: Millis = 1000;

/** A quarter of the longest delay of a probe. */
const MAX_PROBE_DEFERRAL: Millis = 1250;

/** Below this rate, a token is worth so much waiting time that an unused one is returned at once. */
const RETURN_AT_ONCE_BELOW: PerSecond = 50;

/** How often the weight of clients that are to return is reported if it does not change. */
const WEIGHT_REPORTED_EVERY: Millis = 2000;

/** The demand at one limit: see `TokenDemand`. */
interface LeasedDemand {
  readonly want: number;
  readonly received: number;
  readonly weight: number;
}

/**
 * The meter of a limit whose authoritative copy is on a server: the primary, or a backend such as Redis. It admits
 * requests with the tokens leased to this process, reads its state from the terms received last, and records usage for
 * the server.
 */
export class LeasedMeter extends UsageRecorder implements Meter {
  /** The limit of this meter, once it has been made: its queue determines how many tokens are requested. */
  limit: Limit | undefined;
  readonly #requestReport: (meter: LeasedMeter, urgency: ReportUrgency) => void;
  readonly #tokens = new LeasedTokens();
  /** The epoch in which the server was last informed of a request that the block does not concern. */
  #bypassReportedEpoch = Number.NEGATIVE_INFINITY;
  /** The weight of the groups that wait or are to return, as reported last. */
  #reportedWeight = 0;
  #weightReportedAt = Number.NEGATIVE_INFINITY;
  /** How long tokens of the next probe were in hand here and not used, because all who could send it gave way. */
  #gaveWayFor: Millis = 0;

  /** @param requestReport called whenever there is something to report */
  constructor(terms: LimitTerms, requestReport: (meter: LeasedMeter, urgency: ReportUrgency) => void) {
    super(terms);
    this.#requestReport = requestReport;
  }

  protected get isOfSeveralClients(): boolean {
    return this.limit?.ref.scope !== 'client';
  }

  protected requestReport(urgency: ReportUrgency): void {
    this.#requestReport(this, urgency);
  }

  /** This process's part of the rate, by the weights of the members where requests wait. */
  rate(now: Millis): PerSecond {
    // Without clients, it is the rate of a first request, of weight 1.
    return partOf(this.terms.rate, this.limit?.demandWeight(now) || 1, this.terms.otherWeight);
  }

  /** As `rate`, by the weights of all members: clients that are to return keep their share while none of their requests waits. */
  returnRate(now: Millis, weight: number): PerSecond {
    return partOf(this.terms.rate, Math.max(weight, this.limit?.demandWeight(now) ?? 0), this.terms.otherDemandWeight);
  }

  delay(now: Millis, source?: RequestAttributes): Millis {
    const { block } = this.terms;
    if (block === undefined) return this.#tokenDelay(now);
    const heldFor = clientHeldUntilIn(block, source) - now;
    if (!isBlockedBy(block, source)) {
      if (block.isPartial) return this.#tokenDelay(now);
      this.#reportBypass(now); // the token in hand is for the probe
      return Number.POSITIVE_INFINITY;
    }
    if (heldFor > 0) return heldFor;
    const token = this.#tokenDelay(now);
    if (block.isPartial) return Math.max(block.probeAt - now, token);
    return source !== undefined && this.#givesWay(source, block) ? Math.max(token, this.#deferral(block, now)) : token;
  }

  expectedDelay(now: Millis, source?: RequestAttributes): Millis {
    const { isUnlimited, expectedAt } = this.terms;
    const token = isUnlimited ? 0 : Math.max(0, (this.#tokens.first ?? expectedAt) - now);
    return expectedDelayUnder(this.terms, token, now, source);
  }

  awaitsPlace(now: Millis, source?: RequestAttributes): boolean {
    return this.terms.awaitsPlace && this.#tokens.inHand === 0 && !this.isHeldBack(now, source);
  }

  take(now: Millis, _due?: Millis, source?: RequestAttributes): boolean {
    const { block } = this.terms;
    const isPartialProbe = block?.isPartial === true && isBlockedBy(block, source);
    if (isPartialProbe) this.#startPartialProbe(block, now);
    if (!this.#tokens.take(this.terms.isUnlimited) || this.terms.phase !== 'blocked') return isPartialProbe;
    this.#gaveWayFor = 0;
    this.terms = { ...this.terms, isProbeOut: true };
    return true;
  }

  release(): void {
    if (!this.#tokens.release()) return;
    this.usageLog.tokenReturned();
    this.requestReport('soon');
  }

  /** Settings have changed. The server may have scheduled the next report by the former ones, for the requests that wait. */
  onSettingsChanged(): void {
    if (this.limit?.isAwaited === true) this.requestReport('now');
  }

  /** Does nothing: the server advances its limits. */
  advance(): void {}

  get tokens(): number | undefined {
    return this.terms.isUnlimited ? undefined : this.#tokens.inHand;
  }

  /** Tokens in hand. */
  get inHand(): number {
    return this.#tokens.inHand;
  }

  /** The time of the last token in hand; undefined if there is none. */
  get lastSlot(): Millis | undefined {
    return this.#tokens.last;
  }

  /** Leased tokens that are neither spent nor returned. */
  get outstanding(): number {
    return this.#tokens.outstanding;
  }

  /**
   * The demand to report; undefined if the server already knows it.
   * @param tokensNeeded requests that could go if they had a token
   * @param isDue it is reported even if the server knows it
   */
  takeDemandChange(tokensNeeded: number, now: Millis, isDue = false): LeasedDemand | undefined {
    const { requested, received } = this.#tokens;
    const want = this.updateWanted(tokensNeeded);
    if (want === requested && !isDue && !this.hasWeightChanged(now)) return undefined;
    const weight = this.limit?.demandWeight(now) ?? 0;
    this.#reportedWeight = weight;
    this.#weightReportedAt = now;
    return { want, received, weight };
  }

  /** Whether the weight of the clients here is to be reported: it has changed by a tenth, or the last report is too old. */
  hasWeightChanged(now: Millis): boolean {
    const weight = this.limit?.demandWeight(now) ?? 0;
    const isOld = weight > 0 && now - this.#weightReportedAt >= WEIGHT_REPORTED_EVERY;
    return isOld || Math.abs(weight - this.#reportedWeight) > 0.1 * this.#reportedWeight;
  }

  /** Sets and returns the tokens to request beyond those in hand. @param tokensNeeded see `takeDemandChange` */
  updateWanted(tokensNeeded: number): number {
    this.#tokens.requested = this.terms.isUnlimited ? 0 : Math.max(0, tokensNeeded - this.#tokens.inHand);
    return this.#tokens.requested;
  }

  /** Takes over new terms and tokens. Tokens of an earlier epoch are returned. */
  applyUpdate({ terms, slots }: { readonly terms: LimitTerms; readonly slots: readonly Millis[] }): void {
    this.#tokens.countReceived(slots.length);
    if (terms.epoch < this.terms.epoch) return this.#returnTokens(slots);
    if (terms.epoch > this.terms.epoch) this.usageLog.epochSeen(terms.epoch);
    if (terms.epoch > this.terms.epoch || terms.isUnlimited) this.#returnTokens(this.#tokens.dropBeyond(0));
    if (terms.block?.since !== this.terms.block?.since) this.#gaveWayFor = 0;
    this.terms = terms;
    if (terms.isUnlimited) {
      this.#tokens.requested = 0;
      this.#returnTokens(slots);
    } else this.#tokens.add(slots);
  }

  /** Returns tokens that have expired. */
  returnExpired(now: Millis): void {
    const expired = this.#tokens.dropBefore(now - this.terms.validFor);
    if (this.terms.phase === 'blocked') this.#gaveWayFor += now - (expired[0] ?? now);
    this.#returnTokens(expired);
  }

  /** Returns tokens that no request here can use. @param tokensNeeded see `takeDemandChange` */
  returnSurplus(tokensNeeded: number): void {
    this.#returnTokens(this.#tokens.dropBeyond(tokensNeeded));
  }

  /** Whether others send the probe first: its sender has failed, or others were accepted shortly before the block and it was not. */
  #givesWay(source: RequestAttributes, block: BlockStatus): boolean {
    if (this.failedSenders?.includes(source, block) === true) return true;
    return this.acceptedSenders?.hasAny(block) === true && !this.acceptedSenders.includes(source, block);
  }

  /**
   * How much later than others a sender that gives way sends the probe: a quarter of the delay of the probe, as where the limit is
   * kept. That delay is about a third of the time since the block began.
   */
  #deferral({ since }: BlockStatus, now: Millis): Millis {
    const { first = now } = this.#tokens;
    return first + Math.min(MAX_PROBE_DEFERRAL, Math.max(0, first - since) / 12) - this.#gaveWayFor - now;
  }

  #tokenDelay(now: Millis): Millis {
    if (this.terms.isUnlimited) return 0;
    this.returnExpired(now);
    const { first } = this.#tokens;
    if (first !== undefined) return Math.max(0, first - now);
    this.requestReport(this.#tokens.requested <= 0 ? 'now' : 'with-next-report');
    return Number.POSITIVE_INFINITY;
  }

  /** Informs the server, once an epoch, of a request that the block does not concern: it leases tokens again then. */
  #reportBypass(now: Millis): void {
    if (this.#bypassReportedEpoch === this.terms.epoch) return;
    this.#bypassReportedEpoch = this.terms.epoch;
    this.usageLog.blockBypassed(now);
    this.requestReport('now');
  }

  /** Until the probe is answered, or counts as lost, no other leaves here; nor elsewhere, once the server knows of it. */
  #startPartialProbe(block: BlockStatus, now: Millis): void {
    const at = now + MAX_PROBE_TIMEOUT;
    this.terms = { ...this.terms, block: { ...block, probeAt: at, expectedAt: Math.min(at, now + PROBE_RECHECK) } };
    this.usageLog.probed(now);
    this.requestReport('now');
  }

  #returnTokens(slots: readonly Millis[]): void {
    if (slots.length === 0) return;
    for (const slot of slots.toReversed()) this.usageLog.tokenUnused(slot);
    const isBlocked = this.terms.phase === 'blocked';
    if (isBlocked) this.usageLog.probeAbandoned();
    this.requestReport(isBlocked || this.terms.rate < RETURN_AT_ONCE_BELOW ? 'now' : 'soon');
  }
}

/** The rate may be infinite. @param own > 0 */
function partOf(rate: PerSecond, own: number, others: number): PerSecond {
  return others === 0 ? rate : (rate * own) / (own + others);
}
