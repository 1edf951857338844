import type { DemandSample } from '../protocol/demand-groups.ts';
import type { LimitTerms } from '../protocol/limit-terms.ts';
import type { Millis } from '../../core/scalars.ts';
import type { UsageReporter, SentRequest } from '../protocol/usage-reporter.ts';
import { SentRequests } from './sent-requests.ts';

/** A number that no other worker of a server has or had. */
export type WorkerId = number;

/**
 * A reported group counts as waiting until the end of the next window: one that is reported at each of its requests need not wait
 * at the time of each report.
 */
const WAITING_WINDOW: Millis = 250;
/** The maximum number of groups in one window. */
const MAX_WAITING = 64;

/** How long the reported weight of groups that are to return counts, and how long these count. It is reported again before. */
const DEMAND_VALID_FOR: Millis = 5000;

/** What one worker has of one limit, and what it has requested. */
export class WorkerAccount implements UsageReporter<WorkerId> {
  readonly memberId: WorkerId;
  /** Tokens requested and not granted. */
  want = 0;
  /** The last reported weight of its clients that wait or are to return, above 0. */
  weight = 1;
  /** As in a flow of a `FairQueue`. */
  tag = 0;
  /** Tokens granted so far. */
  totalGranted = 0;
  /** Tokens that are neither spent nor returned. */
  leasedTokens = 0;
  inFlight = 0;
  unanswered = 0;
  /** The epoch that the worker knows. */
  epoch: number;
  lastReportAt: Millis;
  lastTerms: LimitTerms | undefined = undefined;
  /** The shares sent last, as a string to compare. */
  lastShares = ';';
  /** The times of granted tokens that are not sent yet. */
  pendingSlots: Millis[] = [];
  /** Made at the first send, to save memory: there may be an account for each client. */
  #sentRequests: SentRequests | undefined;
  #waiting = new Set<string>();
  #waitingBefore: ReadonlySet<string> = new Set();
  #waitingWindow = Number.NEGATIVE_INFINITY;
  #returning: readonly string[] = [];
  #returningAt = Number.NEGATIVE_INFINITY;
  #demandWeight = 0;
  #demandAt = Number.NEGATIVE_INFINITY;

  constructor(workerId: WorkerId, epoch: number, now: Millis) {
    this.memberId = workerId;
    this.epoch = epoch;
    this.lastReportAt = now;
  }

  /** 0 while nothing waits there. */
  get activeWeight(): number {
    return this.want > 0 || this.pendingSlots.length > 0 ? this.weight : 0;
  }

  grant(slot: Millis): void {
    this.pendingSlots.push(slot);
    this.want -= 1;
    this.totalGranted += 1;
    this.leasedTokens += 1;
  }

  recordGroups({ waiting, returning }: DemandSample, now: Millis): void {
    this.#rollWaiting(now);
    for (const group of waiting ?? []) if (this.#waiting.size < MAX_WAITING) this.#waiting.add(group);
    if (returning !== undefined) {
      this.#returning = returning;
      this.#returningAt = now;
    }
  }

  recordDemandWeight(weight: number, now: Millis): void {
    this.#demandWeight = weight;
    this.#demandAt = now;
  }

  /** The weight of its clients that wait or are to return. */
  demandWeight(now: Millis): number {
    return now - this.#demandAt < DEMAND_VALID_FOR
      ? Math.max(this.#demandWeight, this.activeWeight)
      : this.activeWeight;
  }

  /** The groups that count as waiting there. */
  waitingGroups(now: Millis): ReadonlySet<string> {
    this.#rollWaiting(now);
    return this.#waitingBefore.size === 0 ? this.#waiting : new Set([...this.#waitingBefore, ...this.#waiting]);
  }

  /** The groups that count as those to return there. */
  returningGroups(now: Millis): readonly string[] {
    return now - this.#returningAt < DEMAND_VALID_FOR ? this.#returning : [];
  }

  /** When one of these groups may no longer count; Infinity if there are none. */
  groupsValidUntil(now: Millis): Millis {
    const hasWaiting = this.waitingGroups(now).size > 0;
    const waitingUntil = hasWaiting ? (this.#waitingWindow + 1) * WAITING_WINDOW : Number.POSITIVE_INFINITY;
    const hasReturning = this.returningGroups(now).length > 0;
    return Math.min(waitingUntil, hasReturning ? this.#returningAt + DEMAND_VALID_FOR : Number.POSITIVE_INFINITY);
  }

  #rollWaiting(now: Millis): void {
    const window = Math.floor(now / WAITING_WINDOW);
    if (window === this.#waitingWindow) return;
    this.#waitingBefore = window === this.#waitingWindow + 1 ? this.#waiting : new Set();
    this.#waiting = new Set();
    this.#waitingWindow = window;
  }

  recordSend(serial: number, request: SentRequest): void {
    this.#sentRequests ??= new SentRequests();
    this.#sentRequests.record(serial, request, this.inFlight);
  }

  takeSend(serial: number): SentRequest | undefined {
    return this.#sentRequests?.take(serial);
  }

  /** Does nothing: workers report at once, so the number in flight needs no history. */
  recordEnd(): void {}

  /** Does nothing, as before: the latency of a response is learned from at once. */
  recordUnanswered(): void {}

  recordLatency(): void {}

  recordFailure(): boolean {
    return false;
  }

  findSend(sentAt: Millis): SentRequest | undefined {
    return this.#sentRequests?.find(sentAt);
  }
}
