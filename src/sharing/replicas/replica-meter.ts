import type { CutCause, LimitState } from '../../core/events/proxy-events.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { LocalMeter, Meter } from '../../core/limits/meter.ts';
import { Pacer } from '../../core/rate/pacer.ts';
import type { Block } from '../../core/rate/breaker/active-block.ts';
import type { Failure, Rejection } from '../../core/rate/failed-send.ts';
import type { QuotaOwner, Requester } from '../../core/quota/requester.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Source } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond, Quota, Random } from '../../core/exchange/attempt-outcome.ts';
import type { Urgency } from '../protocol/leased-meter.ts';
import { LeasedMeter } from '../protocol/leased-meter.ts';
import { startingTerms } from '../protocol/limit-terms.ts';
import { keepStop, stoppedOf } from '../../core/limits/meter-stop.ts';
import { Alone } from './fallback-limiter.ts';
import type { Known, PoolTerms, Told } from './replica-protocol.ts';

/** Others go on alone for so long after the pool has come back: until they are connected again. */
const AWAITED_FOR: Millis = 1500;

/** The tokens of a limit that is kept in a pool; and of one of our own, with our share of its rate, while the pool is away. */
export class PooledMeter implements Meter {
  readonly #settings: RateSettings;
  readonly #random: Random;
  readonly #leased: LeasedMeter;
  /** Of tokens that are used late: those in hand are not to follow each other faster than all of them may. */
  readonly #pacer = new Pacer();
  #terms: PoolTerms;
  #knownSince: Millis = Number.NEGATIVE_INFINITY;
  #alone: Alone | undefined;
  /** Our share when the pool went away: the others may have theirs still, and not know that it is back. */
  #awaited: { readonly share: number; readonly until: Millis } | undefined;
  /** Taken of a meter of our own, and still on their way. */
  #takenAlone = 0;
  #sends = 0;
  /** Those of ours that were counted when the pool was last heard. */
  #inFlightThen = 0;
  #sendsThen = 0;

  /** @param touch there is something to tell */
  constructor(settings: RateSettings, random: Random, touch: (urgency: Urgency) => void) {
    this.#settings = settings;
    this.#random = random;
    // Until the pool was heard, nobody knows what others do: nothing goes for free.
    const terms = { ...startingTerms(settings), isFree: false };
    this.#terms = { ...terms, inFlight: 0, sends: 0, holders: 1 };
    // How often a pool is told of anything is up to who asks it.
    this.#leased = new LeasedMeter(terms, (_, urgency) => touch(urgency === 'later' ? 'soon' : urgency));
  }

