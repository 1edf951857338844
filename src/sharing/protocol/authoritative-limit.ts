import type { CutCause } from '../../core/limits/limit-state.ts';
import type { LocalMeter } from '../../core/limits/local-meter.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { Quota } from '../../core/hints/hints.ts';
import type { FailedSend, RejectedSend } from '../../core/rate/failed-send.ts';
import type { EncodedUsage } from './usage-entries.ts';
import { replayUsage } from './usage-replay.ts';
import { RecentTokens } from './recent-tokens.ts';
import type { SentRequest, UsageReporter } from './usage-reporter.ts';

/** A decrease of the rate. */
export interface AppliedDecrease {
  readonly cause: CutCause;
  readonly from: PerSecond;
  readonly to: PerSecond;
  /** When the request whose outcome caused it was sent. */
  readonly sentAt: Millis;
}

/** Older reports count as made this long ago: the send histories reach no further, and a member may have stalled. */
const MAX_REPORT_AGE: Millis = 1000;

/** Orders two events of the same time. */
const JUST_BEFORE: Millis = 0.001;

/**
 * The authoritative copy of one limit. Its meter learns from the usage of all members as if it were one process's own, and
 * each leased token is one that the meter itself would admit at that time: together, the members send as one process would.
 */
export class AuthoritativeLimit<Member> {
  readonly meter: LocalMeter;
  /** The usual maximum delay of an update. */
  readonly #deliveryTime: Millis;
  #epoch = 1;
  /** The report time at which the current epoch began. */
  #epochAt = Number.NEGATIVE_INFINITY;
  /** The time of the newest usage. */
  #latestReportAt = Number.NEGATIVE_INFINITY;
  readonly #recentTokens: RecentTokens;
  /** The time of the latest leased token. */
  #leasedUntil = Number.NEGATIVE_INFINITY;
  /** The member that has the probe of the current block. */
  #probingMember: Member | undefined;
  #isProbeSent = false;

