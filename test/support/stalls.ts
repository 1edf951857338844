/**
 * A busy machine sometimes stalls, which makes responses late. Timing measured during a stall says nothing about the
 * program, so the test is repeated.
 *
 *     test('…', AGAIN_IF_STALLED, async () => {
 *       const stalls = watchStalls();
 *       …
 *       stalls.unlessStalled(() => expect(goodput).toBeGreaterThan(0.85));
 *     });
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { atEnd } from './at-end.ts';

const STALL_NS = 50e6;
const STALLED = 'the machine stood still meanwhile';

/** Options of `test` that repeat it after a stall, with the same assertions. */
export const AGAIN_IF_STALLED = { timeout: 90_000, retry: { count: 3, condition: new RegExp(STALLED) } } as const;

export interface Stalls {
  /** Fails like `check`, and marks the failure if a stall may be the cause. */
  unlessStalled(check: () => void): void;
}

/** Watches for stalls until the test ends. */
export function watchStalls(): Stalls {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  atEnd(() => void delay.disable());
  return {
    unlessStalled: (check) => {
      try {
        check();
      } catch (error) {
        if (delay.max < STALL_NS || !(error instanceof Error)) throw error;
        throw new Error(`${error.message} (${STALLED}, for ${Math.round(delay.max / 1e6)} ms)`, { cause: error });
      }
    },
  };
}
