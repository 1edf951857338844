import type { LimitState } from '../../core/events/proxy-events.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { Meter } from '../../core/limits/meter.ts';
import type { Block } from '../../core/rate/breaker/active-block.ts';
import { awayUntil, isHeldBy, PROBE_PATIENCE } from '../../core/rate/breaker/active-block.ts';
import type { Failure, Rejection } from '../../core/rate/failed-send.ts';
import type { QuotaOwner, Requester } from '../../core/quota/requester.ts';
import { isOf } from '../../core/quota/requester.ts';
import type { Source } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond, Quota } from '../../core/exchange/attempt-outcome.ts';
import { HappeningLog } from './usage-log.ts';
import { LentTokens } from './leased-tokens.ts';
import { expectedUnder, isHeldUnder, probeOverdueUnder, withoutQuota } from './limit-terms.ts';
import type { LimitTidings, Terms } from '../workers/worker-protocol.ts';

/** When the lender is to hear of something: at once, in a moment, some time later, or whenever it is told anything. */
export type Urgency = 'now' | 'soon' | 'later' | 'with-the-next';

/**
 * Who has sent for so long without such a pause is known well enough at the lender: a moment that is not told of yet changes little
 * of it. After a pause it is all that there is to learn from.
 */
const STEADY: Millis = 1000;
const PAUSE: Millis = 250;

/** Of a probe that has just left, its failure may be known so soon. */
const LOOK_AGAIN: Millis = 1000;

/** Below this rate a token is worth so long that the lender is to have it back at once. */
const DEAR_BELOW: PerSecond = 50;

/**
 * The tokens of a limit that somebody else keeps. It knows how the limit stood when it last heard of it, has the tokens
 * that were lent to it, and writes down what happens for the lender to learn from.
 */
export class LeasedMeter implements Meter {
  readonly log = new HappeningLog();
  /** Whose meter it is, once that has been made: what waits there is what is asked for. */
  limit: Limit | undefined;
  readonly #touch: (meter: LeasedMeter, urgency: Urgency) => void;
  #terms: Terms;
  readonly #lent = new LentTokens();
  #serial = 0;
  #inFlight = 0;
  #sentAt = Number.NEGATIVE_INFINITY;
  /** Of which epoch the lender knows from here that somebody comes whom the block is not about. */
  #passedByAt = Number.NEGATIVE_INFINITY;
  /** When it began to send without a pause. */
  #steadySince = 0;

  /** @param touch there is something to report */
  constructor(terms: Terms, touch: (meter: LeasedMeter, urgency: Urgency) => void) {
    this.#terms = terms;
    this.#touch = touch;
  }

  get phase(): LimitState {
    return this.#terms.phase;
  }

  get ceiling(): PerSecond {
    return this.#terms.ceiling;
  }

  get places(): number | undefined {
    return this.#terms.places;
  }

  get blockedUntil(): Millis | undefined {
    return this.#terms.blockedUntil;
  }

  get quotaLeft(): number | undefined {
    return this.#terms.quotaLeft;
  }

  /** The part of the rate that those who wait here have by their weight: the others' part is no use to them. */
  rate(): PerSecond {
    const { rate, others } = this.#terms;
    const own = this.limit?.waitingWeight ?? 0;
    // Who is asked while nobody waits would be the first.
    return others === 0 ? rate : (rate * (own || 1)) / ((own || 1) + others);
  }

  wholeRate(): PerSecond {
    return this.#terms.rate;
  }

  get isBlocking(): boolean {
    return this.#terms.block !== undefined;
  }

  get isTroubled(): boolean {
    return this.log.isTroubled;
  }

  block(): Block | undefined {
    return this.#terms.block;
  }

