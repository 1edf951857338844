import type { CutCause } from '../events.ts';
import type { Millis, Random } from '../types.ts';
import type { SendAccount } from './account.ts';
import { DELTA, settleCut } from './cut.ts';
import type { RateSettings, RateState } from './state.ts';

const SECOND: Millis = 1000;
/** Long enough that chance counts for little, short enough to follow a limit that changes. */
const SPAN: Millis = 5 * SECOND;

/**
 * Of a limit that is overrun, what it accepts is what it allows: no search is needed, and the rate we had is not at
 * fault. Taken from the whole seconds, of the last five before the rejected request left, in which something was
 * rejected; a little below is safe. Where the upstream allows no bursts, unpaced requests get less than paced ones would,
 * and so the rate is a lower bound.
 *
 * @param account by whole seconds
 * @returns the cause of a cut when this is where it began, and undefined while it goes on: one long signal is one cut
 */
export function measure(
  state: RateState,
  settings: RateSettings,
  account: SendAccount,
  sentAt: Millis,
  now: Millis,
  random: Random,
): CutCause | undefined {
  const end = SECOND * Math.floor(sentAt / SECOND) - 1;
  const felt = account.acceptedWhereRejected(end, SPAN - 1);
  if (felt === undefined) return undefined;
  // Where windows are long, there are seconds in which nothing is accepted: they are no rate.
  const accepted = Math.max(felt, account.acceptedRate(end, SPAN - 1));
  const { phase } = state;
  state.ceiling = Math.min(accepted, settings.maxRate);
  settleCut(state, settings, (1 - DELTA) * accepted, now, random);
  // While what is measured still speaks of rejections, nothing grows.
  state.holdUntil = Math.max(state.holdUntil, now + SPAN);
  if (phase === 'restoring') return 'small';
  state.phase = phase;
  return undefined;
}
