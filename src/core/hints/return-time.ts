/** When a client returns that honours its Retry-After, which is in whole seconds, rounded up or down: see `formatRetryAfter`. */
import type { Millis } from '../scalars.ts';

const SECOND: Millis = 1000;
/** A client's timer may fire so much early. */
const EARLY: Millis = 50;
/** The time for the response, the client's timer and the new request. */
const TRANSIT_ALLOWANCE: Millis = 1000;
/** A client is on time until so long after the earliest time: the seconds may have been rounded up. */
export const RETURN_LATE_BY: Millis = SECOND + TRANSIT_ALLOWANCE;

/** The earliest time at which a client returns that was refused at `now` with this delay. */
export function earliestReturn(delay: Millis, now: Millis): Millis {
  return now + Math.max(SECOND, SECOND * Math.floor(delay / SECOND));
}

/** Whether a client that returns now is on time. @param earliest see `earliestReturn` */
export function isReturningOnTime(earliest: Millis, now: Millis): boolean {
  const lateBy = now - earliest;
  return lateBy >= -EARLY && lateBy <= RETURN_LATE_BY;
}
