import type { PerSecond } from '../exchange/attempt-outcome.ts';
import type { RateState } from './rate-state.ts';
import { FAST_GROWTH, feltAfter } from './rate-state.ts';

/** Fewer answers, or rejections, say nothing of a share; more answers than these are forgotten by and by. */
const FEWEST = 50;
const FEWEST_REJECTED = 6;
const MOST = 500;
/** So many times as many rejections as expected, and so many more, are still chance. */
const LOUDER = 1.5;
const CHANCE = 2;

/** What came of a rate, from one cut to the next. */
export interface Cycle {
  readonly rate: PerSecond;
  readonly accepted: number;
  readonly rejected: number;
}

/** So many cycles are remembered. */
const CYCLES = 40;
/** A rate that sinks for noise sinks little by little: from one cycle to the next it falls and rises by no more. */
const FALLS_TO = 1 / 1.45;
const RISES_TO = 1 / 0.75;
/** A cycle of which so much was rejected, and no less, has met a limit. */
const FELT = 3;
const LIMITED = 0.3;
/** Rates this far apart would be rejected differently by a limit: of what is sent at twice its rate, half. */
const NEAR = 1.25;
const APART = 2;
/** Shares within this factor are alike. */
const ALIKE = 2;
/** What probing costs is no noise; and a larger share than this is none, whatever it is like. */
const QUIETEST = 0.01;
const LOUDEST = 0.15;
/** How much of what is believed of noise outlasts a cut. */
const BELIEVED = 0.75;

/**
 * Whether a rejection is noise: some have nothing to do with our rate (a route, a tenant, an object with a limit of its
 * own). They are as many at any rate, and no rate is low enough. So where the rate has sunk to a half, little by little,
 * and as large a share is rejected as at the beginning, that share is noise. As long as it is not half as large again, it
 * cuts nothing.
 */
export function hearNoise(state: RateState): boolean {
  const { latelyAccepted, latelyRejected, noise } = state;
  const answered = latelyAccepted + latelyRejected;
  if (answered > MOST) {
    state.latelyAccepted /= 2;
    state.latelyRejected /= 2;
  }
  if (noise > 0 && latelyRejected <= CHANCE + LOUDER * noise * answered) return true;
  const share = shareAtAnyRate(state);
  if (share === undefined) return false;
  state.noise = share;
  comeBack(state);
  return true;
}

/** The share of rejections that was the same while the rate fell by much; undefined where it was not, or is not known. */
function shareAtAnyRate({ cycles, rate, latelyAccepted, latelyRejected }: RateState): number | undefined {
  const near = { accepted: latelyAccepted, rejected: latelyRejected };
  const above = { accepted: 0, rejected: 0 };
  for (const cycle of fallOf(cycles, rate)) {
    const side = cycle.rate <= NEAR * rate ? near : cycle.rate >= APART * rate ? above : undefined;
    if (side === undefined) continue;
    side.accepted += cycle.accepted;
    side.rejected += cycle.rejected;
  }
  const answeredNear = near.accepted + near.rejected;
  const answeredAbove = above.accepted + above.rejected;
  if (Math.min(answeredNear, answeredAbove) < FEWEST) return undefined;
  if (Math.min(near.rejected, above.rejected) < FEWEST_REJECTED) return undefined;
  const shareNear = near.rejected / answeredNear;
  const shareAbove = above.rejected / answeredAbove;
  const areAlike = shareAbove <= ALIKE * shareNear && shareNear <= ALIKE * shareAbove;
  const isNoise = areAlike && shareNear >= QUIETEST && shareNear <= LOUDEST;
  return isNoise ? (shareNear + shareAbove) / 2 : undefined;
}

/** The last cycles, newest first, in which the rate sank little by little to what it is now. */
function fallOf(cycles: readonly Cycle[], rate: PerSecond): Cycle[] {
  const fall: Cycle[] = [];
  let last = rate;
  for (let i = cycles.length - 1; i >= 0; i -= 1) {
    const cycle = cycles[i];
    if (cycle === undefined || cycle.rate < last / RISES_TO || cycle.rate > last / FALLS_TO) break;
    if (isLimited(cycle)) break;
    fall.push(cycle);
    last = cycle.rate;
  }
  return fall;
}

/** Whether a limit was felt, not noise alone. */
function isLimited({ accepted, rejected }: Cycle): boolean {
  return rejected >= FELT && rejected > LIMITED * (accepted + rejected);
}

/** What noise has taken down was not too much: back to where it began, as soon as may be. */
function comeBack(state: RateState): void {
  const { cycles, rate } = state;
  const before = fallOf(cycles, rate).at(-1)?.rate ?? rate;
  state.ceiling = Math.max(state.ceiling, before);
  state.rateAtCut = rate;
  state.grown = 0;
  state.growFor = Math.max(FAST_GROWTH, 6 * feltAfter(state));
}

/** A cut is evidence against noise: what was taken for it may have been the limit. To be told before the cut. */
export function doubtNoise(state: RateState): void {
  const { rate, cycleAccepted, cycleRejected, cycles } = state;
  state.noise *= BELIEVED;
  if (!Number.isFinite(rate)) return; // nothing was paced: it tells nothing of a rate
  cycles.push({ rate, accepted: cycleAccepted, rejected: cycleRejected });
  if (cycles.length > CYCLES) cycles.shift();
}
