import type { CutCause, LimitState } from '../events/proxy-events.ts';
import type { Meter } from './meter.ts';
import { Pacer } from '../rate/pacer.ts';
import type { Block } from '../rate/breaker/active-block.ts';
import type { Failure, Rejection } from '../rate/failed-send.ts';
import type { QuotaOwner, Requester } from '../quota/requester.ts';
import type { Source } from '../rate/breaker/request-attributes.ts';
import type { Steering } from './operator-override.ts';
import { UNSTEERED } from './operator-override.ts';
import type { Millis, PerSecond, Quota } from '../exchange/attempt-outcome.ts';

/** Who is turned away while a block has no known end is told to come back and see after so long. */
const COME_AND_SEE: Millis = 30_000;

/**
 * A meter in the hands of an operator. Pinned, it spaces requests by the rate it was given; blocked, it lets nothing pass,
 * and sends no probes. The meter beneath learns on: it shows what it would do, and does it once it is let go. A limit
 * has one from the first order on; what is taken of the one is not given back to the other.
 */
export class SteeredMeter implements Meter {
  readonly own: Meter;
  readonly #pacer = new Pacer();
  #steering: Steering = UNSTEERED;
  /** The block holds: its time is over when it is moved on next. */
  #isStopped = false;
  /** Until when the upstream asked for a stop: that is kept to, whatever rate was chosen. */
  #askedUntil = Number.NEGATIVE_INFINITY;
  /** Of our own tokens, those that are on their way. */
  #taken = 0;

  constructor(own: Meter) {
    this.own = own;
  }

  steer(steering: Steering, now: Millis): void {
    this.#steering = steering;
    this.#pacer.rewind(now);
    this.#isStopped = steering.blockedUntil !== Number.NEGATIVE_INFINITY;
  }

  get pinned(): PerSecond | undefined {
    return this.#steering.pinned;
  }