  /** @param rememberedTokens how many of the last leased tokens can be returned unspent */
  constructor(meter: LocalMeter, deliveryTime: Millis, rememberedTokens: number) {
    this.meter = meter;
    this.#deliveryTime = deliveryTime;
    this.#recentTokens = new RecentTokens(rememberedTokens);
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Learns from the usage of a member. Returns the decreases that it caused. */
  applyUsage(usage: EncodedUsage, reporter: UsageReporter<Member>, now: Millis): readonly AppliedDecrease[] {
    const wasBlocked = this.meter.phase === 'blocked';
    const decreases = this.#replayUsage(usage, reporter, now);
    if (wasBlocked !== (this.meter.phase === 'blocked')) this.startEpoch(now);
    return decreases;
  }

  /** Advances the limit to `now`. @param isWanted a request waits for a token @param late see `AdaptiveRate.advance` */
  advance(now: Millis, isWanted: boolean, late?: Millis): void {
    // A request that has a token for later waits as well.
    this.meter.advance(now, isWanted || this.#leasedUntil > now + this.#deliveryTime, late);
  }

  /** Takes the token of this time for a member. */
  take(memberId: Member, slot: Millis, now: Millis): void {
    this.#recentTokens.record(slot, this.meter.lastToken);
    // The token may arrive after its time: the next one is spaced from when it can be used.
    if (this.meter.take(slot, Math.max(slot, now + this.#deliveryTime))) {
      this.#probingMember = memberId;
      this.#isProbeSent = false;
    }
    this.#leasedUntil = Math.max(this.#leasedUntil, slot);
  }

  /** Whether the probe is sent, or another member has it. */
  isProbeOut(memberId: Member | undefined): boolean {
    return this.#probingMember !== undefined && (this.#isProbeSent || this.#probingMember !== memberId);
  }

  /** Reclaims unspent tokens, and the probe if it is not sent: the outcome of a sent one may still be reported. */
  reclaim(reporter: UsageReporter<Member>): void {
    for (; reporter.leasedTokens > 0; reporter.leasedTokens -= 1) this.meter.release();
    if (this.#probingMember === reporter.memberId && !this.#isProbeSent) this.#abandonProbe();
  }

  /** Removes all that a member had: tokens, requests in flight, and the probe. */
  removeMember(reporter: UsageReporter<Member>): void {
    this.reclaim(reporter);
    this.meter.adaptiveRate.inFlightLimiter.adjustCount(-reporter.inFlight, -reporter.unanswered); // nobody knows how long they take
    reporter.inFlight = 0;
    reporter.unanswered = 0;
    if (this.#probingMember === reporter.memberId) this.#abandonProbe();
  }

  /** Starts an epoch: all earlier tokens are void. @param epoch its number; the next one when absent */
  startEpoch(now: Millis, epoch: number = this.#epoch + 1): void {
    this.#epoch = epoch;
    this.#epochAt = this.#latestReportAt;
    this.#probingMember = undefined;
    this.#leasedUntil = now;
    this.#recentTokens.clear();
    this.meter.rewind(now + this.#deliveryTime);
  }

  #abandonProbe(): void {
    this.#probingMember = undefined;
    this.meter.abandonProbe();
  }

  #recordDecrease(
    decreases: AppliedDecrease[],
    cause: CutCause | undefined,
    [from, sentAt]: readonly [PerSecond, Millis],
    now: Millis,
  ): void {
    if (cause === undefined) return;
    decreases.push({ cause, from, to: this.meter.rate(now), sentAt });
    this.startEpoch(now);
  }

  /** A member that did not know the current epoch sent, in effect, before it began. */
  #effectiveSentAt(sentAt: Millis, send: SentRequest | undefined): Millis {
    const wasUpToDate = send === undefined || send.epoch >= this.#epoch;
    // In the first epoch, nothing precedes it.
    return wasUpToDate || !Number.isFinite(this.#epochAt) ? sentAt : Math.min(sentAt, this.#epochAt - JUST_BEFORE);
  }

  #replayUsage(usage: EncodedUsage, reporter: UsageReporter<Member>, now: Millis): AppliedDecrease[] {
    const { meter } = this;
    const decreases: AppliedDecrease[] = [];
    const clampTime = (at: Millis): Millis => {
      this.#latestReportAt = Math.min(now, Math.max(at, now - MAX_REPORT_AGE));
      return this.#latestReportAt;
    };
    const onResponse = (at: Millis): void => {
      reporter.unanswered -= 1;
      reporter.recordUnanswered(-1, at);
      meter.onResponse();
    };
    const isProbingMember = (): boolean => this.#probingMember === reporter.memberId;
    replayUsage(usage, {
      tokenReturned: () => {
        if (reporter.leasedTokens === 0) return; // reclaimed before
        reporter.leasedTokens -= 1;
        meter.release();
      },
      epochSeen: (epoch) => {
        reporter.epoch = epoch;
      },
      tokenUnused: (slot) => {
        const before = this.#recentTokens.markUnused(slot);
        if (before !== undefined) meter.rewind(before);
        if (reporter.leasedTokens === 0) return;
        reporter.leasedTokens -= 1;
        meter.release();
      },
      sent: (serial, at) => {
        const sentAt = clampTime(at);
        const inFlightAtSend = meter.onSent(sentAt);
        reporter.inFlight += 1;
        reporter.unanswered += 1;
        reporter.recordUnanswered(1, sentAt);
        reporter.recordSend(serial, {
          sentAt: at,
          epoch: reporter.epoch,
          inFlightAtSend,
          sendNumber: meter.sendCount,
        });
        if (isProbingMember()) this.#isProbeSent = true;
      },
      responded: (at) => {
        if (reporter.unanswered > 0) onResponse(clampTime(at));
      },
      ended: (at) => {
        if (reporter.inFlight === 0) return;
        reporter.inFlight -= 1;
        const endedAt = clampTime(at);
        if (reporter.unanswered > reporter.inFlight) onResponse(endedAt); // it reports no responses
        reporter.recordEnd(endedAt);
        meter.onEnded(endedAt);
      },
      accepted: (sentAt, serial, at, source) => {
        const send = reporter.takeSend(serial, sentAt);
        const from = meter.rate(now);
        const inFlightAtSend = send?.inFlightAtSend ?? 0;
        const acceptedAt = clampTime(at);
        const cause = meter.onAccepted(this.#effectiveSentAt(sentAt, send), inFlightAtSend, acceptedAt, source);
        if (serial > 0) reporter.recordLatency(at - sentAt, acceptedAt); // else it is another process's assumption
        if (cause !== undefined) decreases.push({ cause, from, to: meter.rate(now), sentAt });
        if (!meter.hasBlock) this.#probingMember = undefined;
      },
      rejected: (rejection: RejectedSend, at) => {
        const from = meter.rate(now);
        const send = reporter.takeSend(rejection.inFlightAtSend, rejection.sentAt);
        const sentAt = this.#effectiveSentAt(rejection.sentAt, send);
        const cause = meter.onRejected(
          { ...rejection, sentAt, inFlightAtSend: send?.inFlightAtSend ?? 0 },
          clampTime(at),
        );
        this.#recordDecrease(decreases, cause, [from, rejection.sentAt], now);
        if (isProbingMember() && this.#isProbeSent) this.#probingMember = undefined;
      },
      probed: (at) => {
        if (!meter.hasBlock) return; // the block has ended meanwhile
        meter.adaptiveRate.probe(clampTime(at));
        this.#probingMember = reporter.memberId;
        this.#isProbeSent = false;
      },
      blockBypassed: (at) => meter.adaptiveRate.onUnblockedSend(clampTime(at)),
      resumeBlock: (block, at) => meter.resumeBlock(block, clampTime(at)),
      failed: (failure: FailedSend, at) => {
        const from = meter.rate(now);
        const sentAt = this.#effectiveSentAt(failure.sentAt, reporter.findSend(failure.sentAt));
        const failedAt = clampTime(at);
        const isTimedLater = reporter.recordFailure(at - failure.sentAt, failedAt);
        const cause = meter.onFailed({ ...failure, sentAt, isTimedLater }, failedAt);
        this.#recordDecrease(decreases, cause, [from, failure.sentAt], now);
        if (isProbingMember() && this.#isProbeSent) this.#probingMember = undefined;
      },
      abandoned: (sentAt, at) => {
        const abandonedAt = clampTime(at);
        const isTimedLater = reporter.recordFailure(at - sentAt, abandonedAt, true);
        meter.onFailed({ sentAt, retryAfterMs: undefined, isAbandoned: true, isTimedLater }, abandonedAt);
      },
      noteQuota: (quota: Quota, sentAt, at, requester) => {
        const uncounted = meter.sendCount - (reporter.findSend(sentAt)?.sendNumber ?? meter.sendCount); // sent after the response's request
        const remaining = Math.max(0, quota.remaining - uncounted);
        meter.onQuota({ ...quota, remaining, reportedRemaining: quota.remaining }, sentAt, clampTime(at), requester);
      },
      resumeQuota: (owner, at) => meter.resumeQuota(owner, clampTime(at)),
      disownQuota: (isPerRequester, at) => meter.dropQuota(isPerRequester, clampTime(at)),
      stop: (until) => meter.stop(until),
      remember: (accepted, at) => meter.seedHistory(accepted, clampTime(at)),
      abandonProbe: () => {
        if (isProbingMember()) this.#abandonProbe();
      },
    });
    return decreases;
  }
}
