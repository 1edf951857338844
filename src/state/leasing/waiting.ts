import type { Limit } from '../../policy/limit.ts';
import type { Store } from '../../policy/store.ts';

/** Those who could go if they had a token: who waits for a connection has no use for one yet. */
export function countWaiting(limit: Limit, store: Store | undefined): number {
  let waiting = limit.queue.size;
  for (const inner of limit.queuedWithin ?? []) waiting += inner.queue.size;
  const room = store?.upstream(limit.ref.upstream).room;
  return room?.line === limit ? Math.min(waiting, Math.max(0, room.left)) : waiting;
}