  /** By an operator. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Pinned, it is not blocked by what it has learned: requests pass. */
  get phase(): LimitState {
    if (this.#isStopped) return 'blocked';
    const { phase } = this.own;
    return phase === 'blocked' && this.pinned !== undefined ? 'backoff' : phase;
  }

  get ceiling(): PerSecond {
    return this.own.ceiling;
  }

  get places(): number | undefined {
    return this.pinned === undefined ? this.own.places : undefined;
  }

  get blockedUntil(): Millis | undefined {
    if (this.#isStopped) return finite(this.#steering.blockedUntil);
    return this.pinned === undefined ? this.own.blockedUntil : finite(this.#askedUntil);
  }

  get quotaLeft(): number | undefined {
    return this.own.quotaLeft;
  }

  get cooldownUntil(): Millis | undefined {
    return this.pinned === undefined ? this.own.cooldownUntil : undefined;
  }

  rate(now: Millis): PerSecond {
    return this.pinned ?? this.own.rate(now);
  }

  wholeRate(now: Millis): PerSecond {
    return this.pinned ?? this.learned(now);
  }

  /** What the rate would be. */
  learned(now: Millis): PerSecond {
    return this.own.wholeRate?.(now) ?? this.own.rate(now);
  }

  /** Pinned or blocked by an operator, a block that was learned holds nothing back. */
  get isBlocking(): boolean {
    return !this.#isStopped && this.pinned === undefined && this.own.isBlocking === true;
  }

  get isTroubled(): boolean {
    return this.own.isTroubled === true;
  }

  block(now: Millis): Block | undefined {
    return this.isBlocking ? this.own.block?.(now) : undefined;
  }

  holds(now: Millis, source?: Source): boolean {
    if (this.#isStopped) return true;
    return this.pinned === undefined ? this.own.holds?.(now, source) === true : this.#askedUntil > now;
  }

  delay(now: Millis, source?: Source): Millis {
    if (this.#isStopped) return Math.max(0, this.#steering.blockedUntil - now);
    const { pinned } = this;
    return pinned === undefined ? this.own.delay(now, source) : this.#paced(pinned, now);
  }

  expected(now: Millis, source?: Source): Millis {
    if (this.#isStopped) return Math.max(0, this.#end(now));
    const { pinned } = this;
    return pinned === undefined ? this.own.expected(now, source) : this.#paced(pinned, now);
  }

  overdue(now: Millis): Millis {
    return this.#isStopped || this.pinned !== undefined ? 0 : this.own.overdue(now);
  }

  take(now: Millis, due: Millis, source?: Source): boolean {
    const { pinned } = this;
    if (pinned === undefined) return this.own.take(now, due, source);
    this.#taken += 1;
    this.#pacer.take(due, pinned);
    return false;
  }

  giveBack(): void {
    if (this.#taken === 0) this.own.giveBack();
    else this.#taken -= 1;
  }

  abandonProbe(): void {
    this.own.abandonProbe();
  }

  /** The upstream is asked at once whether it lets something through. */
  probeNow(now: Millis): void {
    this.#askedUntil = Number.NEGATIVE_INFINITY;
    this.own.probeNow?.(now);
  }

  remember(accepted: PerSecond, now: Millis): void {
    this.own.remember(accepted, now);
  }

  get sends(): number {
    return this.own.sends;
  }

  get inFlight(): number {
    return this.own.inFlight;
  }

  sent(now: Millis): number {
    return this.own.sent(now);
  }

  ended(now: Millis): boolean {
    return this.own.ended(now);
  }

  accepted(sentAt: Millis, among: number, now: Millis, source?: Source): void {
    this.own.accepted(sentAt, among, now, source);
  }

  /** Pinned, no cut is in force, and none is told of. What was sent beyond the rate learned says nothing against it. */
  rejected(rejection: Rejection, now: Millis): CutCause | undefined {
    const { pinned } = this;
    if (pinned === undefined) return this.own.rejected(rejection, now);
    const overrun = rejection.overrun === true || pinned > this.own.rate(now);
    this.own.rejected({ ...rejection, overrun }, now);
    return undefined;
  }

  failed(failure: Failure, now: Millis): CutCause | undefined {
    const { pinned } = this;
    if (pinned === undefined) return this.own.failed(failure, now);
    this.own.failed({ ...failure, overrun: failure.overrun === true || pinned > this.own.rate(now) }, now);
    return undefined;
  }

  noteQuota(quota: Quota, sentAt: Millis, now: Millis, requester?: Requester): boolean {
    return this.own.noteQuota(quota, sentAt, now, requester);
  }

  isQuotaInForce(now: Millis): boolean {
    return this.own.isQuotaInForce(now);
  }

  isQuotaOf(requester: Requester): boolean {
    return this.own.isQuotaOf(requester);
  }

  quotaOwner(now: Millis): QuotaOwner | undefined {
    return this.own.quotaOwner(now);
  }

  disownQuota(isApart: boolean, now: Millis): void {
    this.own.disownQuota(isApart, now);
  }

  resumeQuota(owner: QuotaOwner, now: Millis): void {
    this.own.resumeQuota(owner, now);
  }

  resumeBlock(block: Block, now: Millis): void {
    this.own.resumeBlock?.(block, now);
  }

  stop(until: Millis): void {
    this.#askedUntil = Math.max(this.#askedUntil, until);
    this.own.stop(until);
  }

  /** Who waits because of an operator is no sign that more is wanted than has been learned. */
  advance(now: Millis, queued: boolean, late?: Millis): void {
    this.lift(now);
    this.own.advance(now, queued && !this.isHoldingBack(now), late);
  }

  /** Ends a block whose time is over. */
  lift(now: Millis): void {
    if (this.#steering.blockedUntil <= now) this.#isStopped = false;
  }

  /** An operator lets less pass than has been learned. */
  isHoldingBack(now: Millis): boolean {
    return this.#isStopped || (this.pinned !== undefined && this.pinned < this.own.rate(now));
  }

  /** Pinned, the next follows this one; for who takes tokens of the meter beneath all the same. */
  space(due: Millis): void {
    if (this.pinned !== undefined) this.#pacer.take(due, this.pinned);
  }

  #paced(rate: PerSecond, now: Millis): Millis {
    return Math.max(0, this.#askedUntil - now, this.#pacer.delay(now, rate));
  }

  #end(now: Millis): Millis {
    const { blockedUntil } = this.#steering;
    return blockedUntil === Number.POSITIVE_INFINITY ? COME_AND_SEE : blockedUntil - now;
  }
}

function finite(at: Millis): Millis | undefined {
  return Number.isFinite(at) ? at : undefined;
}
