import { LocalMeter } from '../../../src/core/limits/meter.ts';
import type { Rules } from '../../../src/core/rate/rules.ts';
import { RULES } from '../../../src/core/rate/rules.ts';
import type { RateState } from '../../../src/core/rate/rate-state.ts';
import type { Controller } from './controllers.ts';
import { replace } from './replace.ts';

/** Ours, with other rules in the place of some. */
function without(name: string, others: Partial<Rules>): Controller {
  const rules: Rules = { ...RULES, ...others };
  return replace(name, { makeMeter: ({ rate }, random) => new LocalMeter(rate, random, rules) });
}

/** Rejections in a row, none accepted between. */
function blackoutAfter(count: number): Rules['isBlackout'] {
  return ({ rejectedInRow }) => rejectedInRow >= count;
}

function probeEvery(growth: number): Rules['probeInterval'] {
  return (probes, goodRate) => Math.min(5000, Math.max(50, 1000 / goodRate) * growth ** Math.min(probes, 16));
}

/** K, planned as if the state were another. */
function plan(change: (state: RateState) => Partial<RateState>): Rules['planGrowth'] {
  return (state) => RULES.planGrowth({ ...state, ...change(state) });
}

/** What a blackout shows, to one who does not know all of the state. */
function reopenWith(change: Partial<RateState>): Rules['reopen'] {
  return (state, long, block, sentAt) => RULES.reopen({ ...state, ...change }, long, block, sentAt);
}

/** Each without one rule of the adaptive rate, or with a simpler one. */
export const RULE_ABLATIONS: readonly Controller[] = [
  without('every 429 cuts', { isSameEpoch: () => false }),
  without('first cut to a half', {
    cutFirst: (...args) => {
      const cut = RULES.cutFirst(...args);
      return { ...cut, rate: cut.ceiling / 2 };
    },
  }),
  without('small cuts only', {
    cutAgain: ({ rate }) => ({ rate: 0.95 * rate, ceiling: rate, cause: 'small' }),
  }),
  without('cuts to a half', {
    cutAgain: ({ rate }) => ({ rate: rate / 2, ceiling: rate, cause: 'heavy' }),
  }),
  without('no memory of the ceiling', {
    cutAgain: (...args) => {
      const cut = RULES.cutAgain(...args);
      return { ...cut, ceiling: cut.rate };
    },
  }),
  without('a ceiling that believes each rejection', {
    cutAgain: (state) => ({ ...RULES.cutAgain(state), ceiling: state.rate }),
  }),
  without('K of 10 s', { planGrowth: () => 10_000 }),
  without('K blind to losses', { planGrowth: plan(() => ({ usualLoss: 1, lost: 1 })) }),
  without('K blind to guesses', {
    planGrowth: plan(({ found }) => ({ found: found === 'penalty' ? found : 'near' })),
  }),
  without('no cost', { noteCost: () => undefined }),
  without('straight growth', {
    rateOnCurve: ({ ceiling, rateAtCut, grown, growFor }) =>
      rateAtCut + ((ceiling - rateAtCut) * grown) / Math.max(1, growFor),
  }),
  without('growth while nobody asks', { isApplicationLimited: () => false }),
  without('probing at 60 % of use', {
    isApplicationLimited: (state, ...rest) => RULES.isApplicationLimited({ ...state, grown: 0, growFor: 1 }, ...rest),
  }),
  without('a stale ceiling is kept', { isStale: () => false }),
  without('every rejection is felt', { hearNoise: () => false }),
  without('blackout: two in a row', { isBlackout: blackoutAfter(2) }),
  without('blackout: four in a row', { isBlackout: blackoutAfter(4) }),
  without('blackout: eight in a row', { isBlackout: blackoutAfter(8) }),
  without('no blackouts', { isBlackout: () => false }),
  without('probes at double intervals', { probeInterval: probeEvery(2) }),
  without('probes every second', { probeInterval: () => 1000 }),
  without('no penalty', { reopen: reopenWith({ lastBlackout: 0 }) }),
  without('no moved limit', {
    reopen: (...args) => {
      const [{ found }] = args;
      const reopening = RULES.reopen(...args);
      return reopening.found === 'moved' ? { ...reopening, found, ceiling: reopening.rate / 0.95 } : reopening;
    },
  }),
  without('a half after a blackout', {
    reopen: (...args) => {
      const [{ ceiling }] = args;
      return { ...RULES.reopen(...args), rate: ceiling / 2, ceiling };
    },
  }),
  without('no places', {
    watchPlaces: () => ({ accepted: () => undefined, rejected: () => undefined, forget: () => undefined }),
  }),
];
