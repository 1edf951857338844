import type { Source } from './request-attributes.ts';
import { ANYWHERE, commonOf } from './request-attributes.ts';
import type { Millis, PerSecond, Random } from '../../exchange/attempt-outcome.ts';
import type { Block, Blockade, BlockCause } from './active-block.ts';
import {
  blockade,
  blockOf,
  expectedEnd,
  isHeldBy,
  isProof,
  planProbe,
  probeDelay,
  probeOverdue,
  PROBE_PATIENCE,
} from './active-block.ts';
import { uncutOf } from '../decrease.ts';
import { ErrorAccount } from './error-window.ts';
import { Evidence } from './majority-vote.ts';
import type { RejectedPart } from './rejected-part.ts';
import { RejectedParts } from './rejected-part.ts';
import type { Failure } from '../failed-send.ts';
import type { Rules } from '../rules.ts';
import type { CutState, RateSettings, RateState } from '../rate-state.ts';
import { FAST_GROWTH, MAX_PROBE_DELAY } from '../rate-state.ts';

/** With little seen before the upstream broke, come back to at least this. */
const LEAST_GOOD_RATE: PerSecond = 5;

/** Three of four: few rejections make a block, and where three clients share a limit, two of three come from one by chance. */
const IN_COMMON = 0.5;

/** What was accepted lately is known of so long a time. Of a blockade in it, it says what the blockade let through. */
export const SEEN_OVER: Millis = 10_000;

/** A part that is blocked and asks for nothing any more for so long is forgotten. */
const FORGOTTEN_AFTER: Millis = 300_000;

/** Why a limit is blocked from now on. */
export interface Blocked {
  readonly cause: BlockCause;
  /** The last of those that did not get through. */
  readonly failure: Failure;
  /** Accepted a second, lately. */
  readonly seen: PerSecond;
  /** What it is about, where others are known to pass. */
  readonly part?: RejectedPart | undefined;
}

/** Whether nothing gets through: the blockade that stands, if one does, and what the last one has left behind. */
export class Blockades {
  readonly #settings: RateSettings;
  readonly #random: Random;
  readonly #interval: Rules['probeInterval'];
  readonly #errors = new ErrorAccount();
  /** Of the rejections since the last accepted answer. */
  #rejections: Evidence | undefined;
  #parts: RejectedParts | undefined;
  /** How the limit stood before the first of those. */
  #beforeRejections: CutState | undefined;
  /** When a request was sent last that was accepted. */
  #passedAt = Number.NEGATIVE_INFINITY;
  #standing: Blockade | undefined;
  /** After errors: when all of the rate will have come back, what that is, and until when it counts as what passes. */
  #backAt = Number.NEGATIVE_INFINITY;
  #goodRate: PerSecond = 0;
  #goodUntil = Number.NEGATIVE_INFINITY;
  /** After errors on an open limit: open again when this has passed. */
  #reopenAt: Millis | undefined;

  constructor(settings: RateSettings, random: Random, interval: Rules['probeInterval']) {
    this.#settings = settings;
    this.#random = random;
    this.#interval = interval;
  }

  get isStanding(): boolean {
    return this.#standing !== undefined;
  }

  /** As of `ErrorAccount`. */
  get isTroubled(): boolean {
    return this.#errors.isTroubled || this.#parts?.areOpen === true;
  }

  /** One stands, and requests that it is not about pass. */
  get isPartial(): boolean {
    return this.#standing?.isPartial === true;
  }

  /** When its next probe may leave; undefined when nothing is blocked, or others pass. */
  get probeAt(): Millis | undefined {
    return this.isPartial ? undefined : this.#standing?.probeAt;
  }

  /** The one that stands. */
  view(now: Millis): Block | undefined {
    return this.#standing === undefined ? undefined : blockOf(this.#standing, now);
  }

  /** Whether one stands that holds back this request. */
  holds(source: Source | undefined): boolean {
    return this.#standing !== undefined && isHeldBy(this.#standing, source);
  }

  /** How long until this request may leave as its probe; 0 when one is due, or it is not held back. */
  delay(now: Millis, source: Source | undefined): Millis {
    const block = this.#standing;
    return block === undefined || !isHeldBy(block, source) ? 0 : probeDelay(block, now, source);
  }

