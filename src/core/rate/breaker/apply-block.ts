import type { CutCause } from '../../limits/limit-state.ts';
import type { Millis } from '../../scalars.ts';
import type { RateDecrease } from '../decrease.ts';
import { recentAcceptedRate } from '../decrease.ts';
import type { FailedSend } from '../failed-send.ts';
import type { RateState } from '../rate-state.ts';
import { MIN_GROWTH_PERIOD } from '../rate-state.ts';
import { recordRecovery } from '../recovery.ts';
import type { RateRules } from '../rules.ts';
import type { SendHistories } from '../send-histories.ts';
import type { SendHistory } from '../send-history.ts';
import type { ActiveBlock, BlockCause } from './active-block.ts';
import type { Breaker } from './breaker.ts';
import { ACCEPTED_SPAN } from './breaker.ts';
import type { RejectedPart } from './rejected-part.ts';

/** The parts of an adaptive rate that a block changes. */
interface Blockable {
  readonly state: RateState;
  readonly history: SendHistories;
  readonly breaker: Breaker;
}

/**
 * Blocks a limit at which nothing gets through. Returns the cause of the cut event.
 * @param part the part that is affected, if others are known to pass
 */
export function startBlock(
  { state, history, breaker }: Blockable,
  cause: BlockCause,
  failure: FailedSend,
  now: Millis,
  part?: RejectedPart,
): CutCause {
  const acceptedRate = Math.max(recentAcceptedRate(history.recent, now), history.long.acceptedRate(now, ACCEPTED_SPAN));
  breaker.block(state, { cause, failure, acceptedRate, part }, now);
  return cause === 'rejections' ? 'blocked' : 'errors';
}

/**
 * The rate after a block. After rejections: what the blackout has shown to pass. After errors: half of what passed before.
 * @param sentAt when the accepted probe was sent
 */
export function rateAfterBlock(
  state: RateState,
  rules: RateRules,
  history: SendHistory,
  block: ActiveBlock,
  sentAt: Millis,
): Pick<RateDecrease, 'rate' | 'ceiling'> {
  if (block.cause !== 'rejections') return { rate: block.rateBefore / 2, ceiling: block.rateBefore };
  return recordRecovery(state, rules, rules.planRecovery(state, history, block, sentAt));
}

/** Sets how the rate grows after a block: after errors, back to the whole rate in 3 s. */
export function leaveBlock(state: RateState, { cause }: ActiveBlock, now: Millis): void {
  if (cause === 'rejections') {
    state.phase = 'cooldown';
    state.risingSince = now;
  } else {
    state.growthPeriod = MIN_GROWTH_PERIOD;
    state.phase = 'restoring';
  }
}
