/**
 * A machine that has other work stands still now and then, and what waits for its turn meanwhile is not answered in time.
 * What is seen of timing there says nothing of what is tested: it is tested again.
 *
 *     test('…', AGAIN_IF_STALLED, async () => {
 *       const stalls = watchStalls();
 *       …
 *       stalls.unlessStalled(() => expect(goodput).toBeGreaterThan(0.85));
 *     });
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { onTestFinished } from 'vitest';

const STALL_NS = 50e6;
const STALLED = 'the machine stood still meanwhile';

/** For `test`. What is asked does not change; how often it may be tried does. */
export const AGAIN_IF_STALLED = { timeout: 90_000, retry: { count: 3, condition: new RegExp(STALLED) } } as const;

export interface Stalls {
  /** Fails as `check` does, and says so where that may be because of a stall. */
  unlessStalled(check: () => void): void;
}

/** From now until the test has ended. */
export function watchStalls(): Stalls {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  onTestFinished(() => void delay.disable());
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
