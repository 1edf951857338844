import type { Millis, PerSecond, Random } from '../../core/scalars.ts';
import type { Limit } from '../../core/limits/limit.ts';
import { readStop, restoreStop } from '../../core/limits/meter-stop.ts';
import type { Meter } from '../../core/limits/meter.ts';
import type { LocalMeter } from '../../core/limits/local-meter.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';
import { Pacer } from '../../core/rate/pacer.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import { LeasedMeter } from '../protocol/leased-meter.ts';
import type { LimitTerms } from '../protocol/limit-terms.ts';
import { initialTerms } from '../protocol/limit-terms.ts';
import type { ReportUrgency } from '../protocol/usage-recorder.ts';
import { FallbackLimiter } from './fallback-limiter.ts';
import { isAsConfigured, VALID_FOR } from './limit-retention.ts';
import { ReplicaLearner } from './replica-learner.ts';
import type { LastKnownLimit, LeaseReport, ReplicaTerms } from './replica-protocol.ts';

/** After the backend has come back, other replicas may still be in fallback for this long: until they are connected again. */
const REJOIN_WAIT: Millis = 1500;

type ReplicaMode =
  | { readonly kind: 'leased' }
  /** The backend does not answer. */
  | { readonly kind: 'fallback'; readonly limiter: FallbackLimiter }
  /** The backend is back, but other replicas may not know yet: until then this one keeps to its share of the fallback. */
  | { readonly kind: 'rejoining'; readonly share: number; readonly until: Millis };

const LEASED: ReplicaMode = { kind: 'leased' };

/**
 * The meter of a limit that a backend keeps for several replicas. While the backend does not answer, it limits with a meter
 * of its own, at this replica's share of the rate.
 */
export class ReplicaMeter extends ReplicaLearner implements Meter {
  readonly #settings: RateSettings;
  readonly #random: Random;
  /** Spaces tokens that are used late: those in hand must not follow each other faster than the rate of the limit. */
  readonly #pacer = new Pacer();
  #mode: ReplicaMode = LEASED;
  #terms: ReplicaTerms;
  /** When the epoch of `#terms` was received. */
  #epochReceivedAt: Millis = Number.NEGATIVE_INFINITY;
  /** Tokens taken in fallback, of requests that are not sent yet. */
  #takenInFallback = 0;
  #ownSends = 0;
  /** This replica's part of the backend's counts when it reported last. */
  #inFlightAtReport = 0;
  #sendsAtReport = 0;

  /** @param requestReport called whenever there is something to report */
  constructor(settings: RateSettings, random: Random, requestReport: (urgency: ReportUrgency) => void) {
    // Before the first response, the usage of other replicas is unknown: no request goes without a token.
    const terms: LimitTerms = { ...initialTerms(settings), isUnlimited: false };
    // 'later' exists to save messages of a busy primary. The lease client limits its calls to a backend by itself.
    super(new LeasedMeter(terms, (_, urgency) => requestReport(urgency === 'later' ? 'soon' : urgency)));
    this.#settings = settings;
    this.#random = random;
    this.#terms = { ...terms, inFlight: 0, sendCount: 0, replicas: 1 };
  }

  protected override get fallback(): FallbackLimiter | undefined {
    return this.#mode.kind === 'fallback' ? this.#mode.limiter : undefined;
  }

  set limit(limit: Limit) {
    this.leased.limit = limit;
  }

  rate(now: Millis): PerSecond {
    return this.activeMeter.rate(now) * this.#rejoinShare(now);
  }

  returnRate(now: Millis, weight: number): PerSecond {
    return this.isInFallback ? this.rate(now) : this.leased.returnRate(now, weight) * this.#rejoinShare(now);
  }

  /** In fallback: the rate of all replicas, if the others do as this one does. */
  sharedRate(now: Millis): PerSecond {
    return this.fallback?.sharedRate(now) ?? this.leased.sharedRate();
  }

