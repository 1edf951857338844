import type { BackOffConfig, BackOffOverride, RetryConfig, RetryOverride } from './config-schema.ts';

/** The backoff with what the override says instead. Another strategy starts from its own defaults: options mean other things to it. */
export function overrideBackOff(base: BackOffConfig, override: BackOffOverride | undefined): BackOffConfig {
  const { strategy = base.strategy, ...options } = override ?? {};
  return strategy === base.strategy ? { ...base, ...options } : { strategy, ...options };
}

/** The retries of an upstream as one of its routes has them. Reasons that the route's `backOffFor` leaves out stay as they are. */
export function overrideRetry(base: RetryConfig, override: RetryOverride | undefined): RetryConfig {
  if (override === undefined) return base;
  return {
    retryOn: override.retryOn ?? base.retryOn,
    attempts: override.attempts ?? base.attempts,
    backOff: overrideBackOff(base.backOff, override.backOff),
    backOffFor: { ...base.backOffFor, ...override.backOffFor },
    budget: base.budget,
    maxRetryAfter: override.maxRetryAfter ?? base.maxRetryAfter,
    replayLimit: override.replayLimit ?? base.replayLimit,
    unkeyedWrites: override.unkeyedWrites ?? base.unkeyedWrites,
    onClientGone: override.onClientGone ?? base.onClientGone,
    notProcessed: override.notProcessed ?? base.notProcessed,
    minAttemptTime: override.minAttemptTime ?? base.minAttemptTime,
    safePaths: override.safePaths ?? base.safePaths,
    neverPaths: override.neverPaths ?? base.neverPaths,
  };
}
