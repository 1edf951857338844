import type { CutCause, LimitState } from '../events/proxy-events.ts';
import { Pacer } from '../rate/pacer.ts';
import { QuotaPace } from '../quota/quota-pacing.ts';
import type { Block } from '../rate/breaker/active-block.ts';
import type { Failure, Rejection } from '../rate/failed-send.ts';
import { AdaptiveRate } from '../rate/adaptive-rate.ts';
import type { QuotaOwner, Requester } from '../quota/requester.ts';
import type { Rules } from '../rate/rules.ts';
import type { RateSettings } from '../rate/rate-state.ts';
import type { Source } from '../rate/breaker/request-attributes.ts';
import type { Millis, PerSecond, Quota, Random } from '../exchange/attempt-outcome.ts';

/**
 * The tokens of one limit: what a store gives the gate. The memory store answers from its own adaptive rate, at once.
 * One that leases answers from the tokens in hand; without one, `delay` is Infinity, and when tokens have come, the gate
 * is told by `Gate.supply`.
 */
export interface Meter {
  readonly phase: LimitState;
  readonly ceiling: PerSecond;
  /** How many may be in flight; undefined where that is not what is limited. */
  readonly places: number | undefined;
  /** Until when nothing but a probe passes, or nothing at all. */
  readonly blockedUntil: Millis | undefined;
  /** A block stands: methods that take a source need it. Absent where nothing is ever blocked. */
  readonly isBlocking?: boolean;
  /** Something has failed lately: what is accepted is to be told with its source. */
  readonly isTroubled?: boolean;
  readonly quotaLeft: number | undefined;
  /** When growth begins again, while it is held back after a cut; absent where that is not known. */
  readonly cooldownUntil?: Millis | undefined;
  rate(now: Millis): PerSecond;
  /** As `rate`, of the limit itself, where others have a part of it. */
  wholeRate?(now: Millis): PerSecond;
  /** The block that stands; undefined where none does. */
  block?(now: Millis): Block | undefined;
  /** Whether this request is held back by that, or by a stop. @param source absent where nothing is known of it */
  holds?(now: Millis, source?: Source): boolean;
  /**
   * How long until a token may be taken: 0 now; Infinity when it has been asked for, or when the end of another request
   * is waited for. Takes nothing. @param source as of `holds`
   */
  delay(now: Millis, source?: Source): Millis;
  /** How long those who wait are told: as `delay`, but where that waits for an answer, for as long as one may be expected. */
  expected(now: Millis, source?: Source): Millis;
  /** While blocked: for how long a probe has been due and none has left; else 0. */
  overdue(now: Millis): Millis;
  /**
   * Takes a token; only when `delay` is 0. Returns whether this request is the probe of what is blocked.
   * @param due when it was to be taken, where a timer was late; else now
   */
  take(now: Millis, due: Millis, source?: Source): boolean;
  /** The request that took a token has been sent, or will not be: it is on its way no longer. */
  giveBack(): void;
  /** The probe was not sent, or its answer will never be known. */
  abandonProbe(): void;
  remember(accepted: PerSecond, now: Millis): void;
  /** Sent in all. */
  readonly sends: number;
  /** Sent and not ended. */
  readonly inFlight: number;
  /** Tokens in hand, of one that leases; absent where it makes them, and undefined where nothing limits. */
  readonly tokens?: number | undefined;
  /** Returns how many are in flight, this one included. */
  sent(now: Millis): number;
  /** One is in flight no longer. Returns whether that lets another pass. */
  ended(now: Millis): boolean;
  /** @param among what `sent` returned for it; 0 where that is not known */
  accepted(sentAt: Millis, among: number, now: Millis, source?: Source): void;
  rejected(rejection: Rejection, now: Millis): CutCause | undefined;
  failed(failure: Failure, now: Millis): CutCause | undefined;
  /**
   * Returns false where requesters are known to have quotas of their own: it holds nobody here then but this one, and whoever
   * is told so sees to that.
   * @param sentAt of the request that was answered so
   * @param requester who sent that; anybody when absent
   */
  noteQuota(quota: Quota, sentAt: Millis, now: Millis, requester?: Requester): boolean;
  /** Whether a quota stops or paces. */
  isQuotaInForce(now: Millis): boolean;
  /** Whether the one in force is about this requester. */
  isQuotaOf(requester: Requester): boolean;
  /** Whom it is about; undefined where none is in force. */
  quotaOwner(now: Millis): QuotaOwner | undefined;
  /** The one in force holds nobody here any longer. @param isApart requesters have quotas of their own from now on */
  disownQuota(isApart: boolean, now: Millis): void;
  /** A quota is spent, as another process was told. */
  resumeQuota(owner: QuotaOwner, now: Millis): void;
  /** Nothing leaves before this. */
  stop(until: Millis): void;
  /** Another process had blocked something. */
  resumeBlock?(block: Block, now: Millis): void;
  /** As of `LocalMeter`, where the limit is kept here. */
  resume?(rate: PerSecond, ceiling: PerSecond, now: Millis, places?: number): void;
  /** What was to be waited for is waited for no longer: the next request may leave, and be the probe. Absent where others keep the limit. */
  probeNow?(now: Millis): void;
  /** @param late as of `AdaptiveRate.advance` */
  advance(now: Millis, queued: boolean, late?: Millis): void;
}

