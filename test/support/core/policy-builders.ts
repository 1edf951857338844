/** Policies, settings and outcomes with defaults that a test overrides. */
import { NO_HINTS } from '../../../src/core/hints/hints.ts';
import type { AttemptOutcome, ErrorReason } from '../../../src/core/exchange/attempt-outcome.ts';
import type { BackOff } from '../../../src/core/backoff/back-off.ts';
import type { Hints } from '../../../src/core/hints/hints.ts';
import type { Millis, PerSecond } from '../../../src/core/scalars.ts';
import type { RequestFacts } from '../../../src/core/exchange/request-facts.ts';
import type { RetryPolicy } from '../../../src/core/retry/retry-policy.ts';
import type { RoutePolicy } from '../../../src/core/exchange/steps.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { PollPolicy } from '../../../src/core/polling/choose-poll.ts';
import type { UpstreamSettings } from '../../../src/store/upstream-state.ts';

export function response(status: number, hints: Partial<Hints> = {}, took: Millis = 0): AttemptOutcome {
  return { kind: 'response', status, hints: { ...NO_HINTS, ...hints }, took };
}

export function failure(reason: ErrorReason, sent: boolean, took: Millis = 0): AttemptOutcome {
  return { kind: 'error', reason, sent, took };
}

export function fixedDelay(delay: Millis): BackOff {
  return { name: 'fixed', next: () => ({ delay, memory: 0 }) };
}

/** Retries everything retryable: 4 attempts, 100 ms apart. */
export function retryPolicy(policy: Partial<RetryPolicy> = {}): RetryPolicy {
  return {
    retryOn: RETRY_ALL,
    attempts: 4,
    backOff: fixedDelay(100),
    backOffFor: {},
    maxRetryAfter: 60_000,
    unkeyedWrites: 'never',
    onClientGone: 'cancel',
    ...policy,
  };
}

export const RETRY_ALL: RetryPolicy['retryOn'] = {
  statuses: new Set([429, ...Array.from({ length: 100 }, (_, i) => 500 + i)]),
  connect: true,
  reset: true,
  timeout: true,
  lock: true,
};

/** A single attempt. */
export const SEND_ONCE: RetryPolicy = retryPolicy({ attempts: 1 });

/** Polls after a 202, one second apart, for at most one minute. */
export function pollPolicy(policy: Partial<PollPolicy> = {}): PollPolicy {
  return {
    notReady: new Set([202]),
    backOff: fixedDelay(1000),
    maxWait: 60_000,
    maxPolls: 50,
    maxWaiting: 1000,
    ...policy,
  };
}

export function requestFacts(facts: Partial<RequestFacts> = {}): RequestFacts {
  return { method: 'GET', keyed: false, expectsContinue: false, priorAttempts: 0, ...facts };
}

export function routePolicy(plan: Partial<RoutePolicy> = {}): RoutePolicy {
  return { retry: retryPolicy(), timeout: 10_000, perTryTimeout: 5000, ...plan };
}

export const SHARED: LimitRef = { upstream: 'up', nested: '', scope: 'upstream', key: '' };

export function upstreamSettings(settings: Partial<UpstreamSettings> = {}): UpstreamSettings {
  return {
    name: 'up',
    scope: 'upstream',
    rate: { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 },
    queue: { maxWait: 1000, maxDepth: 10_000 },
    budget: { ratio: 0.2, burst: 10 },
    ...settings,
  };
}

/** A fixed rate, known from the start. */
export function limitedTo(rate: PerSecond): Partial<UpstreamSettings> {
  return { rate: { initialRate: rate, maxRate: rate, minRate: Math.min(0.1, rate), cooldown: 1000 } };
}
