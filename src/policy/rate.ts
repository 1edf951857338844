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
import { cutAgain, cutFirst, isSameEpoch, noteCost, noteLoss, settleCut } from './rate/cut.ts';
import { measure } from './rate/measure.ts';
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

  get ceiling(): PerSecond {
    return this.#state.ceiling;
  }

  /** Until when nothing but a probe passes. */
  get blockedUntil(): Millis | undefined {
    return this.#block?.probeAt;
  }

  /** How long the blockade keeps a request from leaving: 0 when there is none, or when this request may be the probe. */
  delay(now: Millis): Millis {
    return this.#block === undefined ? 0 : probeDelay(this.#block, now);
  }

  /** For how long a probe has been due and none has left; 0 when none is due. */
  overdue(now: Millis): Millis {
    return this.#block === undefined ? 0 : probeOverdue(this.#block, now);
  }

  /** As `delay`; while a probe is out, how long until its answer has changed things may be expected to take. */
  expected(now: Millis): Millis {
    return this.#block === undefined ? 0 : expectedEnd(this.#block, now);
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

  sent(now: Millis): void {
    this.#recent.sent(now);
    this.#long.sent(now);
    this.#state.cycleSent += 1;
  }

  /** An answer that is neither a rejection nor a sign of a broken upstream. */
  accepted(sentAt: Millis, now: Millis): void {
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
  rejected({ sentAt, retryAfter, activeClients, overrun = false }: Rejection, now: Millis): CutCause | undefined {
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
    const cause = this.#cut(sentAt, now, overrun);
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
    if (this.#reopenAt !== undefined && now >= this.#reopenAt) return this.#open();
    if (queued || !isApplicationLimited(state, this.#recent, now)) {
      grow(state, this.#settings, this.#recent, now, elapsed);
    } else if (isCalm(state, now) && this.#settings.initialRate === undefined) {
      this.#open();
    }
  }

  #cut(sentAt: Millis, now: Millis, overrun: boolean): CutCause | undefined {
    const state = this.#state;
    if (state.phase === 'backoff') return undefined;
    if (state.phase !== 'open' && isSameEpoch(state, sentAt)) return undefined;
    this.#reopenAt = undefined;
    if (state.phase === 'open') {
      settleCut(state, this.#settings, cutFirst(state, this.#recent, now), now, this.#random);
      return 'first';
    }
    if (overrun) return measure(state, this.#settings, this.#long, sentAt, now, this.#random);
    const { rate, cause } = cutAgain(state, this.#long, now);
    settleCut(state, this.#settings, rate, now, this.#random);
    return cause;
  }

  #open(): void {
    const state = this.#state;
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
      const best = this.#long.bestRate(endedAt, shortest, Math.max(shortest, since));
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
