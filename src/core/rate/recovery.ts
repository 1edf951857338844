import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';
import type { SendAccount } from './send-history.ts';
import type { Blockade } from './breaker/active-block.ts';
import { blackoutEnd } from './breaker/active-block.ts';
import type { Found, RateState } from './rate-state.ts';

/** Far enough below the ceiling to say that the limit has moved. */
const MOVED = 0.7;
/** One blackout halves a rate at most: that it was long may also be chance. */
const DEEPEST = 0.5;
const SHORTEST_SPAN: Millis = 1000;
/** A blackout at least this long, as long as the one before: it was not the end of a window that was awaited. */
const PENALTY: Millis = 3000;
const AS_LONG = 0.15;

/** What a blackout has shown. */
export interface Reopening {
  readonly rate: PerSecond;
  readonly ceiling: PerSecond;
  readonly found: Found;
  readonly blackout: Millis;
}

/**
 * After rejections, at the answer to a probe that was sent at `sentAt`. What passes is what was accepted over the span
 * that outweighs the blackout. Never less than half, but where the ceiling was a guess at the first 429 and something was
 * accepted since. A limit that is far below where it was lies between that and what did not pass.
 */
export function reopen(state: RateState, long: SendAccount, block: Blockade, sentAt: Millis): Reopening {
  const endedAt = blackoutEnd(block, sentAt);
  const blackout = endedAt - block.since;
  const { ceiling } = state;
  const isFirst = state.found === 'first';
  if (!isFirst && isPenalty(blackout, state.lastBlackout)) {
    return { rate: 0.95 * ceiling, ceiling, found: 'penalty', blackout };
  }
  const seen = passed(state, long, endedAt, blackout);
  const accepted = isFirst && seen > 0 ? seen : Math.max(seen, DEEPEST * ceiling);
  const hasMoved = !isFirst && accepted < MOVED * ceiling;
  return {
    rate: 0.95 * accepted,
    ceiling: hasMoved ? (accepted + ceiling) / 2 : accepted,
    found: hasMoved ? 'moved' : state.found,
    blackout,
  };
}

/**
 * Of a window of unknown length W that was used up: the accepted rate over W is the limit. Where the rate did not fall
 * since the last cut that helped, over every other span that ends with the blackout it is less. So it is the highest.
 */
function passed({ risingSince }: RateState, long: SendAccount, endedAt: Millis, blackout: Millis): PerSecond {
  const since = Number.isFinite(risingSince) ? endedAt - risingSince : long.busyFor(endedAt, long.span);
  const shortest = Math.max(SHORTEST_SPAN, 2 * blackout);
  return long.bestRate(endedAt, shortest, Math.max(shortest, since));
}

/** Windows end when they end; a penalty takes as long whenever it begins. Then the rate was not far off. */
function isPenalty(blackout: Millis, last: Millis): boolean {
  return blackout > PENALTY && Math.abs(blackout - last) < AS_LONG * last;
}

/** What is remembered of a blackout that is over: what it cost, how long it was, where the limit turned out to be. */
export function learnOf(
  state: RateState,
  { noteCost }: { readonly noteCost: (state: RateState, seconds: number) => void },
  reopening: Reopening,
): Reopening {
  noteCost(state, reopening.blackout / 1000);
  state.lastBlackout = reopening.blackout;
  state.found = reopening.found;
  return reopening;
}
