import type { CutCause, LimitState } from './limit-state.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { Quota } from '../hints/hints.ts';
import type { QuotaOwner, Requester } from '../quota/requester.ts';
import type { BlockStatus } from '../rate/breaker/active-block.ts';
import type { LatencyLimit } from '../rate/in-flight-limiter.ts';
import type { RequestAttributes } from '../rate/breaker/request-attributes.ts';
import type { FailedSend, KnownCost, RejectedSend, SettledCost } from '../rate/failed-send.ts';

/** When a request may be sent: the tokens of one limit. */
export interface Pacing {
  /**
   * Time until a token may be taken: 0 if now, Infinity while a token has been requested from the keeper of the limit or
   * while another request has to end first. Takes nothing.
   * @param attributes needed while the limit has a block
   */
  delay(now: Millis, attributes?: RequestAttributes): Millis;
  /** The delay to report to a client: as `delay`, but with an estimate if that depends on another response. */
  expectedDelay(now: Millis, attributes?: RequestAttributes): Millis;
  /** Whether a block or a stop holds back this request. @param attributes absent if unknown */
  isHeldBack?(now: Millis, attributes?: RequestAttributes): boolean;
  /**
   * Whether this request lacks only a place: as many requests are in flight as may be, so another one has to end first, and
   * nothing else delays this one. False where a token has not been requested yet.
   */
  awaitsPlace(now: Millis, attributes?: RequestAttributes): boolean;
  /** While blocked: how long ago the next probe became due without being sent; else 0. */
  probeOverdueFor(now: Millis, attributes?: RequestAttributes): Millis;
  /**
   * Takes a token. Call it only if `delay` is 0, or for one that is taken early and moves those after it. Returns whether the request is the probe of a block.
   * @param due when the token was due, if a timer fired late; else now
   * @param cost in units; 1 when absent
   */
  take(now: Millis, due: Millis, attributes?: RequestAttributes, cost?: number): boolean;
  /** Corrects what a request was charged that took a token, once its cost is known. Absent if another process keeps the limit. */
  settle?(settled: SettledCost, now: Millis): void;
  /** Ends the reservation of a token: its request has been sent, or never will be. */
  release(): void;
  /** The probe was not sent, or its result will never be known: another request may be the probe. */
  abandonProbe(attributes?: RequestAttributes): void;
  /** Ends all stops and makes the next probe due now. Absent if another process keeps the limit. */
  probeNow?(now: Millis): void;
}

/** What a limit learns from: sends, results of attempts, reported quotas, and what other processes knew. */
export interface Learner {
  /**
   * Returns how many requests are in flight, this one included. The history counts no more units than `largestSample` of the mean.
   * @param cost in units; 1 when absent
   * @param expected the usual cost, which no client names; `cost` when absent
   * @param isEstimate the response may name another cost
   */
  onSent(now: Millis, cost?: number, expected?: number, isEstimate?: boolean): number;
  /** Learns what a request has cost. Absent if another process keeps the limit. */
  onCostKnown?(cost: KnownCost): void;
  /** A request in flight has its response, or will get none. Called once for each, after what the response says is recorded. */
  onResponse(now: Millis): void;
  /** A request is no longer in flight. Returns whether another one may be sent because of that. */
  onEnded(now: Millis): boolean;
  /**
   * Returns the cause if the number in flight is limited from now on: the answer has shown a queue at the upstream.
   * @param inFlightAtSend what `onSent` returned for the request; 0 if unknown
   */
  onAccepted(sentAt: Millis, inFlightAtSend: number, now: Millis, attributes?: RequestAttributes): CutCause | undefined;
  /** Returns the cause if the rate was cut or the limit blocked. */
  onRejected(rejection: RejectedSend, now: Millis): CutCause | undefined;
  /**
   * A request was rejected that is counted at a nested limit, but the response names no limit: it may be this one. Absent if
   * another process keeps the limit.
   */
  onUnattributedRejection?(attributes: RequestAttributes, now: Millis): void;
  /** Returns the cause if the limit was blocked. */
  onFailed(failure: FailedSend, now: Millis): CutCause | undefined;
  /**
   * Applies a quota that a response reported. Returns false if requesters are known to have quotas of their own: the
   * meter keeps nothing of it, and the caller holds this requester alone.
   * @param sentAt when the request of that response was sent
   * @param requester who sent it; any requester when absent
   */
  onQuota(quota: Quota, sentAt: Millis, now: Millis, requester?: Requester): boolean;
  /** Discards the quota in force. @param isPerRequester requesters have quotas of their own from now on */
  dropQuota(isPerRequester: boolean, now: Millis): void;
  /** Nothing is sent before `until`. */
  stop(until: Millis): void;
  /** Initialises the history of a limit that is created at its first rejection. @param accepted requests a second */
  seedHistory(accepted: PerSecond, now: Millis): void;
  /** Continues at a known rate. Absent if another process keeps the limit. See `LocalMeter.resume`. */
  resume?(rate: PerSecond, ceiling: PerSecond, now: Millis, concurrencyLimit?: number): void;
  /** Continues with a spent quota that another process knew of. */
  resumeQuota(owner: QuotaOwner, now: Millis): void;
  /** Continues with a block that another process had. */
  resumeBlock?(block: BlockStatus, now: Millis): void;
  /**
   * Advances the limit to `now`.
   * @param queued whether requests wait for this limit
   * @param feedbackLag how late results arrive: see `AdaptiveRate.advance`
   */
  advance(now: Millis, queued: boolean, feedbackLag?: Millis): void;
}

