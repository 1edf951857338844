import type { CutCause } from '../../core/limits/limit-state.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { Quota } from '../../core/hints/hints.ts';
import type { QuotaOwner, Requester } from '../../core/quota/requester.ts';
import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import { isBlockedBy } from '../../core/rate/breaker/active-block.ts';
import { RecentSenders } from '../../core/rate/breaker/recent-senders.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';
import type { FailedSend, RejectedSend } from '../../core/rate/failed-send.ts';
import { withoutQuota } from './limit-terms.ts';
import { TermsView } from './terms-view.ts';
import { UsageLog } from './usage-log.ts';

/** How soon a change is reported; the client that sends the reports chooses the delays. */
export type ReportUrgency = 'now' | 'soon' | 'later' | 'with-next-report';

/**
 * After a second of sends without a longer pause, the server knows the traffic well enough: reporting a little later
 * changes little. After a pause, the reports are all that it can learn from.
 */
const STEADY_AFTER: Millis = 1000;
const STEADY_PAUSE: Millis = 250;
/** While nothing fails, the senders of so many accepted requests are not recorded after each one that is: it takes time to hash them. */
const ACCEPTED_PER_SAMPLE = 7;

/** Records what happens at a limit, for its server to learn from, and requests reports of it. */
export abstract class UsageRecorder extends TermsView {
  readonly usageLog = new UsageLog();
  /** Of requests that were sent here: of all failed ones, and of some accepted ones. Created at the first one. */
  protected failedSenders: RecentSenders | undefined;
  protected acceptedSenders: RecentSenders | undefined;
  #acceptedUntilSample = 0;
  #lastSerial = 0;
  #inFlight = 0;
  #unanswered = 0;
  #sentAt = Number.NEGATIVE_INFINITY;
  /** When the current run of sends without a pause began. */
  #steadySince = 0;

  protected abstract requestReport(urgency: ReportUrgency): void;

  /** Several clients use the limit, so that who sends the probe of a block makes a difference. */
  protected abstract get isOfSeveralClients(): boolean;

  get needsAttributes(): boolean {
    return this.usageLog.includesSources || (this.#acceptedUntilSample === 0 && this.isOfSeveralClients);
  }

  /** Always 0: the server counts the sends of all members, and subtracts them from a quota itself. */
  get sendCount(): number {
    return 0;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Requests in flight that have no response yet. */
  get unanswered(): number {
    return this.#unanswered;
  }

  /** Returns a serial, by which the server finds how many requests of all members were in flight. */
  onSent(now: Millis): number {
    this.#lastSerial += 1;
    this.#inFlight += 1;
    this.#unanswered += 1;
    if (now - this.#sentAt > STEADY_PAUSE) this.#steadySince = now;
    this.#sentAt = now;
    this.usageLog.sent(this.#lastSerial, now);
    this.requestReport(this.#routineUrgency(now));
    return this.#lastSerial;
  }

  onResponse(now: Millis): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1);
    if (!this.terms.countsResponses) return;
    this.usageLog.responded(now);
    this.requestReport(this.terms.concurrencyLimit === undefined ? this.#routineUrgency(now) : 'now');
  }

  /** Returns false: only the server knows whether another request may go. */
  onEnded(now: Millis): boolean {
    this.#inFlight -= 1;
    this.#unanswered = Math.min(this.#unanswered, this.#inFlight);
    this.usageLog.ended(now);
    this.requestReport(this.terms.concurrencyLimit === undefined ? this.#routineUrgency(now) : 'now');
    return false;
  }

  /** Returns undefined: the server decides whether this limits the number in flight. */
  onAccepted(sentAt: Millis, serial: number, now: Millis, source?: RequestAttributes): CutCause | undefined {
    const { block, phase } = this.terms;
    const isSample = block === undefined && !this.usageLog.includesSources; // of no use for the server
    this.usageLog.accepted(sentAt, serial, now, isSample ? undefined : source);
    this.#acceptedUntilSample = this.#acceptedUntilSample === 0 ? ACCEPTED_PER_SAMPLE : this.#acceptedUntilSample - 1;
    if (source !== undefined && this.isOfSeveralClients) {
      this.acceptedSenders ??= new RecentSenders();
      this.acceptedSenders.add(source, now);
    }
    const endsBlock = block !== undefined && isBlockedBy(block, source);
    this.requestReport(endsBlock || phase === 'blocked' || phase === 'backoff' ? 'now' : this.#routineUrgency(now));
    return undefined;
  }

  /** Returns undefined: the server decides whether this decreases the rate. */
  onRejected(rejection: RejectedSend, now: Millis): undefined {
    this.usageLog.rejected(rejection, now);
    this.#recordFailure(rejection.attributes, now);
    this.requestReport('now');
  }

  onFailed(failure: FailedSend, now: Millis): undefined {
    if (failure.isAbandoned === true) return this.#onAbandoned(failure.sentAt, now);
    this.usageLog.failed(failure, now);
    if (failure.isUnreachable !== true) this.#recordFailure(failure.attributes, now);
    this.requestReport('now');
  }

  /** Returns false if each requester is known to have a quota of its own. */
  onQuota(quota: Quota, sentAt: Millis, now: Millis, requester?: Requester): boolean {
    this.usageLog.quota(quota, sentAt, now, requester);
    this.requestReport(quota.remaining === 0 ? 'now' : 'soon');
    return !this.terms.isQuotaPerRequester;
  }

  dropQuota(isPerRequester: boolean, now: Millis): void {
    this.usageLog.quotaDisowned(isPerRequester, now);
    this.terms = withoutQuota(this.terms, isPerRequester, now);
    this.requestReport('now');
  }

  resumeQuota(owner: QuotaOwner, now: Millis): void {
    this.usageLog.quotaSpent(owner, now);
    this.requestReport('now');
  }

  stop(until: Millis): void {
    this.usageLog.stopped(until);
    this.requestReport('now');
  }

  resumeBlock(block: BlockStatus, now: Millis): void {
    this.usageLog.blocked(block, now);
    this.requestReport('now');
  }

  abandonProbe(): void {
    this.usageLog.probeAbandoned();
    this.requestReport('now');
  }

  seedHistory(accepted: PerSecond, now: Millis): void {
    this.usageLog.rateRemembered(accepted, now);
    this.requestReport('soon');
  }

  /** Says something only about a limit that learns from latency, which counts responses. */
  #onAbandoned(sentAt: Millis, now: Millis): undefined {
    if (!this.terms.countsResponses) return;
    this.usageLog.abandoned(sentAt, now);
    this.requestReport(this.#routineUrgency(now));
  }

  #recordFailure(attributes: RequestAttributes | undefined, now: Millis): void {
    if (attributes === undefined || !this.isOfSeveralClients) return;
    this.failedSenders ??= new RecentSenders();
    this.failedSenders.add(attributes, now);
  }

  /** While nothing limits, nothing waits for a report of sends and successes. */
  #routineUrgency(now: Millis): ReportUrgency {
    return this.terms.isUnlimited && now - this.#steadySince >= STEADY_AFTER ? 'later' : 'soon';
  }
}
