/** A clock of `retry` that only moves when it is told to, or from wait to wait. */
import type { RetryClock } from '../../src/library/retry-clock.ts';

export interface VirtualClock extends RetryClock {
  /** Waits that nobody has called off and that have not come to their end. */
  readonly pending: () => number;
  /** What was waited for, in order. */
  readonly waits: number[];
}

/** Moves on to the next end of a wait as soon as nothing else is to do. */
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
