import type { CutCause, LimitState } from './events.ts';
import { SendAccount } from './rate/account.ts';
import type { Blockade } from './rate/block.ts';
import {
  ErrorAccount,
  expectedEnd,
  isProof,
  planProbe,
  probeDelay,
  probeOverdue,
  REJECTED_IN_ROW,
} from './rate/block.ts';
import { cutAgain, cutFirst, isSameEpoch, noteCost, noteLoss, SENT_PER_REJECTION, settleCut } from './rate/cut.ts';
import { measure } from './rate/measure.ts';
import { Places, PlacesEvidence } from './rate/places.ts';
import { grow, isApplicationLimited, isCalm } from './rate/grow.ts';
import type { RateSettings, RateState } from './rate/state.ts';
import { clamp, FAST_GROWTH, makeRateState } from './rate/state.ts';
import type { Millis, PerSecond, Random } from './types.ts';

/** A longer gap says that we slept (a closed laptop, a paused container), not that the upstream was calm. */
const LONGEST_STEP: Millis = 1000;
/** While the limit is overrun, rejections in a row say that nothing passes when this long nothing was accepted. */
const NOTHING_PASSES: Millis = 1000;
/** With little seen before the upstream broke, come back to at least this. */
const LEAST_GOOD_RATE: PerSecond = 5;

export interface Rejection {
  /** When the rejected request was sent. */
  readonly sentAt: Millis;
  /** Requests in flight when it was sent, itself included; 0 where that is not known. */
  readonly among: number;
  readonly retryAfter: Millis | undefined;
  /** Among how many clients its Retry-After is shared: it holds only one of them. */
  readonly activeClients: number;
  /** More was being sent than the rate allows: it says what the limit is, and nothing of the rate. */
  readonly overrun?: boolean;
}

/**
 * The adaptive rate of one limit: feels for it, remembers where it was, backs off and comes back slowly.
 *
 *     open ─429─► backoff ─accepted─► cooldown ─hold over─► restoring ─long calm─► open
 *        any ─nothing gets through─► blocked ─probe accepted─► cooldown, or restoring
 *
 * Pure: fed by events, each with its time. It decides a rate; the pacer spaces requests by it.
 */
export class AdaptiveRate {
  readonly #settings: RateSettings;
  readonly #random: Random;
  readonly #state: RateState;
  readonly #recent = new SendAccount(50, 24);
  readonly #errors = new ErrorAccount();
  readonly #long = new SendAccount(1000, 128);
  readonly #evidence = new PlacesEvidence();
  /** Held when the limit turned out to be on requests in flight. */
  #places: Places | undefined;
  #inFlight = 0;
  #block: Blockade | undefined;
  #advancedAt = Number.NEGATIVE_INFINITY;
  #acceptedAt = Number.NEGATIVE_INFINITY;
  /** After errors on an open limit: open again when this has passed. */
  #reopenAt: Millis | undefined;

  constructor(settings: RateSettings, random: Random) {
    this.#settings = settings;
    this.#random = random;
    this.#state = makeRateState(settings);
  }

  get phase(): LimitState {
    return this.#state.phase;
  }

  /** Infinity while open and unbounded. While blocked: what it is expected to come back to. */
  get rate(): PerSecond {
    return this.#state.rate;
  }

  /** What requests are spaced by. With places in flight, their number is the limit and `rate` is what comes of it. */
  get pace(): PerSecond {
    return this.#places === undefined ? this.#state.rate : this.#settings.maxRate;
  }

  /** How many may be in flight; Infinity where that is not what is limited. */
  get places(): number {
    return this.#places?.size ?? Number.POSITIVE_INFINITY;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get ceiling(): PerSecond {
    return this.#state.ceiling;
  }

  /** Until when nothing but a probe passes. */
  get blockedUntil(): Millis | undefined {
    return this.#block?.probeAt;
  }

