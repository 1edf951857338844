import { isBlackout, probeInterval } from './breaker/active-block.ts';
import { computeLaterDecrease, computeFirstDecrease, isSameEpoch } from './decrease.ts';
import { isApplicationLimited, isCeilingStale, cubicGrowthRate } from './growth.ts';
import { recordRejectionCost, recordProbeLoss, planGrowthPeriod } from './probe-planner.ts';
import { isBackgroundRejection } from './background-rejections.ts';
import { ConcurrencyLimitDetector } from './concurrency-limit.ts';
import { LatencyLimiter } from './latency-limiter.ts';
import { isPenaltyHint } from './penalty.ts';
import { planRecovery } from './recovery.ts';

/** The rules of the adaptive rate, by name, so that an ablation can replace one and measure its effect. */
export const RATE_RULES = {
  isSameEpoch,
  computeFirstDecrease,
  computeLaterDecrease,
  planGrowthPeriod,
  recordProbeLoss,
  recordRejectionCost,
  cubicGrowthRate,
  isApplicationLimited,
  isCeilingStale,
  isBackgroundRejection,
  isBlackout,
  probeInterval,
  planRecovery,
  isPenaltyHint,
  makeConcurrencyDetector: (): Pick<ConcurrencyLimitDetector, 'onAccepted' | 'onRejected' | 'reset'> =>
    new ConcurrencyLimitDetector(),
  makeLatencyLimiter: (): Pick<LatencyLimiter, 'limit' | 'throughput' | 'onAnswer' | 'onTimeout' | 'advance'> =>
    new LatencyLimiter(),
} as const;

export type RateRules = typeof RATE_RULES;