/** A meter of our own: the adaptive rate, bounded by the quota the upstream tells, spaced by the pacer. */
export class LocalMeter implements Meter {
  readonly #rate: AdaptiveRate;
  readonly #pacer = new Pacer();
  readonly #quota = new QuotaPace();
  #sends = 0;

  constructor(settings: RateSettings, random: Random, rules?: Rules) {
    this.#rate = new AdaptiveRate(settings, random, rules);
  }

  get phase(): LimitState {
    return this.#rate.phase;
  }

  get ceiling(): PerSecond {
    return this.#rate.ceiling;
  }

  get places(): number | undefined {
    const { places } = this.#rate;
    return Number.isFinite(places) ? places : undefined;
  }

  get blockedUntil(): Millis | undefined {
    const { probeAt } = this.#rate.blockades;
    const { stopUntil } = this.#quota;
    if (probeAt === undefined) return Number.isFinite(stopUntil) ? stopUntil : undefined;
    return Math.max(probeAt, stopUntil);
  }

  get quotaLeft(): number | undefined {
    return this.#quota.left;
  }

  get cooldownUntil(): Millis | undefined {
    return this.#rate.cooldownUntil;
  }

  rate(now: Millis): PerSecond {
    return Math.min(this.#rate.rate, this.#quota.rate(now));
  }

  get isBlocking(): boolean {
    return this.#rate.blockades.isStanding;
  }

  get isTroubled(): boolean {
    return this.#rate.blockades.isTroubled;
  }

  block(now: Millis): Block | undefined {
    return this.#rate.blockades.view(now);
  }

  holds(now: Millis, source?: Source): boolean {
    return this.#rate.blockades.holds(source) || this.#quota.delay(now) > 0;
  }

  delay(now: Millis, source?: Source): Millis {
    return this.#after(this.#rate.delay(now, source), now, source);
  }

  overdue(now: Millis): Millis {
    return this.#rate.blockades.overdue(now);
  }

  expected(now: Millis, source?: Source): Millis {
    return this.#after(this.#rate.expected(now, source), now, source);
  }

  take(now: Millis, due: Millis, source?: Source): boolean {
    const isProbe = this.#rate.admit(now, source);
    this.#pacer.take(due, this.#pace(now));
    return isProbe;
  }

  /** As of `AdaptiveRate`. */
  probe(now: Millis): void {
    this.#rate.probe(now);
  }

  /** As of `AdaptiveRate`. */
  passBy(now: Millis): void {
    this.#rate.passBy(now);
  }

  giveBack(): void {
    this.#rate.giveBack();
  }

  abandonProbe(): void {
    this.#rate.blockades.abandonProbe();
  }

  remember(accepted: PerSecond, now: Millis): void {
    this.#rate.remember(accepted, now);
  }

  get sends(): number {
    return this.#sends;
  }

  get inFlight(): number {
    return this.#rate.inFlight;
  }

  sent(now: Millis): number {
    this.#sends += 1;
    return this.#rate.sent(now);
  }

  ended(): boolean {
    return this.#rate.ended();
  }

  accepted(sentAt: Millis, among: number, now: Millis, source?: Source): void {
    this.#rate.accepted(sentAt, among, now, source);
  }

  rejected(rejection: Rejection, now: Millis): CutCause | undefined {
    return this.#rate.rejected(rejection, now);
  }

  failed(failure: Failure, now: Millis): CutCause | undefined {
    return this.#rate.failed(failure, now);
  }

  noteQuota(quota: Quota, sentAt: Millis, now: Millis, requester?: Requester): boolean {
    return this.#quota.note(quota, sentAt, now, requester);
  }

  isQuotaInForce(now: Millis): boolean {
    return this.#quota.isInForce(now);
  }

  isQuotaOf(requester: Requester): boolean {
    return this.#quota.includes(requester);
  }

  quotaOwner(now: Millis): QuotaOwner | undefined {
    return this.#quota.owner(now);
  }

  disownQuota(isApart: boolean, now: Millis): void {
    this.#quota.disown(isApart, now);
  }

  /** Requesters have quotas of their own. */
  isQuotaApart(now: Millis): boolean {
    return this.#quota.isApart(now);
  }

  resumeQuota(owner: QuotaOwner, now: Millis): void {
    this.#quota.resume(owner, now);
  }

  stop(until: Millis): void {
    this.#quota.stop(until);
  }

  resumeBlock(block: Block, now: Millis): void {
    this.#rate.resumeBlock(block, now);
  }

  probeNow(now: Millis): void {
    this.#quota.release();
    this.#rate.blockades.probeNow(now);
  }

  advance(now: Millis, queued: boolean, late?: Millis): void {
    this.#rate.advance(now, queued, late);
  }

  /** As of `AdaptiveRate`. */
  pass(now: Millis): void {
    this.#rate.pass(now);
  }

  /** Goes on at a known rate, > 0 and finite, where its own history is lost. @param places as of `AdaptiveRate` */
  resume(rate: PerSecond, ceiling: PerSecond, now: Millis, places?: number): void {
    this.#rate.resume({ rate, ceiling }, now, places);
  }

  /** As of `AdaptiveRate`. */
  reviseFirst(): void {
    this.#rate.reviseFirst();
  }

  /** As of `AdaptiveRate`. */
  learnAmong(among: number, isRejected: boolean, now: Millis): boolean {
    return this.#rate.learnAmong(among, isRejected, now);
  }

  /** So many more, or fewer, are in flight than it was told of. */
  recount(by: number): void {
    this.#rate.recount(by);
  }

  /** The time of the last token; −Infinity before there was one. */
  get lastToken(): Millis {
    return this.#pacer.last;
  }

  /** Tokens that were taken ahead of time, for later than this, are void: the next follows the last before it. */
  rewind(now: Millis): void {
    this.#pacer.rewind(now);
  }

  #after(blocked: Millis, now: Millis, source: Source | undefined): Millis {
    const stopped = Math.max(this.#quota.delay(now), blocked);
    // A probe is not paced: it is the only one out.
    if (this.#rate.blockades.holds(source)) return stopped;
    // What is rationed until a reset is held back until then, and not for a whole interval.
    const rationed = Math.min(this.#pacer.delay(now, this.#quota.rate(now)), this.#quota.holdsFor(now));
    return Math.max(stopped, rationed, this.#pacer.delay(now, this.#rate.pace));
  }

  #pace(now: Millis): PerSecond {
    return Math.min(this.#rate.pace, this.#quota.rate(now));
  }
}
