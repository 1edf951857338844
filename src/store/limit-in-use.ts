import type { Limit } from '../core/limits/limit.ts';

/** Whether a request waits at this limit or one nested in it, or is in flight. */
export function isLimitInUse({ isAwaited, meter }: Limit): boolean {
  return isAwaited || meter.inFlight > 0;
}
