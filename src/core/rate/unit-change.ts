import type { AdaptiveRate } from './adaptive-rate.ts';
import { makeRateState } from './rate-state.ts';
import { SendHistories } from './send-histories.ts';

/**
 * Discards what a rate has learned in another unit than that of its settings: it would say nothing. Requests in flight stay counted.
 * Returns whether the unit has changed.
 */
export function adoptUnit(rate: AdaptiveRate): boolean {
  const { settings, state } = rate;
  if (state.unit === settings.unit) return false;
  Object.assign(state, makeRateState(settings));
  rate.history = new SendHistories();
  rate.breaker = rate.breaker.restart();
  return true;
}
