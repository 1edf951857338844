import type { LocalMeter } from '../../core/limits/local-meter.ts';
import { learnAcceptedBefore } from '../../core/rate/late-knowledge.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import { shiftTimes } from '../protocol/usage-entries.ts';
import { AuthoritativeLimit } from '../protocol/authoritative-limit.ts';
import { hasLimitChanged, termsFromMeter } from '../protocol/limit-terms.ts';
import { AnswerOrder } from './answer-order.ts';
import { ActiveWeight } from './active-weight.ts';
import { InFlightSamples } from './in-flight-samples.ts';
import { limitRetention, VALID_FOR } from './limit-retention.ts';
import { ReplicaAccount } from './replica-account.ts';
import { type AccountStore, recordGroups } from './account-store.ts';
import type { LeaseResponse, LeaseRequest, ReplicaTerms } from './replica-protocol.ts';

/** How far ahead tokens are leased. */
const HORIZON: Millis = 100;
/** A replica that is behind its turn is served this far ahead, in horizons: others may have taken tokens in advance. */
const BEHIND_HORIZONS = 2;
/** A replica that cannot have more yet asks again after half a horizon; many replicas, 1000 times a second in all. */
const ASK_INTERVAL_PER_REPLICA: Millis = 1;
/** The usual delay of a response. */
const DELIVERY_TIME: Millis = 2;
/** A replica that has not called for this long is removed. */
const SILENCE_TIMEOUT: Millis = 3000;
const MAX_REMOVED_PER_CALL = 4;
/** Stands for an infinite rate in the fair queueing. */
const MAX_FINITE_RATE: PerSecond = 1e6;
/** The window of `ActiveWeight`, in horizons or ask intervals: each waiting replica calls at least once in it. */
const WINDOW_HORIZONS = 3;
/** The same for clients that are to return: for them, a replica calls once a second. */
const DEMAND_WINDOW: Millis = 1500;
/** The last tokens leased, which can be returned unspent: at a low rate each is worth seconds. */
const TOKENS_REMEMBERED = 4;
/** Replicas that send or wait call more often: without a call for this long, only replicas in fallback can have sent. */
const UNOBSERVED_AFTER: Millis = 500;
/** A clock that is off by more than this has been set. */
const CLOCK_JUMP: Millis = 1000;
/** Tokens that no replica in turn has taken, and that are due within this many horizons, go to any replica that asks. */
const SPARE_HORIZONS = 0.5;
/** How late sends are reported: longer with many replicas. */
const REPORT_DELAY: Millis = 100;
const REPORT_DELAY_PER_REPLICA: Millis = 0.2;
const MAX_REPORT_DELAY: Millis = 200;
/** After this many report delays, all replicas have reported. */
const REPORT_MARGIN = 1.2;
/** Under a concurrency limit, a replica may exceed its share by this much for a while: it is returned when requests end. */
const IN_FLIGHT_AHEAD = 4;
/** How long a free place in flight is kept for the replica whose turn it is. */
const RESERVED_FOR: Millis = 7;
/** How soon a replica asks again while all places in flight are taken. */
const RETRY_AFTER_FULL: Millis = 10;
const MAX_RETRY_DELAY: Millis = 250; // so that its weight and its groups count in each window

/**
 * The authoritative copy of one limit in a backend. Replicas call it to report usage and to lease tokens in their turn;
 * it makes no calls itself. It reads no account but the caller's and those of a few silent replicas, so that the cost
 * of a call does not grow with the number of replicas.
 *
 * Turns follow start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996): a token advances the limit's virtual time by
 * 1 ÷ the weight of all replicas with waiting requests, and its replica's tag by 1 ÷ its own weight. No replica may be further
 * ahead than its share of one horizon.
 */
export class ReplicaSharedLimit {
  readonly #authoritative: AuthoritativeLimit<string>;
  readonly #activeWeight = new ActiveWeight();
  readonly #demandWeight = new ActiveWeight(); // of the clients that wait or are to return
  readonly #inFlightSamples = new InFlightSamples();
  readonly #answers = new AnswerOrder();
  #virtualTime = 0;
  #firstDecreaseAt = Number.NEGATIVE_INFINITY;
  /** Since when a place in flight has been reserved for another replica; undefined if none is. */
  #reservedSince: Millis | undefined;
  /** The time of the last call, and the correction after the clock was set back. */
  #lastCallAt = Number.NEGATIVE_INFINITY;
  #clockShift = 0;

  constructor(meter: LocalMeter) {
    this.#authoritative = new AuthoritativeLimit(meter, DELIVERY_TIME, TOKENS_REMEMBERED);
  }

