import { isBlackout, probeInterval } from './breaker/active-block.ts';
import { cutAgain, cutFirst, isSameEpoch } from './decrease.ts';
import { isApplicationLimited, isStale, rateOnCurve } from './growth.ts';
import { noteCost, noteLoss, planGrowth } from './probe-planner.ts';
import { hearNoise } from './background-rejections.ts';
import { PlacesEvidence } from './concurrency-limit.ts';
import { reopen } from './recovery.ts';

/** The rules of the adaptive rate, by name: each can be taken out and its worth be measured. */
export const RULES = {
  isSameEpoch,
  cutFirst,
  cutAgain,
  planGrowth,
  noteLoss,
  noteCost,
  rateOnCurve,
  isApplicationLimited,
  isStale,
  hearNoise,
  isBlackout,
  probeInterval,
  reopen,
  /** Whether a limit on requests in flight is looked for. */
  watchPlaces: (): Pick<PlacesEvidence, 'accepted' | 'rejected' | 'forget'> => new PlacesEvidence(),
} as const;

export type Rules = typeof RULES;
