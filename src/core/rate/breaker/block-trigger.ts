import type { PerSecond } from '../../scalars.ts';
import type { FailedSend } from '../failed-send.ts';
import type { RateState } from '../rate-state.ts';
import type { BlockCause } from './active-block.ts';
import type { RejectedPart } from './rejected-part.ts';

/** The least rate that is assumed to have passed before a block, where little was seen. */
export const MIN_RATE_BEFORE: PerSecond = 5;

/** Why a limit is being blocked. */
export interface BlockTrigger {
  readonly cause: BlockCause;
  /** The last of the requests that did not get through. */
  readonly failure: FailedSend;
  /** The recently accepted rate. */
  readonly acceptedRate: PerSecond;
  /** The part of the requests that is affected, if others are known to pass. */
  readonly part?: RejectedPart | undefined;
}

/**
 * Estimates the rate that passed before a block: the rate of the limit or, for an unlimited one, what was accepted.
 * @param recoveredRate what passed before the last block by errors, while that is recent; else 0
 * @param isRecovering that rate is not reached again yet
 */
export function estimateRateBefore(
  { rate, ceiling }: RateState,
  { failure, acceptedRate }: BlockTrigger,
  wasUnlimited: boolean,
  recoveredRate: PerSecond,
  isRecovering: boolean,
): PerSecond {
  const recentRate = Math.max(MIN_RATE_BEFORE, acceptedRate, recoveredRate);
  // A rate that was exceeded, or is still recovering, did not cause the errors: else they would halve it repeatedly.
  const assumedRate = failure.overrun === true || isRecovering ? ceiling : rate;
  return Number.isFinite(assumedRate) && !wasUnlimited ? assumedRate : Math.min(assumedRate, recentRate);
}
