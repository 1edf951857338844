import type { Listen } from '../../core/events/proxy-events.ts';
import type { HeapItem } from '../../core/collections/binary-heap.ts';
import { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { nameNested } from '../../core/limits/limit-ref.ts';
import type { LocalMeter } from '../../core/limits/meter.ts';
import { SteeredMeter } from '../../core/limits/override-meter.ts';
import type { Steering } from '../../core/limits/operator-override.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Account, HolderId } from './worker-account.ts';
import { Borrowers } from './worker-accounts.ts';
import { KeptLimit } from '../protocol/authoritative-limit.ts';
import type { LendingTerms } from './lease-timing.ts';
import { partsAmong } from './client-weight-shares.ts';
import type { CommonTerms } from '../protocol/limit-terms.ts';
import { isNews, termsOf } from '../protocol/limit-terms.ts';
import type { LimitReport, LimitTidings, Terms } from './worker-protocol.ts';

/** Tokens lent of which it may be told that they were not spent. */
const REMEMBERED = 256;

/** One limit, and who has borrowed of it: lends its tokens to whose turn it is, and tells them how it stands. */
export class LentLimit implements HeapItem {
  readonly limit: Limit;
  readonly #kept: KeptLimit<HolderId>;
  /** Its meter in the hands of an operator, where there is an order: what is lent goes by this, what is learned by its own. */
  readonly #hand: SteeredMeter;
  readonly #terms: LendingTerms;
  readonly #listen: Listen;
  readonly #borrowers = new Borrowers();
  /** When there is something to lend to who waits. */
  wakeAt: Millis = Number.POSITIVE_INFINITY;
  heapIndex = -1;

  constructor(ref: LimitRef, meter: LocalMeter, terms: LendingTerms, listen: Listen) {
    this.#hand = new SteeredMeter(meter);
    this.limit = new Limit(ref, this.#hand);
    this.#kept = new KeptLimit(meter, terms.notice, REMEMBERED);
    this.#terms = terms;
    this.#listen = listen;
  }

  get meter(): LocalMeter {
    return this.#kept.meter;
  }

  /** Nobody has anything of it, and there is nothing to remember. */
  get isIdle(): boolean {
    return this.#kept.meter.inFlight === 0 && this.#borrowers.want === 0;
  }

  /** Whether nothing limits: whoever has not heard of it takes it so. */
  isFree(now: Millis): boolean {
    return this.#common(now).isFree;
  }

  /** From now on it is held to what an operator wants; tokens that were lent are void. */
  steer(steering: Steering, now: Millis): void {
    this.#kept.turnEpoch(now);
    this.#hand.steer(steering, now);
  }

  /** Whatever was to be waited for is waited for no longer. */
  probeNow(now: Millis): void {
    this.#kept.turnEpoch(now);
    this.#hand.probeNow(now);
  }

  join(holder: HolderId, now: Millis): void {
    this.#account(holder, now);
  }

  /** Who left has nothing any more: what it had, others may have. */
  leave(holder: HolderId): void {
    const account = this.#borrowers.get(holder);
    if (account === undefined) return;
    this.#kept.bury(account);
    this.#borrowers.close(holder);
  }

  hear(holder: HolderId, { happenings, demand }: LimitReport, now: Millis): void {
    const account = this.#account(holder, now);
    account.heardAt = now;
    this.advance(now);
    const { ref } = this.limit;
    const { upstream, scope } = ref;
    for (const { cause, from, to } of this.#kept.hear(happenings, account, now)) {
      // Pinned, no cut is in force.
      if (this.#hand.pinned !== undefined) continue;
      this.#listen({ type: 'cut', upstream, ...nameNested(ref), scope, cause, from, to });
    }
    if (demand !== undefined) this.#borrowers.note(demand, account, now);
  }

  /** Moves the limit on with time, and tells what has become of it. */
  advance(now: Millis): void {
    this.#hand.lift(now);
    this.#kept.advance(now, this.#borrowers.want > 0 && !this.#hand.isHoldingBack(now));
    const change = this.limit.takeChange(now);
    if (change !== undefined) this.#listen(change);
  }

  /** Lends what there is to lend. */
  lend(now: Millis): void {
    const { lead, horizon } = this.#terms;
    const meter = this.#hand;
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
      this.#kept.take(next.holder, slot, now);
      meter.space(slot);
      until = now + horizon; // in one go what is due until then
      this.#borrowers.serve(next, slot);
    }
  }

  /** What each leaseholder is to hear: those that borrow, and all when something has changed. */
  *tell(now: Millis): Generator<readonly [HolderId, LimitTidings]> {
    const common = this.#common(now);
    if (common.isFree) for (const account of this.#borrowers) account.want = 0;
    const parts = partsAmong(this.#borrowers, now);
    const weight = this.#borrowers.activeWeight;
    for (const account of this.#borrowers) {
      const isProbeOut = this.#kept.isProbeOut(account.holder);
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
      if (account.lent > 0 && now - account.heardAt >= this.#terms.silence) this.#kept.reclaim(account);
    }
  }

  #common(now: Millis): CommonTerms {
    const hand = this.#hand;
    const learned = termsOf(this.#kept.meter, this.#kept.epoch, this.#terms.validFor, now);
    if (hand.pinned === undefined && !hand.isStopped) return learned;
    const { phase, places, blockedUntil } = hand;
    const expectedAt = now + hand.expected(now);
    return {
      ...learned,
      phase,
      places,
      blockedUntil,
      block: undefined,
      expectedAt,
      rate: hand.rate(now),
      isFree: false,
    };
  }

  #account(holder: HolderId, now: Millis): Account {
    return this.#borrowers.open(holder, this.#kept.epoch, now);
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
}