  /** The time of this limit, which never goes back. @param time the backend's clock, which may be set */
  now(time: Millis): Millis {
    if (time + this.#clockShift < this.#lastCallAt - CLOCK_JUMP) this.#clockShift = this.#lastCallAt - time;
    const now = Math.max(time + this.#clockShift, this.#lastCallAt);
    if (now - this.#lastCallAt > UNOBSERVED_AFTER) this.#authoritative.meter.adaptiveRate.skipTime(now);
    this.#lastCallAt = now;
    return now;
  }

  /** A replica took the first token at this time, returned by `now`. It reports the request itself, so no place is kept. */
  takeClaimed(now: Millis): void {
    this.#authoritative.take('', now, now);
    this.#authoritative.meter.release();
  }

  /**
   * Applies the report of a replica, and leases tokens to it.
   * @param now as returned by `now`
   * @param isNew nothing is stored of this limit
   */
  serve(request: LeaseRequest, accounts: AccountStore, now: Millis, isNew: boolean): LeaseResponse {
    const { meter } = this.#authoritative;
    const before = this.#terms(undefined, 0, 0, now);
    this.#removeSilent(accounts, now);
    const stored = accounts.readAccount(request.replicaId);
    const account = ReplicaAccount.decode(request.replicaId, stored ?? []);
    const replicas = accounts.countAccounts() + (stored === undefined ? 1 : 0);
    const reportDelay = Math.min(MAX_REPORT_DELAY, Math.max(REPORT_DELAY, REPORT_DELAY_PER_REPLICA * replicas));
    // The caller's times are shifted if the clock was set between two calls, or if it makes its first call.
    const clockCorrection = Math.abs(now - request.now) > CLOCK_JUMP ? now - request.now : 0;
    account.epoch = request.known.epoch;
    account.knownSince = request.known.since + clockCorrection;
    this.#adoptKnown(request, now, isNew, stored === undefined);
    const isWanted = request.want > 0 || this.#activeWeight.total > 0;
    this.#authoritative.advance(now, isWanted, reportDelay);
    const usage = clockCorrection === 0 ? request.usage : shiftTimes(request.usage, clockCorrection);
    const decreases = [...this.#authoritative.applyUsage(usage, account, now)];
    this.#reconcile(account, request, now);
    if (decreases.some(({ cause }) => cause === 'first')) this.#firstDecreaseAt = now;
    if (now - this.#firstDecreaseAt < REPORT_MARGIN * reportDelay) learnAcceptedBefore(meter.adaptiveRate);
    this.#inFlightSamples.record(account, decreases, now);
    this.#inFlightSamples.learn(this.#authoritative, now - REPORT_MARGIN * reportDelay, now);
    const found = this.#answers.learn(account.answers, meter, REPORT_MARGIN * reportDelay, now);
    if (found !== undefined) decreases.push(found);
    this.#authoritative.advance(now, isWanted, reportDelay);
    const pause = Math.max(HORIZON / 2, ASK_INTERVAL_PER_REPLICA * replicas);
    const weight = request.weight > 0 ? request.weight : 1;
    const window = WINDOW_HORIZONS * Math.max(HORIZON, pause);
    this.#activeWeight.record(account, request.want > 0 ? weight : 0, now, window);
    const slots: Millis[] = [];
    const mayGrant = request.want > 0 && !this.#terms(undefined, 0, 0, now).isUnlimited;
    const askAgainAt = mayGrant ? this.#grantTokens(account, request, slots, { now, pause }) : Number.POSITIVE_INFINITY;
    // A replica that has all it needs does not wait, so that it does not slow the turns of the others.
    if (slots.length >= request.want) this.#activeWeight.record(account, 0, now, window);
    this.#demandWeight.record(account.demand, request.weight, now, Math.max(DEMAND_WINDOW, window));
    const { waitingReplicas, returningReplicas } = recordGroups(request, accounts, now);
    accounts.writeAccount(request.replicaId, account.encode(), now);
    const awaitsPlace = slots.length < request.want && meter.awaitsPlace(now);
    const otherDemandWeight = this.#demandWeight.excluding(account.demand);
    const otherUnanswered = Math.max(0, meter.unanswered - account.unanswered);
    const all = this.#terms(request.replicaId, this.#activeWeight.excluding(account), replicas, now);
    const terms = { ...all, awaitsPlace, otherDemandWeight, otherUnanswered };
    const shouldBroadcast = hasLimitChanged(before, terms);
    return { now, terms, slots, askAgainAt, waitingReplicas, returningReplicas, decreases, shouldBroadcast };
  }

  retention(settings: RateSettings, now: Millis): Millis {
    return limitRetention(this.#authoritative.meter, settings, now);
  }

  #terms(replicaId: string | undefined, otherWeight: number, replicas: number, now: Millis): ReplicaTerms {
    const { meter, epoch } = this.#authoritative;
    return {
      ...termsFromMeter(meter, epoch, VALID_FOR, now),
      isProbeOut: this.#authoritative.isProbeOut(replicaId),
      awaitsPlace: false,
      otherWeight,
      otherDemandWeight: 0,
      otherUnanswered: 0,
      inFlight: meter.inFlight,
      sendCount: meter.sendCount,
      replicas,
    };
  }

  /** Takes over what the caller knows about the limit, if this copy is new or behind. */
  #adoptKnown({ known }: LeaseRequest, now: Millis, isNew: boolean, isNewReplica: boolean): void {
    const { meter } = this.#authoritative;
    // A replica that learned in fallback, and never had a response, was sending at its own rate beside the others'.
    const hasOwnRate = isNewReplica && known.since === Number.NEGATIVE_INFINITY && meter.phase !== 'blocked';
    const base = isNew ? 0 : hasOwnRate ? meter.rate(now) : Number.POSITIVE_INFINITY;
    const rate = base + known.rate;
    if (known.epoch > 0 && known.rate > 0 && rate < Number.POSITIVE_INFINITY) {
      meter.resume(rate, Math.max(rate, Math.min(isNew ? known.ceiling : meter.ceiling, Number.MAX_VALUE)), now);
    }
    if (known.epoch > this.#authoritative.epoch) this.#authoritative.startEpoch(now, known.epoch + 1);
  }

  /** Calls and responses may get lost, so the caller's own counts of tokens and requests in flight apply. */
  #reconcile(account: ReplicaAccount, { leasedTokens, inFlight, unanswered }: LeaseRequest, now: Millis): void {
    const { meter } = this.#authoritative;
    for (; account.leasedTokens > leasedTokens; account.leasedTokens -= 1) meter.release();
    meter.adaptiveRate.inFlightLimiter.adjustCount(inFlight - account.inFlight, unanswered - account.unanswered);
    if (inFlight !== account.inFlight) this.#inFlightSamples.adjust(inFlight - account.inFlight, now);
    Object.assign(account, { inFlight, unanswered });
  }

  /** Leases the tokens of the caller's turn into `slots`. Returns when to ask again; Infinity if all were granted. */
  #grantTokens(
    account: ReplicaAccount,
    request: LeaseRequest,
    slots: Millis[],
    { now, pause }: { readonly now: Millis; readonly pause: Millis },
  ): Millis {
    const { meter } = this.#authoritative;
    const weight = account.weightInWindow;
    const rate = Math.min(meter.rate(now), MAX_FINITE_RATE);
    const horizon = HORIZON + request.roundTrip;
    const totalWeight = Math.max(weight, this.#activeWeight.total);
    const ahead =
      meter.concurrencyLimit === undefined
        ? (rate * horizon) / 1000 / totalWeight
        : IN_FLIGHT_AHEAD / weight + meter.concurrencyLimit / totalWeight;
    // A replica whose weight has changed keeps the same amount of service ahead, in units of the new weight.
    const isAhead = account.tag > this.#virtualTime;
    if (isAhead) account.tag = this.#virtualTime + ((account.tag - this.#virtualTime) * account.weight) / weight;
    else account.tag = Math.max(account.tag, this.#virtualTime - ahead);
    account.weight = weight;
    for (let wanted = request.want; wanted > 0; wanted -= 1) {
      const delay = meter.delay(now);
      if (meter.phase === 'blocked' && delay > 0) return now + Math.min(delay, MAX_RETRY_DELAY);
      if (delay === Number.POSITIVE_INFINITY) return now + this.#retryDelay(pause);
      const early = account.tag - ahead - this.#virtualTime;
      const until = (account.tag <= this.#virtualTime ? BEHIND_HORIZONS : early > 0 ? SPARE_HORIZONS : 1) * horizon;
      const isReserved = early > 0 && meter.concurrencyLimit !== undefined && this.#isReserved(now);
      if (isReserved) return now + this.#retryDelay(pause);
      if (delay > until) {
        const turnIn = Math.min(MAX_RETRY_DELAY, (1000 * early * totalWeight) / rate);
        return now + Math.max(pause, turnIn, Math.min(delay - until, MAX_RETRY_DELAY));
      }
      if (early > 0) this.#virtualTime += early;
      const slot = now + delay;
      this.#authoritative.take(account.memberId, slot, now);
      slots.push(slot);
      account.leasedTokens += 1;
      account.tag += 1 / weight;
      this.#virtualTime += 1 / totalWeight;
      this.#reservedSince = undefined;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Whether a free place in flight is still kept for the replica whose turn it is, until it has had time to ask. */
  #isReserved(now: Millis): boolean {
    this.#reservedSince ??= now;
    return now - this.#reservedSince < RESERVED_FOR;
  }

  #retryDelay(pause: Millis): Millis {
    return Math.min(MAX_RETRY_DELAY, (RETRY_AFTER_FULL * pause) / HORIZON);
  }

  #removeSilent(accounts: AccountStore, now: Millis): void {
    for (const replicaId of accounts.silentSince(now - SILENCE_TIMEOUT, MAX_REMOVED_PER_CALL)) {
      this.#authoritative.removeMember(ReplicaAccount.decode(replicaId, accounts.readAccount(replicaId) ?? []));
      accounts.deleteAccount(replicaId);
    }
  }
}