  get #meter(): Meter {
    return this.#alone?.meter ?? this.#leased;
  }

  set limit(limit: Limit) {
    this.#leased.limit = limit;
  }

  get phase(): LimitState {
    return this.#meter.phase;
  }

  get ceiling(): PerSecond {
    return this.#meter.ceiling;
  }

  get places(): number | undefined {
    return this.#meter.places;
  }

  get blockedUntil(): Millis | undefined {
    return this.#meter.blockedUntil;
  }

  get quotaLeft(): number | undefined {
    return this.#meter.quotaLeft;
  }

  rate(now: Millis): PerSecond {
    return this.#meter.rate(now) * this.#part(now);
  }

  /** Alone, what we have is a part. */
  wholeRate(now: Millis): PerSecond {
    return this.#alone?.wholeRate(now) ?? this.#leased.wholeRate();
  }

  get isBlocking(): boolean {
    return this.#meter.isBlocking === true;
  }

  get isTroubled(): boolean {
    return this.#meter.isTroubled === true;
  }

  block(now: Millis): Block | undefined {
    return this.#meter.block?.(now);
  }

  holds(now: Millis, source?: Source): boolean {
    return this.#meter.holds?.(now, source) === true;
  }

  delay(now: Millis, source?: Source): Millis {
    if (this.#alone !== undefined) return this.#alone.meter.delay(now, source);
    const delay = this.#leased.delay(now, source);
    return this.#isPaced ? Math.max(delay, this.#pacer.delay(now, this.#terms.rate * this.#part(now))) : delay;
  }

  expected(now: Millis, source?: Source): Millis {
    return this.#meter.expected(now, source);
  }

  overdue(now: Millis): Millis {
    return this.#meter.overdue(now);
  }

  take(now: Millis, due: Millis, source?: Source): boolean {
    if (this.#alone !== undefined) {
      this.#takenAlone += 1;
      return this.#alone.meter.take(now, due, source);
    }
    if (this.#isPaced) this.#pacer.take(due, this.#terms.rate * this.#part(now));
    return this.#leased.take(now, due, source);
  }

  giveBack(): void {
    if (this.#takenAlone === 0) return this.#leased.giveBack();
    this.#takenAlone -= 1;
    this.#alone?.meter.giveBack();
  }

  abandonProbe(): void {
    this.#meter.abandonProbe();
  }

  remember(accepted: PerSecond, now: Millis): void {
    this.#leased.remember(accepted, now);
    this.#alone?.meter.remember(accepted, now);
  }

  /** By all, as far as is known here. */
  get sends(): number {
    return this.#alone?.meter.sends ?? this.#terms.sends + this.#sends - this.#sendsThen;
  }

  get inFlight(): number {
    return this.#leased.inFlight;
  }

  get ownSends(): number {
    return this.#sends;
  }

  /** Returns how many are in flight from all, as far as is known here. */
  sent(now: Millis): number {
    this.#sends += 1;
    this.#leased.sent(now);
    if (this.#alone !== undefined) return this.#alone.meter.sent(now);
    return Math.max(0, this.#terms.inFlight - this.#inFlightThen) + this.#leased.inFlight;
  }

  ended(now: Millis): boolean {
    this.#leased.ended(now);
    return this.#alone?.meter.ended() ?? false;
  }

  accepted(sentAt: Millis, among: number, now: Millis, source?: Source): void {
    this.#leased.accepted(sentAt, among, now, source);
    this.#alone?.accepted(sentAt, among, now, source);
  }

  /** Whether that cuts the rate, the pool decides and tells; alone, we do. */
  rejected(rejection: Rejection, now: Millis): CutCause | undefined {
    this.#leased.rejected(rejection, now);
    return this.#alone?.rejected(rejection, now);
  }

  failed(failure: Failure, now: Millis): CutCause | undefined {
    this.#leased.failed(failure, now);
    return this.#alone?.meter.failed(failure, now);
  }

  noteQuota(quota: Quota, sentAt: Millis, now: Millis, requester?: Requester): boolean {
    const isOfAll = this.#leased.noteQuota(quota, sentAt, now, requester);
    return this.#alone?.meter.noteQuota(quota, sentAt, now, requester) ?? isOfAll;
  }

  isQuotaInForce(now: Millis): boolean {
    return this.#meter.isQuotaInForce(now);
  }

  isQuotaOf(requester: Requester): boolean {
    return this.#meter.isQuotaOf(requester);
  }

  quotaOwner(now: Millis): QuotaOwner | undefined {
    return this.#meter.quotaOwner(now);
  }

  disownQuota(isApart: boolean, now: Millis): void {
    this.#leased.disownQuota(isApart, now);
    this.#alone?.meter.disownQuota(isApart, now);
  }

  resumeQuota(owner: QuotaOwner, now: Millis): void {
    this.#leased.resumeQuota(owner, now);
    this.#alone?.meter.resumeQuota(owner, now);
  }

  stop(until: Millis): void {
    this.#leased.stop(until);
    this.#alone?.meter.stop(until);
  }

  resumeBlock(block: Block, now: Millis): void {
    this.#leased.resumeBlock(block, now);
    this.#alone?.meter.resumeBlock(block, now);
  }

  advance(now: Millis, queued: boolean): void {
    this.#alone?.meter.advance(now, queued);
  }

  get isAlone(): boolean {
    return this.#alone !== undefined;
  }

  get tokens(): number | undefined {
    return this.#alone === undefined ? this.#leased.tokens : undefined;
  }

  /** Tokens in hand. */
  get inHand(): number {
    return this.#leased.inHand;
  }

  /** Whether more tokens are wanted than are in hand. Where they are not, who comes next has to ask. */
  isShortOf(needed: number): boolean {
    return this.#alone === undefined && this.#leased.ask(needed) > 0;
  }

  /** How many share the limit, as far as is known. */
  get holders(): number {
    return this.#terms.holders;
  }

  /** When the last token in hand may be used. */
  get lastSlot(): Millis | undefined {
    return this.#leased.lastSlot;
  }

  /** What is to be told next. It is told once. @param waiting those who could use a token now, or will before long */
  tell(waiting: number, now: Millis): Told {
    this.#leased.dropLate(now);
    if (this.#alone !== undefined) this.#dropLearned(this.#alone.meter, now);
    this.#inFlightThen = this.#leased.inFlight;
    this.#sendsThen = this.#sends;
    return {
      want: this.#leased.ask(this.#alone === undefined ? waiting : 0),
      happenings: this.#leased.log.take(),
      lent: this.#leased.outstanding,
      inFlight: this.#leased.inFlight,
      known: this.#known(now),
    };
  }

  /** The pool has answered: all times are ours. News may have come first, which tells of later. */
  hear(terms: PoolTerms, slots: readonly Millis[], now: Millis): void {
    if (this.#alone !== undefined) this.#awaited = { share: this.#alone.share, until: now + AWAITED_FOR };
    this.#alone = undefined;
    this.#leased.hear({ terms, slots });
    if (terms.epoch < this.#terms.epoch) return;
    if (terms.epoch > this.#terms.epoch) this.#knownSince = now;
    this.#terms = terms;
  }

  /** As `hear`, of a limit that has changed: unless that is known. */
  hearNews(terms: PoolTerms, now: Millis): boolean {
    if (this.#alone !== undefined || terms.epoch < this.#terms.epoch) return false;
    const { inFlight, sends, holders, others } = this.#terms; // news is for all: it does not say what is whose
    this.hear({ ...terms, inFlight, sends, holders, others }, [], now);
    return true;
  }

  /** The pool is away: goes on with our share of what it allowed. Tokens in hand are void. */
  goAlone(now: Millis): void {
    this.#leased.log.take();
    this.#leased.ask(0);
    if (this.#alone !== undefined) return;
    this.#takenAlone = 0;
    this.#alone = new Alone(this.#terms, this.#share(), this.#settings, this.#random, now);
    this.#alone.meter.recount(this.#leased.inFlight);
  }

  get #isPaced(): boolean {
    const { isFree, phase, places } = this.#terms;
    return !isFree && places === undefined && phase !== 'blocked';
  }

  /** Of what the pool lends: of one that has come back, no more than our share until the others have found it too. */
  #part(now: Millis): number {
    const awaited = this.#awaited;
    if (awaited === undefined) return 1;
    if (this.#alone === undefined && now < awaited.until && this.#terms.others === 0) return awaited.share;
    this.#awaited = undefined;
    return 1;
  }

  /** Of the rate, by the weight of those who wait here, or by heads where nobody does. */
  #share(): number {
    const { rate, holders } = this.#terms;
    const own = this.#leased.limit?.waitingWeight ?? 0;
    if (own === 0 || rate === Number.POSITIVE_INFINITY) return 1 / holders;
    return this.#leased.rate() / rate;
  }

  #known(now: Millis): Known {
    const { epoch, rate, ceiling } = this.#terms;
    return { ...(this.#alone?.learned(epoch, now) ?? { epoch, rate, ceiling }), since: this.#knownSince };
  }

  /** What happened while alone is in the rate that we tell: told again, it would count twice. How long to wait is not. */
  #dropLearned(meter: LocalMeter, now: Millis): void {
    this.#leased.log.take();
    if (meter.isQuotaApart(now)) this.#leased.disownQuota(true, now);
    keepStop(this.#leased, stoppedOf(meter, now), now);
  }
}
