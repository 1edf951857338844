import type { Clock, Millis } from '../core/scalars.ts';
import { LONGEST_TIMER } from '../http/longest-timer.ts';

/** The clock and timers of `retry`. Replace it in tests that must not wait. */
export interface RetryClock extends Clock {
  /** Calls `wake` once after `ms` milliseconds, never synchronously. @returns a function that cancels the call */
  wait(ms: Millis, wake: () => void): () => void;
}

/** `performance.now()` and the timers of this process. */
export const systemClock: RetryClock = {
  now: () => performance.now(),
  wait(ms, wake) {
    const timer = setTimeout(wake, Math.min(Math.ceil(ms), LONGEST_TIMER));
    return () => clearTimeout(timer);
  },
};
