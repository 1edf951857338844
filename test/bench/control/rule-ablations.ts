import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { RateRules } from '../../../src/core/rate/rules.ts';
import { RATE_RULES } from '../../../src/core/rate/rules.ts';
import type { RateState } from '../../../src/core/rate/rate-state.ts';
import type { Controller } from './controllers.ts';
import { replace } from './replace.ts';

/** Tidegate with some rules replaced. */
function without(name: string, others: Partial<RateRules>): Controller {
  const rules: RateRules = { ...RATE_RULES, ...others };
  return replace(name, { makeMeter: ({ rate }, random) => new LocalMeter(rate, random, rules) });
}

/** A blackout after `count` consecutive rejections. */
function blackoutAfter(count: number): RateRules['isBlackout'] {
  return ({ consecutiveRejections }) => consecutiveRejections >= count;
}

function probeEvery(growth: number): RateRules['probeInterval'] {
  return (probes, goodRate) => Math.min(5000, Math.max(50, 1000 / goodRate) * growth ** Math.min(probes, 16));
}

/** Plans K with a changed state. */
function plan(change: (state: RateState) => Partial<RateState>): RateRules['planGrowthPeriod'] {
  return (state) => RATE_RULES.planGrowthPeriod({ ...state, ...change(state) });
}

/** Plans the recovery from a blackout with a changed state. */
function reopenWith(change: Partial<RateState>): RateRules['planRecovery'] {
  return (state, long, block, sentAt) => RATE_RULES.planRecovery({ ...state, ...change }, long, block, sentAt);
}

/** Controllers without one rule of the adaptive rate, or with a simpler one. */
export const RULE_ABLATIONS: readonly Controller[] = [
  without('every 429 cuts', { isSameEpoch: () => false }),
  without('first cut to a half', {
    computeFirstDecrease: (...args) => {
      const cut = RATE_RULES.computeFirstDecrease(...args);
      return { ...cut, rate: cut.ceiling / 2 };
    },
  }),
  without('small cuts only', {
    computeLaterDecrease: ({ rate }) => ({ rate: 0.95 * rate, ceiling: rate, cause: 'small' }),
  }),
  without('cuts to a half', {
    computeLaterDecrease: ({ rate }) => ({ rate: rate / 2, ceiling: rate, cause: 'heavy' }),
  }),
  without('no memory of the ceiling', {
    computeLaterDecrease: (...args) => {
      const cut = RATE_RULES.computeLaterDecrease(...args);
      return { ...cut, ceiling: cut.rate };
    },
  }),
  without('ceiling lowered by each rejection', {
    computeLaterDecrease: (state) => ({ ...RATE_RULES.computeLaterDecrease(state), ceiling: state.rate }),
  }),
  without('K of 10 s', { planGrowthPeriod: () => 10_000 }),
  without('K ignores losses', { planGrowthPeriod: plan(() => ({ usualProbeLoss: 1, probeLoss: 1 })) }),
  without('K ignores the last finding', {
    planGrowthPeriod: plan(({ lastFinding }) => ({ lastFinding: lastFinding === 'penalty' ? lastFinding : 'near' })),
  }),
  without('no cost', { recordRejectionCost: () => undefined }),
  without('linear growth', {
    cubicGrowthRate: ({ ceiling, rateAfterDecrease, growthElapsed, growthPeriod }) =>
      rateAfterDecrease + ((ceiling - rateAfterDecrease) * growthElapsed) / Math.max(1, growthPeriod),
  }),
  without('growth without demand', { isApplicationLimited: () => false }),
  without('probing at 60 % of use', {
    isApplicationLimited: (state, ...rest) =>
      RATE_RULES.isApplicationLimited({ ...state, growthElapsed: 0, growthPeriod: 1 }, ...rest),
  }),
  without('a stale ceiling is kept', { isCeilingStale: () => false }),
  without('every rejection counts', { isBackgroundRejection: () => false }),
  without('blackout: two in a row', { isBlackout: blackoutAfter(2) }),
  without('blackout: four in a row', { isBlackout: blackoutAfter(4) }),
  without('blackout: eight in a row', { isBlackout: blackoutAfter(8) }),
  without('no blackouts', { isBlackout: () => false }),
  without('probes at double intervals', { probeInterval: probeEvery(2) }),
  without('probes every second', { probeInterval: () => 1000 }),
  without('no penalty', { planRecovery: reopenWith({ lastBlackout: 0 }) }),
  without('the same Retry-After is no penalty', { isPenaltyHint: () => false }),
  without('a first penalty is a window', {
    planRecovery: (...args) => {
      const recovery = RATE_RULES.planRecovery(...args);
      return { ...recovery, finding: recovery.finding === 'first-penalty' ? 'first' : recovery.finding };
    },
  }),
  without('no moved limit', {
    planRecovery: (...args) => {
      const [{ lastFinding }] = args;
      const reopening = RATE_RULES.planRecovery(...args);
      return reopening.finding === 'moved'
        ? { ...reopening, finding: lastFinding, ceiling: reopening.rate / 0.95 }
        : reopening;
    },
  }),
  without('a half after a blackout', {
    planRecovery: (...args) => {
      const [{ ceiling }] = args;
      return { ...RATE_RULES.planRecovery(...args), rate: ceiling / 2, ceiling };
    },
  }),
  without('no concurrency detection', {
    makeConcurrencyDetector: () => ({
      onAccepted: () => undefined,
      onRejected: () => undefined,
      reset: () => undefined,
    }),
  }),
];