  /** For how long a probe has been due and none has left; 0 when none is due. */
  overdue(now: Millis): Millis {
    return this.#standing === undefined ? 0 : probeOverdue(this.#standing, now);
  }

  /** How long it may be expected to hold back this request; 0 when it does not. */
  expected(now: Millis, source: Source | undefined): Millis {
    const block = this.#standing;
    return block === undefined || !isHeldBy(block, source) ? 0 : expectedEnd(block, now, source);
  }

  /** What requests are paced by that the block is not about. */
  rateOutside({ rate }: RateState): PerSecond {
    const block = this.#standing;
    return block === undefined || block.isPartial ? rate : block.before.rate;
  }

  /** What is let go now is its probe. */
  probe(now: Millis): void {
    if (this.#standing !== undefined) this.#standing.probeSentAt = now;
  }

  /** A request passes that it is not about: such go on as before it. Returns whether that is new. */
  passBy(state: RateState): boolean {
    const block = this.#standing;
    if (block === undefined || block.isPartial) return false;
    block.isPartial = true;
    Object.assign(state, block.before);
    return true;
  }

  /** The probe was not sent, or its answer will never be known: another may go. */
  abandonProbe(): void {
    if (this.#standing !== undefined) this.#standing.probeSentAt = undefined;
  }

  /** The next probe is due, whatever was to be waited for. */
  probeNow(now: Millis): void {
    if (this.#standing === undefined) return;
    this.#standing.probeAt = Math.min(this.#standing.probeAt, now);
    this.#standing.probeSentAt = undefined;
    this.#standing.askedUntil = Number.NEGATIVE_INFINITY;
    this.#standing.yieldsUntil = Number.NEGATIVE_INFINITY;
  }

  /** An answer to what had left before the blockade tells nothing new, nor, where we observe, to what passed it by. */
  failProbe(failure: Failure, now: Millis): undefined {
    const block = this.#standing;
    if (block === undefined || failure.sentAt < block.probeAt) return; // no probe
    block.probes += 1;
    block.shutAt = failure.sentAt;
    planProbe(block, failure, this.#latest, now, this.#random);
  }

  /** @param source needed while it is troubled */
  hearAccepted(sentAt: Millis, now: Millis, source: Source | undefined): void {
    this.#passedAt = Math.max(this.#passedAt, sentAt);
    this.#rejections?.clear();
    this.#parts?.passed(source);
    this.#errors.note(now, false, source);
  }

  /** Before the limit is cut by it. @returns the part that it is about; undefined where it is about all, or nothing passes beside a block */
  hearRejected(state: RateState, source: Source | undefined, now: Millis): RejectedPart | undefined {
    this.#rejections ??= new Evidence(IN_COMMON);
    if (this.#rejections.isEmpty) this.#beforeRejections = uncutOf(state);
    this.#rejections.note(source);
    if (this.#standing?.isPartial === false || this.#settings.isOfOne === true) return undefined;
    this.#parts ??= new RejectedParts();
    return this.#parts.rejected(state, source, now);
  }

  /**
   * Returns whether errors are so many that the upstream must be broken. One that has just come back, and fails in part,
   * is not: while some get through, to let none through would turn a partial failure into a total one.
   */
  hearFailed(source: Source | undefined, now: Millis): boolean {
    this.#errors.note(now, true, source);
    return now < this.#goodUntil ? this.#errors.areInRow : this.#errors.isAlarming(now);
  }

  /** One that is not about the block that stands failed, and nothing was accepted since it began: it is about that one too. */
  widen(source: Source | undefined): void {
    const block = this.#standing;
    if (block !== undefined) block.scope = commonOf(block.scope, source ?? []);
  }

  /**
   * Nothing is let through from now on, of what has this in common, but a probe at a time. While nothing has been accepted
   * since another began, what that is about stays blocked too.
   */
  begin(state: RateState, { cause, failure, seen, part }: Blocked, now: Millis): void {
    const former = this.#standing;
    const isWider = former !== undefined && this.#passedAt <= former.since;
    const scope = part === undefined ? this.#scopeOf(cause, failure) : [...part.scope];
    this.passBy(state);
    // The rejections are no limit's where they are about a part: what they cut is given back to the others.
    const uncut = cause === 'rejections' ? (part?.before ?? this.#beforeRejections) : undefined;
    const before = uncut !== undefined && uncut.rate >= state.rate ? uncut : uncutOf(state);
    const wasOpen = state.phase === 'open' || this.#reopenAt !== undefined;
    const lately = Math.max(LEAST_GOOD_RATE, seen, now < this.#goodUntil ? this.#goodRate : 0);
    // A rate that was not kept to, or has not come back yet, is not at fault: else errors would halve it again and again.
    const isComingBack = state.phase === 'restoring' && now < this.#backAt;
    const known = failure.overrun === true || isComingBack ? state.ceiling : state.rate;
    const passed = Number.isFinite(known) && !wasOpen ? known : Math.min(known, lately);
    const goodRate = Math.max(this.#settings.minRate, passed);
    if (!Number.isFinite(state.rate)) state.rate = goodRate;
    state.phase = 'blocked';
    this.#errors.clear();
    this.#standing = blockade(
      {
        cause,
        scope: isWider ? commonOf(former.scope, scope) : scope,
        goodRate,
        wasOpen,
        before,
        isResumed: false,
        patience: Math.min(PROBE_PATIENCE, this.#latest),
        interval: this.#interval,
      },
      now,
    );
    planProbe(this.#standing, failure, this.#latest, now, this.#random);
    if (part !== undefined) this.passBy(state);
  }

  /** Goes on with one that another process had made, unless one stands. */
  resume(state: RateState, { cause, scope, probeAt, asked, askedUntil }: Block, now: Millis): void {
    if (this.#standing !== undefined) return;
    const before = uncutOf(state);
    const goodRate = Number.isFinite(before.rate) ? before.rate : Math.max(this.#settings.minRate, LEAST_GOOD_RATE);
    state.rate = goodRate;
    state.phase = 'blocked';
    this.#standing = blockade(
      {
        cause,
        scope: [...scope],
        goodRate,
        wasOpen: before.phase === 'open',
        before,
        isResumed: true,
        patience: Math.min(PROBE_PATIENCE, this.#latest),
        interval: this.#interval,
      },
      now,
    );
    this.#standing.probeAt = Math.min(Math.max(now, probeAt), now + this.#latest);
    this.#standing.asked = asked;
    this.#standing.askedUntil = askedUntil;
  }

  /** Time has passed: what nobody asks for is not worth a look at each request. */
  forget(now: Millis): void {
    const block = this.#standing;
    if (block?.isPartial !== true || block.probeSentAt !== undefined) return;
    if (now - Math.max(block.probeAt, block.askedUntil) > FORGOTTEN_AFTER) this.#standing = undefined;
  }

  /** Ends with an accepted answer, if it is to a request that can tell. Returns the blockade that has ended. */
  lift(state: RateState, sentAt: Millis, now: Millis, source: Source | undefined): Blockade | undefined {
    const block = this.#standing;
    if (block === undefined || !isProof(block, sentAt, source)) return undefined;
    if (block.isResumed) this.passBy(state);
    this.#standing = undefined;
    this.#errors.clear();
    if (block.isPartial) return block;
    this.#reopenAt = undefined;
    if (block.cause === 'errors') {
      this.#backAt = now + FAST_GROWTH;
      this.#goodRate = block.goodRate;
      this.#goodUntil = now + SEEN_OVER;
      if (block.wasOpen && this.#settings.initialRate === undefined) this.#reopenAt = this.#backAt;
    }
    return block;
  }

  /** A limit was open before errors blocked it, and has come back: it is open again. */
  isOver(now: Millis): boolean {
    return this.#reopenAt !== undefined && now >= this.#reopenAt;
  }

  /** A limit was felt since: it is not to be opened. */
  settle(): void {
    this.#reopenAt = undefined;
  }

  /** What those have in common that do not get through. */
  #scopeOf(cause: BlockCause, { source }: Failure): number[] {
    if (cause === 'errors') return [...this.#errors.scope];
    const scope = this.#rejections?.scope ?? [...ANYWHERE];
    return this.#standing === undefined ? scope : commonOf(scope, source ?? ANYWHERE);
  }

  get #latest(): Millis {
    return this.#settings.maxProbeDelay ?? MAX_PROBE_DELAY;
  }
}
