import type { Clock, Millis } from '../core/scalars.ts';
import { MAX_TIMER_MS } from './duration.ts';

/** The clock and timers of `retry`. Replace it in tests that must not wait. */
export interface RetryClock extends Clock {
  /** Calls `wake` once after `ms` milliseconds, never synchronously. @returns a function that cancels the call */
  wait(ms: Millis, wake: () => void): () => void;
}

/** `performance.now()` and the timers of this process. */
export const systemClock: RetryClock = {
  now: () => performance.now(),
  wait(ms, wake) {
    const timer = setTimeout(wake, Math.min(Math.ceil(ms), MAX_TIMER_MS));
    return () => clearTimeout(timer);
  },
};
