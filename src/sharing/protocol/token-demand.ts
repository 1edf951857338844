import type { Limit } from '../../core/limits/limit.ts';
import type { Meter } from '../../core/limits/meter.ts';
import type { Store } from '../../core/admission/gate-store.ts';

/**
 * Those who could go if they had a token: who waits for a connection has no use for one yet, nor has who lacks one of a
 * limit further in.
 */
export function countWaiting(limit: Limit, store: Store | undefined): number {
  let waiting = limit.queue.size;
  for (const inner of limit.queuedWithin ?? []) waiting += Math.min(inner.queue.size, readyAt(inner.own));
  const room = store?.upstream(limit.ref.upstream).room;
  return room?.line === limit ? Math.min(waiting, Math.max(0, room.left)) : waiting;
}

/** How many the limit would let go now, if nothing else kept them. */
function readyAt({ tokens }: Meter): number {
  return tokens ?? Number.POSITIVE_INFINITY;
}
