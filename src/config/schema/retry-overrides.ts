import type { BackOffConfig, BackOffOverride, RetryConfig, RetryOverride } from './config-schema.ts';

/**
 * The backoff with the override merged over it. Another strategy starts from its own defaults, because its options mean other
 * things.
 */
export function mergeBackOff(base: BackOffConfig, override: BackOffOverride | undefined): BackOffConfig {
  const { strategy = base.strategy, ...options } = override ?? {};
  return strategy === base.strategy ? { ...base, ...options } : { strategy, ...options };
}

/** The retry settings of an upstream with the override of a route merged over them. `backOffFor` is merged reason by reason. */
export function mergeRetry(base: RetryConfig, override: RetryOverride | undefined): RetryConfig {
  if (override === undefined) return base;
  return {
    retryOn: override.retryOn ?? base.retryOn,
    attempts: override.attempts ?? base.attempts,
    backOff: mergeBackOff(base.backOff, override.backOff),
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
