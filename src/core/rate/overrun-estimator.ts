import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';
import type { CutCause } from '../events/proxy-events.ts';
import type { SendAccount } from './send-history.ts';
import { DELTA } from './decrease.ts';
import type { RateState } from './rate-state.ts';

const SECOND: Millis = 1000;
/** Long enough that chance counts for little, short enough to follow a limit that changes. */
const MEASURED_OVER: Millis = 5 * SECOND;

/**
 * Of a limit that is overrun, what it accepts is what it allows: no search is needed, and the rate we had is not at
 * fault. Taken from the whole seconds, of the last five before the rejected request left, in which something was
 * rejected; a little below is safe. Where the upstream allows no bursts, unpaced requests get less than paced ones would,
 * and so the rate is a lower bound.
 *
 * @param account by whole seconds
 * @returns undefined while there is no whole second to go by
 */
export function measure(
  account: SendAccount,
  sentAt: Millis,
): { readonly rate: PerSecond; readonly ceiling: PerSecond } | undefined {
  const end = SECOND * Math.floor(sentAt / SECOND) - 1;
  const felt = account.acceptedWhereRejected(end, MEASURED_OVER - 1);
  if (felt === undefined) return undefined;
  // Where windows are long, there are seconds in which nothing is accepted: they are no rate.
  const ceiling = Math.max(felt, account.acceptedRate(end, MEASURED_OVER - 1));
  return { rate: (1 - DELTA) * ceiling, ceiling };
}

/**
 * What is measured goes on being measured: one long signal is one cut, told where it began. `settle` makes the cut. While
 * what is measured still speaks of rejections, nothing grows.
 */
export function goOnMeasuring(state: RateState, settle: () => void, now: Millis): CutCause | undefined {
  const { phase } = state;
  settle();
  state.holdUntil = Math.max(state.holdUntil, now + MEASURED_OVER);
  if (phase === 'restoring') return 'small';
  state.phase = phase;
  return undefined;
}
