import type { HeapItem } from '../../core/collections/binary-heap.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Millis } from '../../core/scalars.ts';
import { shiftTimes } from '../protocol/usage-entries.ts';
import type { ReportUrgency } from '../protocol/usage-recorder.ts';
import type { DemandSample } from '../protocol/demand-groups.ts';
import { countDemand, DemandSampler, sharesOf } from '../protocol/demand-groups.ts';
import { BackendClock, toLocalTime } from './backend-clock.ts';
import { CallSchedule, DEMAND_HORIZON, FIRST_RECONNECT, reconnectDelay } from './call-schedule.ts';
import { DemandEstimator } from './demand-estimator.ts';
import { ReplicaMeter } from './replica-meter.ts';
import type { LeaseClientParts } from './lease-client-parts.ts';
import type { LeaseResponse, TermsBroadcast } from './replica-protocol.ts';

/** Once the weight of the clients has grown by this factor, a request is made earlier than the backend scheduled. */
const WEIGHT_GAIN = 1.5;
/** How often the groups that wait are reported, and those that are to return. */
const GROUPS_REPORT_INTERVAL = { waiting: 200, returning: 1000 } as const;
const NO_GROUPS: DemandSample = {};
const NEVER: Millis = Number.POSITIVE_INFINITY;

/**
 * Leases the tokens of one limit from a backend: decides when to call and how many tokens to request, with one call in
 * progress at a time, and falls back to a local meter while the backend does not answer.
 */
export class LeaseClient implements HeapItem {
  readonly ref: LimitRef;
  readonly settings: RateSettings;
  readonly meter: ReplicaMeter;
  wakeAt: Millis = NEVER;
  heapIndex = -1;
  readonly #parts: LeaseClientParts;
  readonly #clock = new BackendClock();
  readonly #demand = new DemandEstimator();
  readonly #schedule = new CallSchedule();
  #limit: Limit | undefined;
  readonly #sampler = new DemandSampler(GROUPS_REPORT_INTERVAL);
  /** The groups reported by the call in progress; undefined while there is none. */
  #reportedGroups: DemandSample | undefined;
  /** The limit was used since the last failure, whether or not that was reported. */
  #wasUsed = false;
  #reportedWeight = 0;
  #failures = 0;
  /** `new`: the backend was not called. `claimed`: it has leased the first token, of a limit that was not used elsewhere. */
  #stage: 'new' | 'claimed' | 'shared';