/** The state of a limit. Reading it changes nothing. */
export interface MeterView {
  readonly phase: LimitState;
  readonly ceiling: PerSecond;
  /** How many requests may be in flight; undefined if the limit is not on that number. */
  readonly concurrencyLimit: number | undefined;
  /** The limit that latency has shown, if it is known here. */
  readonly latencyLimit?: LatencyLimit | undefined;
  /** Until then nothing passes, or only a probe; undefined if nothing is blocked or stopped. */
  readonly blockedUntil: Millis | undefined;
  /** Whether a block is in force, so that pacing needs a request's attributes. Absent if the meter never blocks. */
  readonly hasBlock?: boolean;
  /** Whether the next `onAccepted` needs the request's attributes, after failures or as a sample, although no block is in force. */
  readonly needsAttributes?: boolean;
  /** The remaining share of the reported quota, in [0, 1]; undefined if unknown. */
  readonly quotaLeft: number | undefined;
  /** When growth resumes after a cut; absent if that is unknown. */
  readonly cooldownUntil?: Millis | undefined;
  /** What a unit is: see `RateSettings`. Absent if it is a request. */
  readonly unit?: string | undefined;
  /** Units of a request, averaged over the last sends; > 0. Absent if each has one. */
  readonly meanCost?: number;
  /** Units that are paid for only after the next request: see `Pacer`. Absent if each request has one. */
  readonly carriedUnits?: number;
  /** Requests sent in total. */
  readonly sendCount: number;
  /** What they were charged, in units. Absent if each has one unit. */
  readonly sentUnits?: number;
  /** Requests sent and not ended. */
  readonly inFlight: number;
  /** Leased tokens in hand. Absent if the meter makes its own tokens, undefined if nothing limits. */
  readonly tokens?: number | undefined;
  /** In units a second: in requests unless a cost is configured. */
  rate(now: Millis): PerSecond;
  /**
   * The rate at which refused clients of this process should return: its share of the limit by the weight of all clients that
   * wait or are to return, here and elsewhere. Absent if it is `rate`.
   * @param weight that of the client: the clients of this process count at least as much
   */
  returnRate?(now: Millis, weight: number): PerSecond;
  /** The rate of the whole limit, where `rate` is only this process's share of it. */
  sharedRate?(now: Millis): PerSecond;
  /** The block that holds back a request with these attributes; without attributes, the block that began last. */
  block?(now: Millis, attributes?: RequestAttributes): BlockStatus | undefined;
  /** Whether a quota stops or paces requests. */
  isQuotaInForce(now: Millis): boolean;
  /** Whether the quota in force covers this requester. */
  quotaAppliesTo(requester: Requester): boolean;
  /** Who is covered by the quota in force; undefined if none is. */
  quotaOwner(now: Millis): QuotaOwner | undefined;
}

/**
 * One limit: when a request may be sent, what is learned from its result, and the state. A meter of the memory store
 * decides by its own adaptive rate. A meter that leases tokens from another process has a `delay` of Infinity while it has
 * none; `Gate.onTokensSupplied` continues when tokens have arrived.
 */
export type Meter = Pacing & Learner & MeterView;
