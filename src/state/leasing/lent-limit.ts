import type { CutCause, Listen } from '../../policy/events.ts';
import { Limit } from '../../policy/limit.ts';
import type { LimitRef } from '../../policy/limit-ref.ts';
import type { LocalMeter } from '../../policy/meter.ts';
import type { Rejection } from '../../policy/rate/rejection.ts';
import type { HeapItem } from '../../policy/heap.ts';
import type { Millis, PerSecond, Quota } from '../../policy/types.ts';
import type { Account, HolderId, Sending } from './account.ts';
import { Borrowers } from './borrowers.ts';
import { replay } from './happenings.ts';
import type { LendingTerms } from './lending-terms.ts';
import { partsAmong } from './parts.ts';
import { RecentTokens } from './recent-tokens.ts';
import { isNews, termsOf } from './terms.ts';
import type { LimitReport, LimitTidings, Terms } from './words.ts';

/** Older than what the accounts of sends have room for: a leaseholder that stood still tells of it as if it were a second ago. */
const OLDEST: Millis = 1000;

/** Of two moments, to tell which came first. */
const JUST_BEFORE: Millis = 0.001;

/**
 * One limit, and who has borrowed of it. Its meter is told what happened at every leaseholder as if it had happened here,
 * and each token that is lent is one that the meter itself would have let pass, at its time: so all of them together
 * send as one would.
 */
export class LentLimit implements HeapItem {
  readonly limit: Limit;
  readonly #meter: LocalMeter;
  readonly #terms: LendingTerms;
  readonly #listen: Listen;
  readonly #borrowers = new Borrowers();
  #epoch = 1;
  /** When the last cut was made, by the clock of what was learned. */
  #epochAt = Number.NEGATIVE_INFINITY;
  /** The time of what was learned last. */
  #learnedAt = Number.NEGATIVE_INFINITY;
  readonly #recent = new RecentTokens();
  /** The latest time for which a token has been lent. */
  #lentUntil = Number.NEGATIVE_INFINITY;
  /** Who has the probe of this blockade. */
  #prober: Account | undefined;
  #isProbeSent = false;
  /** When there is something to lend to who waits. */
  wakeAt: Millis = Number.POSITIVE_INFINITY;
  heapIndex = -1;

  constructor(ref: LimitRef, meter: LocalMeter, terms: LendingTerms, listen: Listen) {
    this.#meter = meter;
    this.limit = new Limit(ref, meter);
    this.#terms = terms;
    this.#listen = listen;
  }

  /** Nobody has anything of it, and there is nothing to remember. */
  get isIdle(): boolean {
    return this.#meter.inFlight === 0 && this.#borrowers.want === 0;
  }

