import type { Clock, Millis } from '../core/exchange/attempt-outcome.ts';
import { LONGEST } from './duration.ts';

/** Time as `retry` knows it; another one for tests that do not wait. */
export interface RetryClock extends Clock {
  /** Calls back once after so long, never within this call. @returns what calls it off */
  wait(ms: Millis, wake: () => void): () => void;
}

/** Of this process: `performance.now()` and its timers. */
export const systemClock: RetryClock = {
  now: () => performance.now(),
  wait(ms, wake) {
    const timer = setTimeout(wake, Math.min(Math.ceil(ms), LONGEST));
    return () => clearTimeout(timer);
  },
};