  delay(now: Millis, source?: RequestAttributes): Millis {
    if (this.#mode.kind === 'fallback') return this.#mode.limiter.meter.delay(now, source);
    const delay = this.leased.delay(now, source);
    return this.#isPaced ? Math.max(delay, this.#pacer.delay(now, this.#terms.rate * this.#rejoinShare(now))) : delay;
  }

  take(now: Millis, due: Millis, source?: RequestAttributes): boolean {
    if (this.#mode.kind === 'fallback') {
      this.#takenInFallback += 1;
      return this.#mode.limiter.meter.take(now, due, source);
    }
    if (this.#isPaced) this.#pacer.take(due, this.#terms.rate * this.#rejoinShare(now));
    return this.leased.take(now, due, source);
  }

  release(): void {
    if (this.#takenInFallback === 0) return this.leased.release();
    this.#takenInFallback -= 1;
    this.fallback?.meter.release();
  }

  /** An estimate of the sends of all replicas: the backend's count, and this replica's sends since. */
  get sendCount(): number {
    return this.fallback?.meter.sendCount ?? this.#terms.sendCount + this.#ownSends - this.#sendsAtReport;
  }

  get ownSends(): number {
    return this.#ownSends;
  }

  /** Returns an estimate of the requests of all replicas in flight: the backend's count, with this replica's own updated. */
  onSent(now: Millis): number {
    this.#ownSends += 1;
    this.leased.onSent(now);
    if (this.#mode.kind === 'fallback') return this.#mode.limiter.meter.onSent(now);
    return Math.max(0, this.#terms.inFlight - this.#inFlightAtReport) + this.leased.inFlight;
  }

  get isInFallback(): boolean {
    return this.#mode.kind === 'fallback';
  }

  get tokens(): number | undefined {
    return this.isInFallback ? undefined : this.leased.tokens;
  }

  get inHand(): number {
    return this.leased.inHand;
  }

  get lastSlot(): Millis | undefined {
    return this.leased.lastSlot;
  }

  /** As the backend counted them. */
  get replicas(): number {
    return this.#terms.replicas;
  }

  /** Whether more tokens are needed than are in hand. @param tokensNeeded see `takeReport` */
  needsMoreThan(tokensNeeded: number): boolean {
    return !this.isInFallback && this.leased.updateWanted(tokensNeeded) > 0;
  }

  /**
   * Takes what is to be reported next: each usage is reported once.
   * @param tokensNeeded requests that could use a token now, or are expected to soon
   */
  takeReport(tokensNeeded: number, now: Millis): LeaseReport {
    this.leased.returnExpired(now);
    const { fallback } = this;
    if (fallback !== undefined) this.#discardLearned(fallback.meter, now);
    this.#inFlightAtReport = this.leased.inFlight;
    this.#sendsAtReport = this.#ownSends;
    return {
      want: this.leased.updateWanted(fallback === undefined ? tokensNeeded : 0),
      usage: this.leased.usageLog.take(),
      leasedTokens: this.leased.outstanding,
      inFlight: this.leased.inFlight,
      unanswered: this.leased.unanswered,
      known: this.#knownLimit(now),
    };
  }

  addClaimedToken(slot: Millis): void {
    this.leased.applyUpdate({ terms: { ...this.#terms, validFor: VALID_FOR }, slots: [slot] });
  }

  get hasUsage(): boolean {
    return !this.leased.usageLog.isEmpty;
  }

  leaveFallback(): void {
    this.#mode = LEASED;
  }

  /** Whether there is nothing to report but one request, which has not failed. */
  get hasOneSuccess(): boolean {
    return this.#ownSends < 2 && this.leased.usageLog.isRoutine;
  }

  /** Applies a response of the backend, in local time. A broadcast of a later epoch may have come before it. */
  applyResponse(terms: ReplicaTerms, slots: readonly Millis[], now: Millis): void {
    const share = this.fallback?.share;
    if (share !== undefined) this.#mode = { kind: 'rejoining', share, until: now + REJOIN_WAIT };
    this.leased.applyUpdate({ terms, slots });
    if (terms.epoch < this.#terms.epoch) return;
    if (terms.epoch > this.#terms.epoch) this.#epochReceivedAt = now;
    this.#terms = terms;
  }

  /** Applies broadcast terms, in local time. Returns false, and ignores them, in fallback and for an earlier epoch. */
  applyBroadcast(terms: ReplicaTerms, now: Millis): boolean {
    if (this.isInFallback || terms.epoch < this.#terms.epoch) return false;
    // A broadcast goes to all replicas: these are the sender's.
    const { awaitsPlace, inFlight, sendCount, replicas, otherWeight, otherDemandWeight, otherUnanswered } = this.#terms;
    const own = { awaitsPlace, inFlight, sendCount, replicas, otherWeight, otherDemandWeight, otherUnanswered };
    this.applyResponse({ ...terms, ...own }, [], now);
    return true;
  }

  /** The backend does not answer: continues with this replica's share of the rate. Tokens in hand are void. */
  enterFallback(now: Millis): void {
    this.leased.usageLog.take();
    this.leased.updateWanted(0);
    if (this.isInFallback) return;
    this.#takenInFallback = 0;
    const limiter = new FallbackLimiter(this.#terms, this.#share(now), this.#settings, this.#random, now);
    limiter.meter.adaptiveRate.inFlightLimiter.adjustCount(this.leased.inFlight, this.leased.unanswered);
    this.#mode = { kind: 'fallback', limiter };
  }

  get #isPaced(): boolean {
    const { isUnlimited, phase, concurrencyLimit } = this.#terms;
    return !isUnlimited && concurrencyLimit === undefined && phase !== 'blocked';
  }

  /** The part of the leased rate to use: while rejoining with nothing waiting elsewhere, the share of the fallback. */
  #rejoinShare(now: Millis): number {
    const mode = this.#mode;
    if (mode.kind !== 'rejoining') return 1;
    if (now < mode.until && this.#terms.otherWeight === 0) return mode.share;
    this.#mode = LEASED;
    return 1;
  }

  /** This replica's part of the rate: by the weight of its clients, or an equal part if there are none. */
  #share(now: Millis): number {
    const { rate, replicas } = this.#terms;
    const own = this.leased.limit?.demandWeight(now) ?? 0;
    if (own === 0 || rate === Number.POSITIVE_INFINITY) return 1 / replicas;
    return this.leased.returnRate(now, own) / rate;
  }

  #knownLimit(now: Millis): LastKnownLimit {
    const { epoch, phase, rate, ceiling, concurrencyLimit: places } = this.#terms;
    // A backend that has forgotten the limit makes it anew by the settings, unless a rate was learned: latency shows none.
    const isInitial = isAsConfigured(phase, ceiling, this.#settings) && (rate === ceiling || places !== undefined);
    const known = { epoch, rate: isInitial ? Number.POSITIVE_INFINITY : rate, ceiling };
    return { ...(this.fallback?.summarize(epoch, now) ?? known), since: this.#epochReceivedAt };
  }

  /** The rate reported after a fallback contains what was learned in it: reported as usage, it would count twice. Stops are kept. */
  #discardLearned(meter: LocalMeter, now: Millis): void {
    this.leased.usageLog.take();
    if (meter.isQuotaPerRequester(now)) this.leased.dropQuota(true, now);
    restoreStop(this.leased, readStop(meter, now), now);
  }
}
