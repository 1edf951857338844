import type { Millis, PerSecond } from '../types.ts';
import type { RateState } from './state.ts';

/** What passed for so long was no burst. */
export const HELD_FOR: Millis = 60_000;
/** Below this part of a rate that held, a rejection is not expected. */
export const FAR = 0.85;
/** So large a share of rejections is no noise. */
const LOUDEST = 0.015;
/** Fewer answers say nothing of a share; more than these are forgotten by and by. */
const FEWEST = 50;
const MOST = 500;

/**
 * Rejections that have nothing to do with our rate (a route, a tenant, an object with a limit of its own) are as many at
 * any rate. So they are measured where none is expected, far below a rate that held for a minute; and as long as there
 * are not twice as many, they cut nothing. Else each of them would take the rate down for good: what is lost to them is a
 * share of what is sent, and no rate is low enough.
 */
export function hearNoise(state: RateState, held: PerSecond): boolean {
  const { cycleAccepted, cycleRejected, rate } = state;
  const answered = cycleAccepted + cycleRejected;
  if (answered < FEWEST) return false;
  const share = cycleRejected / answered;
  if (answered > MOST) {
    state.cycleAccepted /= 2;
    state.cycleRejected /= 2;
  }
  if (rate >= FAR * held) return share <= 2 * state.noise;
  if (share > LOUDEST) return false;
  state.noise = Math.max(state.noise, share);
  return true;
}

/** A cut is evidence against noise: what was taken for it may have been the limit. */
export function doubtNoise(state: RateState): void {
  state.noise /= 2;
}
