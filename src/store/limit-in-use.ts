import type { Limit } from '../core/limits/limit.ts';

/** Somebody waits there, or is on the way because of it. */
export function isUsed({ queue, queuedWithin, meter }: Limit): boolean {
  return queue.size > 0 || meter.inFlight > 0 || (queuedWithin !== undefined && queuedWithin.size > 0);
}