  holds(now: Millis, source?: Source): boolean {
    return isHeldUnder(this.#terms, now, source);
  }

  delay(now: Millis, source?: Source): Millis {
    const { block } = this.#terms;
    if (block === undefined) return this.#tokenDelay(now);
    const away = awayUntil(block, source) - now;
    if (!isHeldBy(block, source)) {
      if (block.isPartial) return this.#tokenDelay(now);
      this.#passBy(now); // the token in hand is the probe's
      return Number.POSITIVE_INFINITY;
    }
    if (away > 0) return away;
    return block.isPartial ? Math.max(block.probeAt - now, this.#tokenDelay(now)) : this.#tokenDelay(now);
  }

  expected(now: Millis, source?: Source): Millis {
    const { isFree, expectedAt } = this.#terms;
    const token = isFree ? 0 : Math.max(0, (this.#lent.first ?? expectedAt) - now);
    return expectedUnder(this.#terms, token, now, source);
  }

  overdue(now: Millis): Millis {
    return probeOverdueUnder(this.#terms, now);
  }

  take(now: Millis, _due?: Millis, source?: Source): boolean {
    const { block } = this.#terms;
    const isOfPart = block?.isPartial === true && isHeldBy(block, source);
    if (isOfPart) this.#probe(block, now);
    if (!this.#lent.take(this.#terms.isFree) || this.#terms.phase !== 'blocked') return isOfPart;
    this.#terms = { ...this.#terms, isProbeOut: true };
    return true;
  }

  giveBack(): void {
    if (!this.#lent.giveBack()) return;
    this.log.givenBack();
    this.#touch(this, 'soon');
  }

  abandonProbe(): void {
    this.log.abandonProbe();
    this.#touch(this, 'now');
  }

  remember(accepted: PerSecond, now: Millis): void {
    this.log.remember(accepted, now);
    this.#touch(this, 'soon');
  }

  /** Not counted here: the lender knows what all have sent, and takes it off a quota itself. */
  get sends(): number {
    return 0;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Returns a number by which the lender knows how many were in flight with all leaseholders. */
  sent(now: Millis): number {
    this.#serial += 1;
    this.#inFlight += 1;
    if (now - this.#sentAt > PAUSE) this.#steadySince = now;
    this.#sentAt = now;
    this.log.sent(this.#serial, now);
    this.#touch(this, this.#usual(now));
    return this.#serial;
  }

  /** Who may go instead, the lender says. */
  ended(now: Millis): boolean {
    this.#inFlight -= 1;
    this.log.ended(now);
    this.#touch(this, this.#terms.places === undefined ? this.#usual(now) : 'now');
    return false;
  }

  accepted(sentAt: Millis, serial: number, now: Millis, source?: Source): void {
    const { block, phase } = this.#terms;
    this.log.accepted(sentAt, serial, now, source);
    const isProof = block !== undefined && isHeldBy(block, source);
    this.#touch(this, isProof || phase === 'blocked' || phase === 'backoff' ? 'now' : this.#usual(now));
  }

  /** Whether that cuts the rate, the lender decides and tells. */
  rejected(rejection: Rejection, now: Millis): undefined {
    this.log.rejected(rejection, now);
    this.#touch(this, 'now');
  }

  failed(failure: Failure, now: Millis): undefined {
    this.log.failed(failure, now);
    this.#touch(this, 'now');
  }

  /** Whom it holds, the lender says: as far as is known here. */
  noteQuota(quota: Quota, sentAt: Millis, now: Millis, requester?: Requester): boolean {
    this.log.quota(quota, sentAt, now, requester);
    this.#touch(this, quota.remaining === 0 ? 'now' : 'soon');
    return !this.#terms.isQuotaApart;
  }

  isQuotaInForce(): boolean {
    return this.#terms.quotaOwner !== undefined;
  }

  isQuotaOf(requester: Requester): boolean {
    const { quotaOwner } = this.#terms;
    return quotaOwner === undefined || isOf(quotaOwner, requester);
  }

  quotaOwner(): QuotaOwner | undefined {
    return this.#terms.quotaOwner;
  }

  /** Whether a token may be had then, the lender says: it is to be asked at once. */
  disownQuota(isApart: boolean, now: Millis): void {
    this.log.quotaDisowned(isApart, now);
    this.#terms = withoutQuota(this.#terms, isApart, now);
    this.#touch(this, 'now');
  }

  resumeQuota(owner: QuotaOwner, now: Millis): void {
    this.log.quotaSpent(owner, now);
    this.#touch(this, 'now');
  }

  stop(until: Millis): void {
    this.log.stop(until);
    this.#touch(this, 'now');
  }

  resumeBlock(block: Block, now: Millis): void {
    this.log.blocked(block, now);
    this.#touch(this, 'now');
  }

  /** Of what goes well. While nothing limits, nobody waits for it. */
  #usual(now: Millis): Urgency {
    return this.#terms.isFree && now - this.#steadySince >= STEADY ? 'later' : 'soon';
  }

  /** The lender moves its limits on. */
  advance(): void {}

  get isFree(): boolean {
    return this.#terms.isFree;
  }

  get tokens(): number | undefined {
    return this.#terms.isFree ? undefined : this.#lent.inHand;
  }

  /** Tokens in hand. */
  get inHand(): number {
    return this.#lent.inHand;
  }

  /** The time of the last of them; undefined where there is none. */
  get lastSlot(): Millis | undefined {
    return this.#lent.last;
  }

  /** Tokens that were lent, and are neither spent nor given back. */
  get outstanding(): number {
    return this.#lent.outstanding;
  }

  /** What to tell the lender of what is wanted; undefined where it knows. @param waiting those who could go if they had a token */
  demand(waiting: number): { readonly want: number; readonly heard: number } | undefined {
    const { asked, heard } = this.#lent;
    const want = this.ask(waiting);
    return want === asked ? undefined : { want, heard };
  }

  /** As `demand`, of a lender that is told each time. */
  ask(waiting: number): number {
    this.#lent.asked = this.#terms.isFree ? 0 : Math.max(0, waiting - this.#lent.inHand);
    return this.#lent.asked;
  }

  /** Tokens, and how the limit stands. What comes late, of an earlier epoch, is given back. */
  hear({ terms, slots }: Pick<LimitTidings, 'terms' | 'slots'>): void {
    this.#lent.hear(slots.length);
    if (terms.epoch < this.#terms.epoch) return this.#letGo(slots);
    if (terms.epoch > this.#terms.epoch) this.log.epoch(terms.epoch);
    if (terms.epoch > this.#terms.epoch || terms.isFree) this.#letGo(this.#lent.dropBeyond(0));
    this.#terms = terms;
    if (terms.isFree) {
      this.#lent.asked = 0;
      this.#letGo(slots);
    } else this.#lent.keep(slots);
  }

  /** Lets go of tokens whose time is over. */
  dropLate(now: Millis): void {
    this.#letGo(this.#lent.dropBefore(now - this.#terms.validFor));
  }

  /** Lets go of tokens that nobody here can use. @param waiting as of `demand` */
  dropSurplus(waiting: number): void {
    this.#letGo(this.#lent.dropBeyond(waiting));
  }

  #tokenDelay(now: Millis): Millis {
    if (this.#terms.isFree) return 0;
    this.dropLate(now);
    const { first } = this.#lent;
    if (first !== undefined) return Math.max(0, first - now);
    this.#touch(this, this.#lent.asked <= 0 ? 'now' : 'with-the-next');
    return Number.POSITIVE_INFINITY;
  }

  /** The lender is told, once, that somebody comes whom the block is not about: it lends tokens then. */
  #passBy(now: Millis): void {
    if (this.#passedByAt === this.#terms.epoch) return;
    this.#passedByAt = this.#terms.epoch;
    this.log.passedBy(now);
    this.#touch(this, 'now');
  }

  /** Until its answer has come, or it counts as lost, no other leaves here; and elsewhere once the lender has heard of it. */
  #probe(block: Block, now: Millis): void {
    const at = now + PROBE_PATIENCE;
    this.#terms = { ...this.#terms, block: { ...block, probeAt: at, expectedAt: Math.min(at, now + LOOK_AGAIN) } };
    this.log.probed(now);
    this.#touch(this, 'now');
  }

  #letGo(slots: readonly Millis[]): void {
    if (slots.length === 0) return;
    for (const slot of slots.toReversed()) this.log.unspent(slot);
    const isBlocked = this.#terms.phase === 'blocked';
    if (isBlocked) this.log.abandonProbe();
    this.#touch(this, isBlocked || this.#terms.rate < DEAR_BELOW ? 'now' : 'soon');
  }
}
