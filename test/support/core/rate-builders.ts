/** Builders of rate states, blocks and send histories for tests of one rule. */
import type { ActiveBlock, BlockParameters } from '../../../src/core/rate/breaker/active-block.ts';
import { createBlock, probeInterval } from '../../../src/core/rate/breaker/active-block.ts';
import { ANY_REQUEST } from '../../../src/core/rate/breaker/request-attributes.ts';
import { SendHistory } from '../../../src/core/rate/send-history.ts';
import type { RateState } from '../../../src/core/rate/rate-state.ts';
import { makeRateState } from '../../../src/core/rate/rate-state.ts';
import type { Millis, PerSecond } from '../../../src/core/scalars.ts';

/** The rate of a limit of 100 a second after a cut to 95 at time 0, without growth since; K is 3 s. */
export function rateState(state: Partial<RateState> = {}): RateState {
  return {
    ...makeRateState({ initialRate: 100, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 }),
    rate: 95,
    rateAfterDecrease: 95,
    decreasedAt: 0,
    risingSince: 0,
    growthElapsed: 0,
    ...state,
  };
}

/** A block of all requests by errors since 1000, whose first probe is due, with these changes. */
export function activeBlock(changes: Partial<ActiveBlock> = {}): ActiveBlock {
  const parameters: BlockParameters = {
    cause: 'errors',
    scope: [...ANY_REQUEST],
    rateBefore: 100,
    wasUnlimited: false,
    stateBefore: rateState(),
    isResumed: false,
    isOverrun: false,
    probeTimeout: 30_000,
    interval: probeInterval,
  };
  return { ...createBlock(parameters, 1000), ...changes };
}

/** A history of two minutes in steps of one second. */
export function longSendHistory(): SendHistory {
  return new SendHistory(1000, 128);
}

/** A history of one second in steps of 50 ms. */
export function recentSendHistory(): SendHistory {
  return new SendHistory(50, 24);
}

/** Records evenly spaced sends from `start` to `end`, exclusive. */
export function sendEvenly(history: SendHistory, perSecond: PerSecond, start: Millis, end: Millis): SendHistory {
  for (let i = 0; start + (1000 * i) / perSecond < end; i += 1) history.onSent(start + (1000 * i) / perSecond);
  return history;
}
