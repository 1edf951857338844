import { isBlackout, probeInterval } from './block.ts';
import { cutAgain, cutFirst, isSameEpoch } from './cut.ts';
import { isApplicationLimited, isStale, rateOnCurve } from './grow.ts';
import { noteCost, noteLoss, planGrowth } from './plan.ts';
import { hearNoise } from './noise.ts';
import { PlacesEvidence } from './places.ts';
import { reopen } from './reopen.ts';

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
