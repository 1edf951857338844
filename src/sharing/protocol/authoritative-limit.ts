import type { CutCause } from '../../core/events/proxy-events.ts';
import type { LocalMeter } from '../../core/limits/meter.ts';
import type { Millis, PerSecond, Quota } from '../../core/exchange/attempt-outcome.ts';
import type { Failure, Rejection } from '../../core/rate/failed-send.ts';
import type { Happenings } from './usage-entries.ts';
import { replay } from './usage-replay.ts';
import { RecentTokens } from './recent-tokens.ts';

/** A request that was sent, as all leaseholders together count. */
export interface Sending {
  readonly sentAt: Millis;
  /** What its leaseholder knew of. */
  readonly epoch: number;
  /** Requests in flight when it was sent, itself included. */
  readonly among: number;
  /** Which of all sends it is; undefined where that is not known. */
  readonly number: number | undefined;
}

/** Who reports, as far as learning from it goes. */
export interface Reporter<Holder> {
  readonly holder: Holder;
  /** Tokens lent to it, and neither spent nor given back. */
  lent: number;
  inFlight: number;
  /** The epoch that it knows of. */
  epoch: number;
  noteSending(serial: number, sending: Sending): void;
  /** Undefined where that is not known any more, or was told of before. */
  takeSending(serial: number, sentAt: Millis): Sending | undefined;
  findSending(sentAt: Millis): Sending | undefined;
  noteEnd(at: Millis): void;
}

/** The rate was cut. */
export interface CutTold {
  readonly cause: CutCause;
  readonly from: PerSecond;
  readonly to: PerSecond;
  /** When what told of it was sent. */
  readonly sentAt: Millis;
}

/** Older than what the accounts of sends have room for: a leaseholder that stood still tells of it as if it were a second ago. */
const OLDEST: Millis = 1000;

/** Of two moments, to tell which came first. */
const JUST_BEFORE: Millis = 0.001;

/**
 * One limit, as who keeps it for many knows it. Its meter is told what happened at every leaseholder as if it had happened
 * here, and each token that is lent is one that the meter itself would have let pass, at its time: so all of them together
 * send as one would.
 */
export class KeptLimit<Holder> {
  readonly meter: LocalMeter;
  /** How long tidings take to arrive, at most, as a rule. */
  readonly #notice: Millis;
  #epoch = 1;
  /** When the last cut was made, by the clock of what was learned. */
  #epochAt = Number.NEGATIVE_INFINITY;
  /** The time of what was learned last. */
  #learnedAt = Number.NEGATIVE_INFINITY;
  readonly #recent: RecentTokens;
  /** The latest time for which a token has been lent. */
  #lentUntil = Number.NEGATIVE_INFINITY;
  /** Who has the probe of this blockade. */
  #prober: Holder | undefined;
  #isProbeSent = false;

