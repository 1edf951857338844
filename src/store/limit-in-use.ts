import type { Limit } from '../core/limits/limit.ts';

/** Whether a request waits at this limit or one nested in it, or is in flight. */
export function isLimitInUse({ queue, nestedWithWaiters, meter }: Limit): boolean {
  return queue.size > 0 || meter.inFlight > 0 || (nestedWithWaiters !== undefined && nestedWithWaiters.size > 0);
}