  /** Whether nothing limits: whoever has not heard of it takes it so. */
  isFree(now: Millis): boolean {
    return termsOf(this.#meter, this.#epoch, this.#terms.validFor, now).isFree;
  }

  join(holder: HolderId, now: Millis): void {
    this.#account(holder, now);
  }

  /** Who left has nothing any more: what it had, others may have. */
  leave(holder: HolderId): void {
    const account = this.#borrowers.get(holder);
    if (account === undefined) return;
    this.#reclaim(account);
    for (; account.inFlight > 0; account.inFlight -= 1) this.#meter.ended();
    if (this.#prober === account) this.#abandonProbe();
    this.#borrowers.close(holder);
  }

  hear(holder: HolderId, { happenings, demand }: LimitReport, now: Millis): void {
    const account = this.#account(holder, now);
    account.heardAt = now;
    this.advance(now);
    const wasBlocked = this.#meter.phase === 'blocked';
    this.#replay(happenings, account, now);
    if (wasBlocked !== (this.#meter.phase === 'blocked')) this.#turnEpoch(now);
    if (demand !== undefined) this.#borrowers.note(demand, account, now);
  }

  /** Moves the limit on with time, and tells what has become of it. */
  advance(now: Millis): void {
    // Who has a token for later waits as well.
    this.#meter.advance(now, this.#borrowers.want > 0 || this.#lentUntil > now + this.#terms.notice);
    const { limit } = this;
    if (limit.told === this.#meter.phase) return;
    const { upstream, scope } = limit.ref;
    const from = limit.told;
    limit.told = this.#meter.phase;
    this.#listen({ type: 'limit-state', upstream, scope, from, to: limit.told });
  }

  /** Lends what there is to lend. */
  lend(now: Millis): void {
    const { lead, horizon, notice } = this.#terms;
    const meter = this.#meter;
    let until = now + lead;
    this.wakeAt = Number.POSITIVE_INFINITY;
    if (this.isFree(now)) return; // all go without
    for (let next = this.#borrowers.next(); next !== undefined; next = this.#borrowers.next()) {
      const delay = meter.delay(now);
      const isBlocked = meter.phase === 'blocked';
      if (delay === Number.POSITIVE_INFINITY || (isBlocked && delay > 0) || now + delay > until) {
        this.wakeAt = this.#lookAgain(now, delay, isBlocked);
        return;
      }
      const slot = now + delay;
      this.#recent.note(slot, meter.lastToken);
      // By the time it arrives, its own may be over: what follows it is to follow when it is used.
      if (meter.take(slot, Math.max(slot, now + notice))) {
        this.#prober = next;
        this.#isProbeSent = false;
      }
      until = now + horizon; // in one go what is due until then
      this.#lentUntil = Math.max(this.#lentUntil, slot);
      this.#borrowers.serve(next, slot);
    }
  }

  /** What each leaseholder is to hear: those that borrow, and all when something has changed. */
  *tell(now: Millis): Generator<readonly [HolderId, LimitTidings]> {
    const common = termsOf(this.#meter, this.#epoch, this.#terms.validFor, now);
    if (common.isFree) for (const account of this.#borrowers) account.want = 0;
    const parts = partsAmong(this.#borrowers, now);
    const weight = this.#borrowers.activeWeight;
    for (const account of this.#borrowers) {
      const isProbeOut = this.#prober !== undefined && (this.#isProbeSent || this.#prober !== account);
      const terms: Terms = { ...common, isProbeOut, others: Math.max(0, weight - account.activeWeight) };
      const { told, slots } = account;
      const ownParts = parts.get(account) ?? [];
      const written = ownParts.join();
      const isOther = written !== account.toldParts;
      if (slots.length === 0 && !isOther && told !== undefined && !isNews(told, terms)) continue;
      account.told = terms;
      account.toldParts = written;
      account.slots = [];
      const tidings = { ref: this.limit.ref, terms, slots };
      yield [account.holder, isOther ? { ...tidings, parts: ownParts } : tidings];
    }
  }

  /** Takes back what was lent to leaseholders that have been silent for too long. */
  reclaimSilent(now: Millis): void {
    for (const account of this.#borrowers) {
      if (account.lent === 0 || now - account.heardAt < this.#terms.silence) continue;
      this.#reclaim(account);
      if (this.#prober === account && !this.#isProbeSent) this.#abandonProbe();
    }
  }

  #account(holder: HolderId, now: Millis): Account {
    return this.#borrowers.open(holder, this.#epoch, now);
  }

  /** When tokens are next to be lent; or, where an end is awaited, when to believe that it will not be told. */
  #lookAgain(now: Millis, delay: Millis, isBlocked: boolean): Millis {
    const { lead, silence } = this.#terms;
    const due = now + delay - (isBlocked ? 0 : lead);
    if (!isBlocked && delay < Number.POSITIVE_INFINITY) return due;
    let at = due;
    for (const { lent, heardAt } of this.#borrowers) if (lent > 0) at = Math.min(at, heardAt + silence);
    return Math.max(at, now + lead);
  }

  #reclaim(account: Account): void {
    for (; account.lent > 0; account.lent -= 1) this.#meter.giveBack();
  }

  #abandonProbe(): void {
    this.#prober = undefined;
    this.#meter.abandonProbe();
  }

  #turnEpoch(now: Millis): void {
    this.#epoch += 1;
    this.#epochAt = this.#learnedAt;
    this.#prober = undefined;
    this.#lentUntil = now;
    this.#recent.clear();
    this.#meter.rewind(now + this.#terms.notice);
  }

  #tellCut(cause: CutCause | undefined, from: PerSecond, now: Millis): void {
    if (cause === undefined) return;
    const { upstream, scope } = this.limit.ref;
    this.#listen({ type: 'cut', upstream, scope, cause, from, to: this.#meter.rate(now) });
    this.#turnEpoch(now);
  }

  /** Who had not heard of the last cut sent as if before it, however late that was. */
  #leftAt(sentAt: Millis, sending: Sending | undefined): Millis {
    return sending === undefined || sending.epoch >= this.#epoch
      ? sentAt
      : Math.min(sentAt, this.#epochAt - JUST_BEFORE);
  }

  #replay(happenings: readonly number[], account: Account, now: Millis): void {
    const meter = this.#meter;
    const within = (at: Millis): Millis => {
      this.#learnedAt = Math.min(now, Math.max(at, now - OLDEST));
      return this.#learnedAt;
    };
    replay(happenings, {
      givenBack: () => {
        if (account.lent === 0) return; // it has been taken back
        account.lent -= 1;
        meter.giveBack();
      },
      epoch: (epoch) => {
        account.epoch = epoch;
      },
      unspent: (slot) => {
        const before = this.#recent.unspent(slot);
        if (before !== undefined) meter.rewind(before);
        if (account.lent === 0) return;
        account.lent -= 1;
        meter.giveBack();
      },
      sent: (serial, at) => {
        const among = meter.sent(within(at));
        account.inFlight += 1;
        account.noteSending(serial, { sentAt: at, epoch: account.epoch, among, number: meter.sends });
        if (this.#prober === account) this.#isProbeSent = true;
      },
      ended: () => {
        if (account.inFlight === 0) return;
        account.inFlight -= 1;
        meter.ended();
      },
      accepted: (sentAt, serial, at) => {
        const sending = account.takeSending(serial);
        meter.accepted(this.#leftAt(sentAt, sending), sending?.among ?? 0, within(at));
      },
      rejected: (rejection: Rejection, at) => {
        const from = meter.rate(now);
        const sending = account.takeSending(rejection.among);
        const sentAt = this.#leftAt(rejection.sentAt, sending);
        const cause = meter.rejected({ ...rejection, sentAt, among: sending?.among ?? 0 }, within(at));
        this.#tellCut(cause, from, now);
        if (this.#prober === account && this.#isProbeSent) this.#prober = undefined;
      },
      failed: (sentAt, at, retryAfter, overrun) => {
        const from = meter.rate(now);
        const leftAt = this.#leftAt(sentAt, account.findSending(sentAt));
        this.#tellCut(meter.failed(leftAt, within(at), retryAfter, overrun), from, now);
        if (this.#prober === account && this.#isProbeSent) this.#prober = undefined;
      },
      noteQuota: (quota: Quota, sentAt, at) => {
        const uncounted = meter.sends - (account.findSending(sentAt)?.number ?? meter.sends); // what was sent after it
        const remaining = Math.max(0, quota.remaining - uncounted);
        meter.noteQuota({ ...quota, remaining }, sentAt, within(at));
      },
      stop: (until) => meter.stop(until),
      remember: (accepted, at) => meter.remember(accepted, within(at)),
      abandonProbe: () => {
        if (this.#prober === account) this.#abandonProbe();
      },
    });
  }
}
