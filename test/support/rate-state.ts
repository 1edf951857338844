/** The state of a rate and accounts of sends, as a test of one rule wants them. */
import { SendAccount } from '../../src/core/rate/send-history.ts';
import type { RateState } from '../../src/core/rate/rate-state.ts';
import { makeRateState } from '../../src/core/rate/rate-state.ts';
import type { Millis, PerSecond } from '../../src/core/exchange/attempt-outcome.ts';

/** Of a limit of 100 a second that was cut to 95 at 0, and has not grown since; K is 3 s. */
export function rateState(state: Partial<RateState> = {}): RateState {
  return {
    ...makeRateState({ initialRate: 100, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 }),
    rate: 95,
    rateAtCut: 95,
    cutAt: 0,
    risingSince: 0,
    grown: 0,
    ...state,
  };
}

/** By whole seconds, for two minutes. */
export function longAccount(): SendAccount {
  return new SendAccount(1000, 128);
}

/** By 50 ms, for a second. */
export function recentAccount(): SendAccount {
  return new SendAccount(50, 24);
}

/** Sends evenly from `start`, before `end`. */
export function sendEvenly(account: SendAccount, perSecond: PerSecond, start: Millis, end: Millis): SendAccount {
  for (let i = 0; start + (1000 * i) / perSecond < end; i += 1) account.sent(start + (1000 * i) / perSecond);
  return account;
}
