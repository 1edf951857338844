import type { Millis, PerSecond } from '../scalars.ts';
import type { SendHistory } from './send-history.ts';
import type { ActiveBlock } from './breaker/active-block.ts';
import { blackoutEnd } from './breaker/active-block.ts';
import { cutByPenalty, isPenaltyBlackout } from './penalty.ts';
import type { LimitFinding, RateState } from './rate-state.ts';

/** Below this share of the ceiling, the limit has moved. */
const MOVED_BELOW = 0.7;
/** One blackout at most halves a rate: its length may be chance. */
const MAX_DECREASE_TO = 0.5;
const MIN_MEASURED_SPAN: Millis = 1000;
/** A window that was used up at fifty times its rate is less likely than a penalty. */
const PENALTY_BELOW = 0.02;

/** What a blackout has shown about the limit. */
export interface Recovery {
  readonly rate: PerSecond;
  readonly ceiling: PerSecond;
  readonly finding: LimitFinding;
  readonly blackout: Millis;
}

/**
 * Plans the rate after a blackout by rejections. It is the accepted rate over the span that outweighs the blackout, but at
 * least half the ceiling, unless the ceiling was a guess at the first rejection and requests were accepted since. The
 * ceiling of a limit that has moved lies between that rate and the old ceiling. Under a penalty the rate follows from the
 * ceiling, which is lowered if the limit must be below it.
 * @param sentAt when the accepted probe was sent
 */
export function planRecovery(state: RateState, history: SendHistory, block: ActiveBlock, sentAt: Millis): Recovery {
  const endedAt = blackoutEnd(block, sentAt);
  const blackout = endedAt - block.since;
  const { ceiling } = state;
  const isFirst = state.lastFinding === 'first';
  if (!isFirst && isPenaltyBlackout(blackout, state.lastBlackout)) {
    const before = block.isOverrun ? undefined : block.stateBefore;
    return { ...cutByPenalty(ceiling, before), finding: 'penalty', blackout };
  }
  const acceptedRate = acceptedBefore(state, history, endedAt, blackout);
  const accepted = isFirst && acceptedRate > 0 ? acceptedRate : Math.max(acceptedRate, MAX_DECREASE_TO * ceiling);
  const hasMoved = !isFirst && accepted < MOVED_BELOW * ceiling;
  return {
    rate: 0.95 * accepted,
    ceiling: hasMoved ? (accepted + ceiling) / 2 : accepted,
    finding: hasMoved ? 'moved' : isFirst && accepted < PENALTY_BELOW * ceiling ? 'first-penalty' : state.lastFinding,
    blackout,
  };
}

/**
 * The accepted rate up to the end of the blackout. After a window of unknown length W is used up, the accepted rate over W
 * is the limit. If the rate has not fallen since the last cut that helped, the accepted rate is lower over any other span
 * that ends with the blackout; so the highest one is the limit.
 */
function acceptedBefore({ risingSince }: RateState, long: SendHistory, endedAt: Millis, blackout: Millis): PerSecond {
  const since = Number.isFinite(risingSince) ? endedAt - risingSince : long.activeFor(endedAt, long.span);
  const shortest = Math.max(MIN_MEASURED_SPAN, 2 * blackout);
  return long.bestRate(endedAt, shortest, Math.max(shortest, since));
}

/** Stores what a blackout has cost, its duration, and where it found the limit. */
export function recordRecovery(
  state: RateState,
  { recordRejectionCost }: { readonly recordRejectionCost: (state: RateState, seconds: number) => void },
  recovery: Recovery,
): Recovery {
  recordRejectionCost(state, recovery.blackout / 1000);
  state.lastBlackout = recovery.blackout;
  state.lastFinding = recovery.finding;
  return recovery;
}
