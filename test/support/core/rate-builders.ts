/** Builders of rate states and send histories for tests of one rule. */
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
