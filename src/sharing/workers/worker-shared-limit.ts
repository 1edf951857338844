import type { EventSink } from '../../core/events/proxy-events.ts';
import type { HeapItem } from '../../core/collections/binary-heap.ts';
import { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { nestedLimitField } from '../../core/limits/limit-ref.ts';
import type { LocalMeter } from '../../core/limits/local-meter.ts';
import { OverrideMeter } from '../../core/limits/override-meter.ts';
import type { OperatorOverride } from '../../core/limits/operator-override.ts';
import type { Millis } from '../../core/scalars.ts';
import type { WorkerAccount, WorkerId } from './worker-account.ts';
import { WorkerAccounts } from './worker-accounts.ts';
import { AuthoritativeLimit } from '../protocol/authoritative-limit.ts';
import type { LeaseTiming } from './lease-timing.ts';
import type { CommonLimitTerms, LimitTerms } from '../protocol/limit-terms.ts';
import { concurrencyTerms, haveTermsChanged, termsFromMeter } from '../protocol/limit-terms.ts';
import type { LimitUsageReport, LimitUpdate } from './worker-protocol.ts';

/** The last tokens leased, which can be returned unspent. */
const TOKENS_REMEMBERED = 256;

/** One limit with its workers' accounts: leases tokens by turns, and sends each worker its terms. */
export class WorkerSharedLimit implements HeapItem {
  readonly limit: Limit;
  readonly #authoritative: AuthoritativeLimit<WorkerId>;
  /** The meter with the operator's override: it paces leases, while the meter beneath learns. */
  readonly #overrideMeter: OverrideMeter;
  readonly #timing: LeaseTiming;
  readonly #listen: EventSink;
  readonly #accounts = new WorkerAccounts();
  /** When a token may be due for a waiting worker. */
  wakeAt: Millis = Number.POSITIVE_INFINITY;
  heapIndex = -1;

  constructor(ref: LimitRef, meter: LocalMeter, timing: LeaseTiming, listen: EventSink) {
    this.#overrideMeter = new OverrideMeter(meter);
    this.limit = new Limit(ref, this.#overrideMeter);
    this.#authoritative = new AuthoritativeLimit(meter, timing.deliveryTime, TOKENS_REMEMBERED);
    this.#timing = timing;
    this.#listen = listen;
  }

  get meter(): LocalMeter {
    return this.#authoritative.meter;
  }

  /** No worker has a request in flight or waiting. */
  get isIdle(): boolean {
    return this.#authoritative.meter.inFlight === 0 && this.#accounts.want === 0;
  }

  /** Whether nothing limits, as a worker without terms assumes. */
  isUnlimited(now: Millis): boolean {
    return this.#commonTerms(now).isUnlimited;
  }

  /** Applies an operator's override. Leased tokens are void. */
  setOverride(override: OperatorOverride, now: Millis): void {
    this.#authoritative.startEpoch(now);
    this.#overrideMeter.setOverride(override, now);
  }

  /** Ends all stops: the next request may leave, as a probe. */
  probeNow(now: Millis): void {
    this.#authoritative.startEpoch(now);
    this.#overrideMeter.probeNow(now);
  }

  join(workerId: WorkerId, now: Millis): void {
    this.#openAccount(workerId, now);
  }

  /** Removes a worker, and releases what it had. */
  leave(workerId: WorkerId): void {
    const account = this.#accounts.get(workerId);
    if (account === undefined) return;
    this.#authoritative.removeMember(account);
    this.#accounts.close(workerId);
  }

  applyReport(workerId: WorkerId, { usage, demand }: LimitUsageReport, now: Millis): void {
    const account = this.#openAccount(workerId, now);
    account.lastReportAt = now;
    this.advance(now);
    const { ref } = this.limit;
    const { upstream, scope } = ref;
    for (const { cause, from, to } of this.#authoritative.applyUsage(usage, account, now)) {
      // Under a pinned rate, a decrease has no effect yet.
      if (this.#overrideMeter.pinnedRate !== undefined) continue;
      this.#listen({ type: 'cut', upstream, ...nestedLimitField(ref), scope, cause, from, to });
    }
    if (demand !== undefined) this.#accounts.updateDemand(demand, account, now);
  }

  /** Advances the limit to this time, and reports a change of state. */
  advance(now: Millis): void {
    this.#overrideMeter.endExpiredBlock(now);
    this.#authoritative.advance(now, this.#accounts.want > 0 && !this.#overrideMeter.isRestricting(now));
    const change = this.limit.takeStateChange(now);
    if (change !== undefined) this.#listen(change);
  }

  /** Leases the tokens that are due to the workers in turn. */
  grantTokens(now: Millis): void {
    const { leadTime, horizon } = this.#timing;
    const meter = this.#overrideMeter;
    let until = now + leadTime;
    this.wakeAt = Number.POSITIVE_INFINITY;
    if (this.isUnlimited(now)) return; // requests need no token
    for (let next = this.#accounts.nextToServe(); next !== undefined; next = this.#accounts.nextToServe()) {
      const delay = meter.delay(now);
      const isBlocked = meter.phase === 'blocked';
      if (delay === Number.POSITIVE_INFINITY || (isBlocked && delay > 0) || now + delay > until) {
        this.wakeAt = this.#nextCheckAt(now, delay, isBlocked);
        return;
      }
      const slot = now + delay;
      this.#authoritative.take(next.memberId, slot, now);
      meter.recordSend(slot);
      until = now + horizon; // one update carries all that is due until then
      this.#accounts.grant(next, slot);
    }
  }

  /** The updates to send: to workers with new tokens or shares, and to all whose terms have changed. */
  *pendingUpdates(now: Millis): Generator<readonly [WorkerId, LimitUpdate]> {
    const common = this.#commonTerms(now);
    if (common.isUnlimited) for (const account of this.#accounts) account.want = 0;
    const weight = this.#accounts.activeWeight;
    const demandWeight = this.#accounts.demandWeight(now);
    const isFull = this.#overrideMeter.awaitsPlace(now);
    for (const account of this.#accounts) {
      const isProbeOut = this.#authoritative.isProbeOut(account.memberId);
      const awaitsPlace = isFull && account.want > 0;
      const otherWeight = Math.max(0, weight - account.activeWeight);
      const otherDemandWeight = Math.max(0, demandWeight - account.demandWeight(now));
      const otherUnanswered = Math.max(0, this.meter.unanswered - account.unanswered);
      const own = { isProbeOut, awaitsPlace, otherWeight, otherDemandWeight, otherUnanswered };
      const terms: LimitTerms = { ...common, ...own };
      const { lastTerms, pendingSlots } = account;
      const shares = this.#accounts.groupShares(account, now);
      const comparable = `${shares.waiting.join()};${shares.returning.join()}`;
      const haveSharesChanged = comparable !== account.lastShares;
      if (
        pendingSlots.length === 0 &&
        !haveSharesChanged &&
        lastTerms !== undefined &&
        !haveTermsChanged(lastTerms, terms)
      ) {
        continue;
      }
      account.lastTerms = terms;
      account.lastShares = comparable;
      account.pendingSlots = [];
      const update = { ref: this.limit.ref, terms, slots: pendingSlots };
      yield [account.memberId, haveSharesChanged ? { ...update, shares } : update];
    }
  }

  /** Reclaims the tokens of workers that have not reported for too long. */
  reclaimSilent(now: Millis): void {
    for (const account of this.#accounts) {
      if (account.leasedTokens > 0 && now - account.lastReportAt >= this.#timing.silenceTimeout) {
        this.#authoritative.reclaim(account);
      }
    }
  }

  #commonTerms(now: Millis): CommonLimitTerms {
    const overrideMeter = this.#overrideMeter;
    const learned = termsFromMeter(this.#authoritative.meter, this.#authoritative.epoch, this.#timing.validFor, now);
    if (overrideMeter.pinnedRate === undefined && !overrideMeter.isBlockedByOperator) return learned;
    const { phase, concurrencyLimit, latencyLimit, blockedUntil } = overrideMeter;
    const expectedAt = now + overrideMeter.expectedDelay(now);
    return {
      ...learned,
      phase,
      ...concurrencyTerms(concurrencyLimit, latencyLimit),
      blockedUntil,
      block: undefined,
      expectedAt,
      rate: overrideMeter.rate(now),
      isUnlimited: false,
    };
  }

  #openAccount(workerId: WorkerId, now: Millis): WorkerAccount {
    return this.#accounts.open(workerId, this.#authoritative.epoch, now);
  }

  /** When to grant tokens next; or, while all wait for a request to end, when to reclaim tokens of a silent worker. */
  #nextCheckAt(now: Millis, delay: Millis, isBlocked: boolean): Millis {
    const { leadTime, silenceTimeout } = this.#timing;
    const due = now + delay - (isBlocked ? 0 : leadTime);
    if (!isBlocked && delay < Number.POSITIVE_INFINITY) return due;
    let at = due;
    for (const { leasedTokens, lastReportAt } of this.#accounts) {
      if (leasedTokens > 0) at = Math.min(at, lastReportAt + silenceTimeout);
    }
    return Math.max(at, now + leadTime);
  }
}
