import type { LimitState } from '../../core/limits/limit-state.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { QuotaOwner, Requester } from '../../core/quota/requester.ts';
import { quotaCovers } from '../../core/quota/requester.ts';
import type { LatencyLimit } from '../../core/rate/in-flight-limiter.ts';
import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';
import type { LimitTerms } from './limit-terms.ts';
import { isHeldBack, probeOverdue } from './limit-terms.ts';

/** The view of a meter on its limit, read from the terms received last. */
export abstract class TermsView {
  protected terms: LimitTerms;

  /** Requests of this process that have no response yet. */
  abstract readonly unanswered: number;

  constructor(terms: LimitTerms) {
    this.terms = terms;
  }

  get phase(): LimitState {
    return this.terms.phase;
  }

  get ceiling(): PerSecond {
    return this.terms.ceiling;
  }

  get concurrencyLimit(): number | undefined {
    return this.terms.concurrencyLimit;
  }

  /** The number of others without a response is that of the last terms. */
  get latencyLimit(): LatencyLimit | undefined {
    const { concurrencyLimit: size, limitsUnanswered, isLatencyTest, otherUnanswered } = this.terms;
    if (size === undefined || !limitsUnanswered) return undefined;
    return { size, unanswered: otherUnanswered + this.unanswered, isTest: isLatencyTest };
  }

  get blockedUntil(): Millis | undefined {
    return this.terms.blockedUntil;
  }

  get quotaLeft(): number | undefined {
    return this.terms.quotaLeft;
  }

  get isUnlimited(): boolean {
    return this.terms.isUnlimited;
  }

  sharedRate(): PerSecond {
    return this.terms.rate;
  }

  get hasBlock(): boolean {
    return this.terms.block !== undefined;
  }

  block(): BlockStatus | undefined {
    return this.terms.block;
  }

  isHeldBack(now: Millis, source?: RequestAttributes): boolean {
    return isHeldBack(this.terms, now, source);
  }

  probeOverdueFor(now: Millis): Millis {
    return probeOverdue(this.terms, now);
  }

  isQuotaInForce(): boolean {
    return this.terms.quotaOwner !== undefined;
  }

  quotaAppliesTo(requester: Requester): boolean {
    const { quotaOwner } = this.terms;
    return quotaOwner === undefined || quotaCovers(quotaOwner, requester);
  }

  quotaOwner(): QuotaOwner | undefined {
    return this.terms.quotaOwner;
  }
}
