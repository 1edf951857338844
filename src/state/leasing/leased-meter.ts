import type { LimitState } from '../../policy/events.ts';
import type { Limit } from '../../policy/limit.ts';
import type { Meter } from '../../policy/meter.ts';
import type { Rejection } from '../../policy/rate/rejection.ts';
import type { QuotaOwner, Requester } from '../../policy/requester.ts';
import { isOf } from '../../policy/requester.ts';
import type { Millis, PerSecond, Quota } from '../../policy/types.ts';
import { HappeningLog } from './happenings.ts';
import type { LimitTidings, Terms } from './words.ts';

/** When the lender is to hear of something: at once, in a moment, some time later, or whenever it is told anything. */
export type Urgency = 'now' | 'soon' | 'later' | 'with-the-next';

/**
 * Who has sent for so long without such a pause is known well enough at the lender: a moment that is not told of yet changes little
 * of it. After a pause it is all that there is to learn from.
 */
const STEADY: Millis = 1000;
const PAUSE: Millis = 250;

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
  /** Tokens in hand: when each may be used, in order. */
  readonly #slots: Millis[] = [];
  /** Tokens that have come, in all. */
  #heard = 0;
  /** What the lender is believed to think is wanted. */
  #asked = 0;
  /** Taken while nothing limited: not lent, and not to be given back. */
  #untold = 0;
  /** Tokens taken by what is on its way. */
  #taken = 0;
  #serial = 0;
  #inFlight = 0;
  #sentAt = Number.NEGATIVE_INFINITY;
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

  delay(now: Millis): Millis {
    if (this.#terms.isFree) return 0;
    this.dropLate(now);
    const first = this.#slots[0];
    if (first !== undefined) return Math.max(0, first - now);
    this.#touch(this, this.#asked <= 0 ? 'now' : 'with-the-next');
    return Number.POSITIVE_INFINITY;
  }

  expected(now: Millis): Millis {
    if (this.#terms.isFree) return 0;
    return Math.max(0, (this.#slots[0] ?? this.#terms.expectedAt) - now);
  }

  overdue(now: Millis): Millis {
    const { phase, blockedUntil, isProbeOut } = this.#terms;
    if (phase !== 'blocked' || blockedUntil === undefined || isProbeOut) return 0;
    return Math.max(0, now - blockedUntil);
  }

  take(): boolean {
    if (this.#terms.isFree || this.#slots.shift() === undefined) {
      this.#untold += 1;
      return false;
    }
    this.#taken += 1;
    if (this.#terms.phase !== 'blocked') return false;
    this.#terms = { ...this.#terms, isProbeOut: true };
    return true;
  }

  giveBack(): void {
    if (this.#untold > 0) {
      this.#untold -= 1;
      return;
    }
    this.#taken = Math.max(0, this.#taken - 1);
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

  accepted(sentAt: Millis, serial: number, now: Millis): void {
    this.log.accepted(sentAt, serial, now);
    const isAwaited = this.#terms.phase === 'blocked' || this.#terms.phase === 'backoff';
    this.#touch(this, isAwaited ? 'now' : this.#usual(now));
  }

  /** Whether that cuts the rate, the lender decides and tells. */
  rejected(rejection: Rejection, now: Millis): undefined {
    this.log.rejected(rejection, now);
    this.#touch(this, 'now');
  }

  failed(sentAt: Millis, now: Millis, retryAfter: Millis | undefined, overrun = false): undefined {
    this.log.failed(sentAt, now, retryAfter, overrun);
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
    const { blockedUntil, quotaOwner, expectedAt } = this.#terms;
    this.log.quotaDisowned(isApart, now);
    this.#terms = {
      ...this.#terms,
      quotaOwner: undefined,
      isQuotaApart: this.#terms.isQuotaApart || isApart,
      blockedUntil: blockedUntil === quotaOwner?.until ? undefined : blockedUntil,
      expectedAt: Math.min(expectedAt, now),
    };
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
    return this.#terms.isFree ? undefined : this.#slots.length;
  }

  /** Tokens in hand. */
  get inHand(): number {
    return this.#slots.length;
  }

  /** The time of the last of them; undefined where there is none. */
  get lastSlot(): Millis | undefined {
    return this.#slots.at(-1);
  }

  /** Tokens that were lent, and are neither spent nor given back. */
  get outstanding(): number {
    return this.#slots.length + this.#taken;
  }

  /** What to tell the lender of what is wanted; undefined where it knows. @param waiting those who could go if they had a token */
  demand(waiting: number): { readonly want: number; readonly heard: number } | undefined {
    const asked = this.#asked;
    const want = this.ask(waiting);
    return want === asked ? undefined : { want, heard: this.#heard };
  }

  /** As `demand`, of a lender that is told each time. */
  ask(waiting: number): number {
    this.#asked = this.#terms.isFree ? 0 : Math.max(0, waiting - this.#slots.length);
    return this.#asked;
  }

  /** Tokens, and how the limit stands. What comes late, of an earlier epoch, is given back. */
  hear({ terms, slots }: Pick<LimitTidings, 'terms' | 'slots'>): void {
    this.#heard += slots.length;
    this.#asked -= slots.length;
    if (terms.epoch < this.#terms.epoch) return this.#letGo(slots);
    if (terms.epoch > this.#terms.epoch) this.log.epoch(terms.epoch);
    if (terms.epoch > this.#terms.epoch || terms.isFree) this.#letGo(this.#slots.splice(0));
    this.#terms = terms;
    if (terms.isFree) {
      this.#asked = 0;
      this.#letGo(slots);
    } else for (const slot of slots) this.#slots.push(slot);
  }

  /** Lets go of tokens whose time is over. */
  dropLate(now: Millis): void {
    let late = 0;
    for (const slot of this.#slots) if (slot + this.#terms.validFor < now) late += 1;
    this.#letGo(this.#slots.splice(0, late));
  }

  /** Lets go of tokens that nobody here can use. @param waiting as of `demand` */
  dropSurplus(waiting: number): void {
    if (waiting < this.#slots.length) this.#letGo(this.#slots.splice(waiting));
  }

  #letGo(slots: readonly Millis[]): void {
    if (slots.length === 0) return;
    for (const slot of slots.toReversed()) this.log.unspent(slot);
    const isBlocked = this.#terms.phase === 'blocked';
    if (isBlocked) this.log.abandonProbe();
    this.#touch(this, isBlocked || this.#terms.rate < DEAR_BELOW ? 'now' : 'soon');
  }
}
