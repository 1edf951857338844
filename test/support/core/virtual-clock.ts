/** A clock for `retry` that advances only on request, or from one delay to the next. */
import type { RetryClock } from '../../../src/library/retry-clock.ts';

export interface VirtualClock extends RetryClock {
  /** Number of delays that are neither cancelled nor over. */
  readonly pending: () => number;
  /** The requested delays, in order. */
  readonly waits: number[];
}

/** Creates a clock that jumps to the end of the next delay whenever the program is idle. */
export function virtualClock(): VirtualClock {
  let now = 1000;
  let isDue = false;
  const pending = new Map<object, { readonly at: number; readonly wake: () => void }>();
  const waits: number[] = [];
  const turn = (): void => {
    isDue = false;
    const [first] = [...pending].toSorted(([, a], [, b]) => a.at - b.at);
    if (first === undefined) return;
    const [key, { at, wake }] = first;
    pending.delete(key);
    now = Math.max(now, at);
    wake();
    plan();
  };
  const plan = (): void => {
    if (isDue || pending.size === 0) return;
    isDue = true;
    setImmediate(turn);
  };
  return {
    now: () => now,
    wait(ms, wake) {
      const key = {};
      waits.push(ms);
      pending.set(key, { at: now + ms, wake });
      plan();
      return () => void pending.delete(key);
    },
    pending: () => pending.size,
    waits,
  };
}