  /** How long the blockade keeps a request from leaving: 0 when there is none, or when this request may be the probe. */
  delay(now: Millis): Millis {
    if (this.#block !== undefined) return probeDelay(this.#block, now);
    return this.#inFlight < this.places ? 0 : Number.POSITIVE_INFINITY;
  }

  /** For how long a probe has been due and none has left; 0 when none is due. */
  overdue(now: Millis): Millis {
    return this.#block === undefined ? 0 : probeOverdue(this.#block, now);
  }

  /** As `delay`; while a probe is out, how long until its answer has changed things may be expected to take. */
  expected(now: Millis): Millis {
    if (this.#block !== undefined) return expectedEnd(this.#block, now);
    return this.#inFlight < this.places ? 0 : 1000 / this.#state.rate;
  }

  /** To be called when `delay` was 0 and the request is let go: while blocked, it is the probe. */
  admit(now: Millis): void {
    if (this.#block !== undefined) this.#block.probeSentAt = now;
  }

  /** An admitted request was not sent after all: if it was the probe, another may go. */
  abandon(): void {
    if (this.#block !== undefined) this.#block.probeSentAt = undefined;
  }

  /** What a limit that is made at its first rejection has to know of the time before: requests accepted a second. */
  remember(accepted: PerSecond, now: Millis): void {
    this.#recent.preload(now, accepted);
    this.#long.preload(now, accepted);
  }

  sent(now: Millis): number {
    this.#recent.sent(now);
    this.#long.sent(now);
    this.#state.cycleSent += 1;
    this.#inFlight += 1;
    return this.#inFlight;
  }

  ended(): boolean {
    this.#inFlight -= 1;
    return this.#places !== undefined && this.#inFlight < this.#places.size;
  }

  /** An answer that is neither a rejection nor a sign of a broken upstream. */
  accepted(sentAt: Millis, among: number, now: Millis): void {
    if (among > 0) this.#evidence.accepted(among);
    this.#places?.accepted();
    const state = this.#state;
    const rtt = now - sentAt;
    state.smoothedRtt = state.smoothedRtt === 0 ? rtt : state.smoothedRtt + (rtt - state.smoothedRtt) / 8; // RFC 6298
    state.rejectedInRow = 0;
    this.#acceptedAt = now;
    this.#errors.note(now, false);
    if (this.#block !== undefined) {
      if (isProof(this.#block, sentAt)) this.#unblock(this.#block, sentAt, now);
    } else if (state.phase === 'backoff' && sentAt >= state.cutAt) {
      state.phase = 'cooldown';
      state.risingSince = state.cutAt;
    }
  }

  /** A 429 that speaks of this limit. Returns the cause if it was cut. */
  rejected(
    { sentAt, among, retryAfter, activeClients, overrun = false }: Rejection,
    now: Millis,
  ): CutCause | undefined {
    const state = this.#state;
    this.#recent.rejected(sentAt);
    this.#long.rejected(sentAt);
    if (sentAt >= state.cutAt) state.cycleRejected += 1;
    if (state.phase === 'cooldown' || state.phase === 'restoring') noteLoss(state);
    state.lost += 1;
    state.lastRejectedAt = now;
    // What left before anything was limited came in a flock, and is rejected in one.
    if (state.phase === 'open') state.found = 'first';
    else if (state.found !== 'first' || sentAt > state.cutAt) state.rejectedInRow += 1;
    if (retryAfter !== undefined) noteCost(state, retryAfter / 1000 / Math.max(1, activeClients));

    if (this.#block !== undefined) {
      this.#failProbe(this.#block, sentAt, now, retryAfter);
      return undefined;
    }
    const cause = this.#cut(sentAt, overrun ? 0 : among, now, overrun);
    // Where rejections are many by our own doing, some of them come in a row.
    if (state.rejectedInRow >= REJECTED_IN_ROW && !(overrun && now - this.#acceptedAt < NOTHING_PASSES)) {
      this.#enterBlock('rejections', now, retryAfter, overrun);
      return 'blocked';
    }
    return cause;
  }

  /** No answer, or one that says that the upstream is broken. Returns the cause if nothing is let through any more. */
  failed(sentAt: Millis, now: Millis, retryAfter: Millis | undefined, overrun = false): CutCause | undefined {
    this.#errors.note(now, true);
    if (this.#block !== undefined) {
      this.#failProbe(this.#block, sentAt, now, retryAfter);
      return undefined;
    }
    if (!this.#errors.isAlarming(now)) return undefined;
    this.#enterBlock('errors', now, retryAfter, overrun);
    return 'errors';
  }

  /** Moves on with time. `queued`: whether requests wait for this limit. */
  advance(now: Millis, queued: boolean): void {
    const state = this.#state;
    const since = state.phase === 'cooldown' ? Math.max(this.#advancedAt, state.holdUntil) : this.#advancedAt;
    const elapsed = clamp(now - since, 0, LONGEST_STEP);
    this.#advancedAt = now;
    if (state.phase === 'cooldown' && now >= state.holdUntil) state.phase = 'restoring';
    if (state.phase !== 'restoring') return;
    if (this.#places !== undefined) return this.#growPlaces(this.#places, now, queued);
    if (this.#reopenAt !== undefined && now >= this.#reopenAt) return this.#open();
    if (!isApplicationLimited(state, this.#recent, now, queued)) {
      grow(state, this.#settings, this.#recent, now, elapsed);
    } else if (isCalm(state, now) && this.#settings.initialRate === undefined) {
      this.#open();
    }
  }

  #growPlaces(places: Places, now: Millis, queued: boolean): void {
    const state = this.#state;
    state.rate = clamp(this.#recent.acceptedRate(now, 1000), this.#settings.minRate, this.#settings.maxRate);
    if (queued) places.grow(now, state.rate, SENT_PER_REJECTION * state.usualLoss);
    else if (isCalm(state, now) && this.#settings.initialRate === undefined) this.#open();
  }

  #cut(sentAt: Millis, among: number, now: Millis, overrun: boolean): CutCause | undefined {
    const state = this.#state;
    this.#places?.rejected(now);
    if (state.phase === 'backoff') return undefined;
    if (state.phase !== 'open' && isSameEpoch(state, sentAt)) return undefined;
    this.#reopenAt = undefined;
    if (this.#places !== undefined) return this.#cutPlaces(this.#places, now);
    const felt = among > 0 ? this.#evidence.rejected(among) : undefined;
    if (felt !== undefined) {
      this.#places = new Places(felt - 1, now);
      return this.#cutPlaces(this.#places, now);
    }
    if (state.phase === 'open') {
      settleCut(state, this.#settings, cutFirst(state, this.#recent, now), now, this.#random);
      return 'first';
    }
    if (overrun) return measure(state, this.#settings, this.#long, sentAt, now, this.#random);
    const { rate, cause } = cutAgain(state, this.#long, now);
    settleCut(state, this.#settings, rate, now, this.#random);
    return cause;
  }

  #cutPlaces(places: Places, now: Millis): CutCause {
    const state = this.#state;
    const rate = this.#recent.acceptedRate(now, 1000);
    if (places.isStrained) {
      this.#places = undefined;
      this.#evidence.forget();
    }
    settleCut(state, this.#settings, rate, now, this.#random);
    state.ceiling = state.rate;
    return 'places';
  }

  #open(): void {
    const state = this.#state;
    this.#places = undefined;
    this.#reopenAt = undefined;
    state.phase = 'open';
    state.rate = this.#settings.maxRate;
    state.ceiling = this.#settings.maxRate;
    state.usualLoss = 1;
    state.lost = 0;
    state.cost = 0;
  }

  #enterBlock(cause: Blockade['cause'], now: Millis, retryAfter: Millis | undefined, overrun: boolean): void {
    const state = this.#state;
    const wasOpen = state.phase === 'open' || this.#reopenAt !== undefined;
    const seen = Math.max(LEAST_GOOD_RATE, this.#long.acceptedRate(now, 10_000));
    // A rate that was not kept to is not at fault: else errors that go on would halve it again and again.
    const goodRate = Math.max(this.#settings.minRate, Math.min(overrun ? state.ceiling : state.rate, seen));
    if (!Number.isFinite(state.rate)) state.rate = goodRate;
    this.#reopenAt = undefined;
    this.#block = {
      since: now,
      cause,
      goodRate,
      wasOpen,
      probes: 0,
      shutAt: now,
      probeAt: now,
      probeSentAt: undefined,
    };
    state.phase = 'blocked';
    planProbe(this.#block, now, retryAfter, this.#random);
  }

  /** An answer to what had left before the blockade tells nothing new, nor, where we observe, to what passed it by. */
  #failProbe(block: Blockade, sentAt: Millis, now: Millis, retryAfter: Millis | undefined): void {
    if (sentAt < block.probeAt) return; // no probe
    block.probes += 1;
    block.shutAt = sentAt;
    planProbe(block, now, retryAfter, this.#random);
  }

  /** After rejections: what was accepted over a span that outweighs the blackout. After errors: half of what was good. */
  #unblock(block: Blockade, sentAt: Millis, now: Millis): void {
    const state = this.#state;
    const endedAt = (block.shutAt + sentAt) / 2; // somewhere between the last probe that failed and the one that did not
    const blackout = endedAt - block.since;
    this.#block = undefined;
    this.#advancedAt = now; // nothing grows before
    this.#errors.clear();
    if (block.cause === 'rejections') {
      noteCost(state, blackout / 1000);
      const since = Number.isFinite(state.risingSince)
        ? endedAt - state.risingSince
        : this.#long.busyFor(endedAt, this.#long.span);
      const shortest = Math.max(1000, 2 * blackout);
      const trickled = state.cycleSent - state.cycleRejected - 1; // without the probe
      const over = block.since - state.cutAt;
      const isTrickle = trickled >= 4 && over >= Math.max(100, 1.5 * state.smoothedRtt);
      const trickle = isTrickle ? (1000 * trickled) / over : Number.POSITIVE_INFINITY;
      const best = Math.min(trickle, this.#long.bestRate(endedAt, shortest, Math.max(shortest, since)));
      const accepted = Math.max(this.#settings.minRate, best, state.found === 'first' ? 0 : state.ceiling / 2);
      if (state.found !== 'first' && accepted < 0.7 * state.ceiling) state.found = 'moved';
      // Between what passed and what did not.
      const ceiling = state.found === 'moved' ? (accepted + state.ceiling) / 2 : accepted;
      state.ceiling = Math.min(ceiling, this.#settings.maxRate);
      settleCut(state, this.#settings, 0.95 * accepted, now, this.#random);
      state.phase = 'cooldown';
      state.risingSince = now;
      return;
    }
    state.ceiling = Math.min(block.goodRate, this.#settings.maxRate);
    settleCut(state, this.#settings, block.goodRate / 2, now, this.#random);
    state.growFor = FAST_GROWTH;
    state.phase = 'restoring';
    if (block.wasOpen && this.#settings.initialRate === undefined) this.#reopenAt = now + FAST_GROWTH;
  }
}