  constructor(ref: LimitRef, settings: RateSettings, parts: LeaseClientParts) {
    this.ref = ref;
    this.settings = settings;
    this.#parts = parts;
    this.#stage = parts.claim !== undefined && ref.key !== '' ? 'new' : 'shared';
    this.meter = new ReplicaMeter(settings, parts.random, (urgency) => this.#requestReport(urgency));
  }

  /** Sets the limit of this client's meter, once it exists. Asks the backend for its terms, unless a claim may do instead. */
  attach(limit: Limit): void {
    this.#limit = limit;
    this.meter.limit = limit;
    countDemand(limit, () => this.#onFirstAwaitedReturn());
    if (this.#stage === 'shared') this.#requestReport('now');
  }

  /** The limit is forgotten: no more calls are made, and late responses are ignored. */
  detach(): void {
    this.#limit = undefined;
  }

  /** Calls the backend, if a report is due or more tokens are needed. */
  wake(now: Millis): void {
    const limit = this.#limit;
    if (this.#reportedGroups !== undefined || limit === undefined) return;
    const needed = this.meter.isInFallback
      ? 0
      : this.#parts.countTokensNeeded(limit) + this.#demand.expected(DEMAND_HORIZON, this.meter.ownSends, now);
    if (!this.#schedule.isReportDue(now) && !this.meter.needsMoreThan(needed)) {
      this.#schedule.postponeRefill(this.meter.inHand, now);
      this.#updateWake();
      return;
    }
    if (this.#stage === 'new' && this.#callOnlyToClaim(limit, needed, now)) return;
    this.#stage = 'shared';
    const { want, usage, leasedTokens, inFlight, unanswered, known } = this.meter.takeReport(needed, now);
    const { offset, roundTrip } = this.#clock;
    const weight = limit.demandWeight(now);
    this.#reportedWeight = weight;
    const groups = this.#sampler.take(limit, want > 0, now);
    this.#reportedGroups = groups;
    this.#schedule.onCall(now);
    this.#updateWake();
    this.#parts.call(this, {
      replicaId: this.#parts.replicaId,
      now: now + offset,
      usage: shiftTimes(usage, offset),
      leasedTokens,
      inFlight,
      unanswered,
      want,
      weight,
      roundTrip,
      known: { ...known, since: known.since + offset },
      random: this.#parts.random(),
      waitingGroups: groups.waiting ?? [],
      returningGroups: groups.returning ?? [],
    });
  }

  /** @param claimedAt the backend's time; undefined if it knew the limit: then its first token is not leased */
  onClaimed(claimedAt: Millis | undefined, now: Millis): void {
    const limit = this.#limit;
    if (limit === undefined || this.#reportedGroups === undefined) return;
    this.#reportedGroups = undefined;
    this.#stage = claimedAt === undefined ? 'shared' : 'claimed';
    if (claimedAt !== undefined) {
      this.#clock.addSample(this.#schedule.calledAt, now, claimedAt);
      this.meter.addClaimedToken(claimedAt - this.#clock.offset);
      this.#parts.onTokensSupplied(limit, now);
    }
    const hasEnough = claimedAt !== undefined && !this.meter.needsMoreThan(this.#parts.countTokensNeeded(limit));
    if (!hasEnough) this.#schedule.reportBy(now);
    this.#updateWake();
  }

  /** Applies the response to the call in progress. */
  onResponse(response: LeaseResponse, now: Millis): void {
    const limit = this.#limit;
    const groups = this.#reportedGroups;
    if (limit === undefined || groups === undefined) return;
    this.#reportedGroups = undefined;
    this.#clock.addSample(this.#schedule.calledAt, now, response.now);
    const { offset } = this.#clock;
    const slots = response.slots.map((slot) => slot - offset);
    const { meter } = this;
    meter.applyResponse(toLocalTime(response.terms, offset), slots, now);
    const { waiting, returning } = groups;
    if (waiting !== undefined) limit.demand?.setWaitingShares(sharesOf(waiting, response.waitingReplicas));
    if (returning !== undefined) limit.demand?.returns?.setShares(sharesOf(returning, response.returningReplicas));
    for (const decrease of response.decreases) this.#parts.onDecrease(this.ref, decrease);
    if (this.#failures > 0) {
      this.#failures = 0;
      this.#parts.onFallback(this, false);
    }
    this.#parts.onTokensSupplied(limit, now);
    const tokens = { inHand: meter.inHand, lastSlot: meter.lastSlot, usedPerSecond: this.#demand.rate };
    const hasActivity = meter.inFlight > 0 || limit.demand?.returns?.isEmpty(now) === false;
    this.#schedule.onResponse(response.askAgainAt - offset, tokens, hasActivity, now);
    this.#updateWake();
  }

  /** The call in progress failed: no response in time, or an invalid one. */
  onNoResponse(now: Millis): void {
    this.#reportedGroups = undefined;
    this.enterFallback(now);
  }

  /** The backend does not answer: limits locally, and schedules the next attempt. */
  enterFallback(now: Millis): void {
    const limit = this.#limit;
    if (limit === undefined) return;
    this.#failures += 1;
    this.meter.enterFallback(now);
    this.#parts.onFallback(this, true);
    const isUsed = this.#wasUsed || limit.ref.scope === 'upstream' || limit.queue.size > 0 || this.#failures === 1;
    this.#wasUsed = false;
    // A limit that was not used since is retried by its next use, and one that was never shared by its second.
    const isRetried = (this.#stage === 'shared' && isUsed) || this.#parts.isReconnectProbe(this);
    this.#schedule.retryAt(isRetried ? now + reconnectDelay(this.#failures, this.#parts.random()) : NEVER);
    this.#updateWake();
    this.#parts.onTokensSupplied(limit, now);
  }

  /** Calls the backend, which may be back, after a random part of `within`: others may have returned. */
  retryWithin(now: Millis, within: Millis): void {
    if (!this.meter.isInFallback || this.#reportedGroups !== undefined || !this.#schedule.isReportScheduled) return;
    this.#schedule.reportBy(now + within * this.#parts.random());
    this.#updateWake();
  }

  /** Another limit found that the backend is back. A limit that was never shared asks for its next token. */
  leaveFallback(now: Millis): void {
    if (this.#stage === 'shared' || this.#limit === undefined) return;
    this.#failures = 0;
    this.meter.leaveFallback();
    this.#parts.onTokensSupplied(this.#limit, now);
  }

  /** From now on, this client finds out when the backend is back. */
  startReconnectProbe(now: Millis): void {
    if (this.#reportedGroups !== undefined || this.#schedule.isReportScheduled) return;
    this.#schedule.reportBy(now + FIRST_RECONNECT * this.#parts.random());
    this.#updateWake();
  }

  /** Applies terms that another replica's report has changed. */
  onBroadcast({ terms, now: sentAt }: TermsBroadcast, now: Millis): void {
    if (this.#stage === 'claimed') return this.#requestReport('now');
    // Before the first response, the backend's times mean nothing here: a hold could last for decades.
    if (this.#limit === undefined || !this.#clock.isKnown) return;
    if (!this.meter.applyBroadcast(toLocalTime(terms, this.#clock.offsetFromBroadcast(sentAt, now)), now)) return;
    this.#parts.onTokensSupplied(this.#limit, now);
  }

  #requestReport(urgency: ReportUrgency): void {
    this.#wasUsed = true;
    // One success is of no use to other replicas. It is reported once this replica needs a second token.
    if (urgency === 'soon' && this.#stage !== 'shared' && this.meter.hasOneSuccess) return;
    // The backend scheduled the next request for the queue as it was then.
    if (urgency === 'with-next-report' && !this.#hasGainedWeight()) return;
    if (urgency === 'soon' && this.#schedule.hasUnreported) return;
    this.#schedule.hasUnreported = true;
    if (this.meter.isInFallback && this.#schedule.isReportScheduled) return;
    const now = this.#parts.clock.now();
    const isEarlier =
      urgency === 'soon' ? this.#schedule.reportSoon(now, this.meter.replicas) : this.#schedule.reportNow(now);
    if (isEarlier) this.#updateWake();
  }

  /** Whether the backend need not serve the limit now: no request needs a token, or a claim of the first one is made. */
  #callOnlyToClaim(limit: Limit, needed: number, now: Millis): boolean {
    const isToReturn = limit.demand?.returns?.isEmpty(now) === false;
    if (this.meter.isInFallback || this.meter.hasUsage || isToReturn) return false;
    this.#schedule.onCall(now);
    if (this.meter.needsMoreThan(needed)) {
      this.#reportedWeight = limit.demandWeight(now);
      this.#reportedGroups = NO_GROUPS;
      this.#parts.claim?.(this);
    }
    this.#updateWake();
    return true;
  }

  #onFirstAwaitedReturn(): void {
    if (this.#limit === undefined || this.meter.isInFallback) return;
    if (this.#schedule.reportWithinHeartbeat(this.#parts.clock.now())) this.#updateWake();
  }

  /** Whether clients that were not reported may be the next in turn. */
  #hasGainedWeight(): boolean {
    const weight = this.#limit?.demandWeight(this.#parts.clock.now()) ?? 0;
    return weight > WEIGHT_GAIN * this.#reportedWeight;
  }

  #updateWake(): void {
    const at = this.#reportedGroups === undefined ? this.#schedule.nextCallAt : NEVER;
    if (at === this.wakeAt) return;
    this.wakeAt = at;
    this.#parts.schedule(this);
  }
}