  /** @param remembered tokens that are lent, and of which it may be told that they were not spent */
  constructor(meter: LocalMeter, notice: Millis, remembered: number) {
    this.meter = meter;
    this.#notice = notice;
    this.#recent = new RecentTokens(remembered);
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Learns from what happened there. Returns what has cut the rate. */
  hear(happenings: Happenings, reporter: Reporter<Holder>, now: Millis): readonly CutTold[] {
    const wasBlocked = this.meter.phase === 'blocked';
    const cuts = this.#replay(happenings, reporter, now);
    if (wasBlocked !== (this.meter.phase === 'blocked')) this.turnEpoch(now);
    return cuts;
  }

  /** Moves the limit on with time. @param isWanted somebody waits for a token @param late as of `AdaptiveRate.advance` */
  advance(now: Millis, isWanted: boolean, late?: Millis): void {
    // Who has a token for later waits as well.
    this.meter.advance(now, isWanted || this.#lentUntil > now + this.#notice, late);
  }

  /** Takes the token of this time for a leaseholder. */
  take(holder: Holder, slot: Millis, now: Millis): void {
    this.#recent.note(slot, this.meter.lastToken);
    // By the time it arrives, its own may be over: what follows it is to follow when it is used.
    if (this.meter.take(slot, Math.max(slot, now + this.#notice))) {
      this.#prober = holder;
      this.#isProbeSent = false;
    }
    this.#lentUntil = Math.max(this.#lentUntil, slot);
  }

  /** Whether the probe is out, and not in the hands of this one to be sent. */
  isProbeOut(holder: Holder | undefined): boolean {
    return this.#prober !== undefined && (this.#isProbeSent || this.#prober !== holder);
  }

  /** Takes back what was lent. Of the probe, unless it is on its way: its answer may still be told. */
  reclaim(reporter: Reporter<Holder>): void {
    for (; reporter.lent > 0; reporter.lent -= 1) this.meter.giveBack();
    if (this.#prober === reporter.holder && !this.#isProbeSent) this.#abandonProbe();
  }

  /** One that is gone has nothing any more, nor anything on its way. */
  bury(reporter: Reporter<Holder>): void {
    this.reclaim(reporter);
    for (; reporter.inFlight > 0; reporter.inFlight -= 1) this.meter.ended();
    if (this.#prober === reporter.holder) this.#abandonProbe();
  }

  /** From now on all earlier tokens are void. @param epoch what it is called; the next unless given */
  turnEpoch(now: Millis, epoch: number = this.#epoch + 1): void {
    this.#epoch = epoch;
    this.#epochAt = this.#learnedAt;
    this.#prober = undefined;
    this.#lentUntil = now;
    this.#recent.clear();
    this.meter.rewind(now + this.#notice);
  }

  #abandonProbe(): void {
    this.#prober = undefined;
    this.meter.abandonProbe();
  }

  #noteCut(
    cuts: CutTold[],
    cause: CutCause | undefined,
    [from, sentAt]: readonly [PerSecond, Millis],
    now: Millis,
  ): void {
    if (cause === undefined) return;
    cuts.push({ cause, from, to: this.meter.rate(now), sentAt });
    this.turnEpoch(now);
  }

  /** Who had not heard of the last cut sent as if before it, however late that was. */
  #leftAt(sentAt: Millis, sending: Sending | undefined): Millis {
    const knew = sending === undefined || sending.epoch >= this.#epoch;
    // Where nothing was cut yet there is no before.
    return knew || !Number.isFinite(this.#epochAt) ? sentAt : Math.min(sentAt, this.#epochAt - JUST_BEFORE);
  }

  #replay(happenings: Happenings, reporter: Reporter<Holder>, now: Millis): CutTold[] {
    const { meter } = this;
    const cuts: CutTold[] = [];
    const within = (at: Millis): Millis => {
      this.#learnedAt = Math.min(now, Math.max(at, now - OLDEST));
      return this.#learnedAt;
    };
    const isProber = (): boolean => this.#prober === reporter.holder;
    replay(happenings, {
      givenBack: () => {
        if (reporter.lent === 0) return; // it has been taken back
        reporter.lent -= 1;
        meter.giveBack();
      },
      epoch: (epoch) => {
        reporter.epoch = epoch;
      },
      unspent: (slot) => {
        const before = this.#recent.unspent(slot);
        if (before !== undefined) meter.rewind(before);
        if (reporter.lent === 0) return;
        reporter.lent -= 1;
        meter.giveBack();
      },
      sent: (serial, at) => {
        const among = meter.sent(within(at));
        reporter.inFlight += 1;
        reporter.noteSending(serial, { sentAt: at, epoch: reporter.epoch, among, number: meter.sends });
        if (isProber()) this.#isProbeSent = true;
      },
      ended: (at) => {
        if (reporter.inFlight === 0) return;
        reporter.inFlight -= 1;
        reporter.noteEnd(within(at));
        meter.ended();
      },
      accepted: (sentAt, serial, at, source) => {
        const sending = reporter.takeSending(serial, sentAt);
        meter.accepted(this.#leftAt(sentAt, sending), sending?.among ?? 0, within(at), source);
        if (!meter.isBlocking) this.#prober = undefined;
      },
      rejected: (rejection: Rejection, at) => {
        const from = meter.rate(now);
        const sending = reporter.takeSending(rejection.among, rejection.sentAt);
        const sentAt = this.#leftAt(rejection.sentAt, sending);
        const cause = meter.rejected({ ...rejection, sentAt, among: sending?.among ?? 0 }, within(at));
        this.#noteCut(cuts, cause, [from, rejection.sentAt], now);
        if (isProber() && this.#isProbeSent) this.#prober = undefined;
      },
      probed: (at) => {
        if (!meter.isBlocking) return; // it has ended meanwhile
        meter.probe(within(at));
        this.#prober = reporter.holder;
        this.#isProbeSent = false;
      },
      passedBy: (at) => meter.passBy(within(at)),
      resumeBlock: (block, at) => meter.resumeBlock(block, within(at)),
      failed: (failure: Failure, at) => {
        const from = meter.rate(now);
        const sentAt = this.#leftAt(failure.sentAt, reporter.findSending(failure.sentAt));
        const cause = meter.failed({ ...failure, sentAt }, within(at));
        this.#noteCut(cuts, cause, [from, failure.sentAt], now);
        if (isProber() && this.#isProbeSent) this.#prober = undefined;
      },
      noteQuota: (quota: Quota, sentAt, at, requester) => {
        const uncounted = meter.sends - (reporter.findSending(sentAt)?.number ?? meter.sends); // what was sent after it
        const remaining = Math.max(0, quota.remaining - uncounted);
        meter.noteQuota({ ...quota, remaining, told: quota.remaining }, sentAt, within(at), requester);
      },
      resumeQuota: (owner, at) => meter.resumeQuota(owner, within(at)),
      disownQuota: (isApart, at) => meter.disownQuota(isApart, within(at)),
      stop: (until) => meter.stop(until),
      remember: (accepted, at) => meter.remember(accepted, within(at)),
      abandonProbe: () => {
        if (isProber()) this.#abandonProbe();
      },
    });
    return cuts;
  }
}
