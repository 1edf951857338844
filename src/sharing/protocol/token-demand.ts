import type { Limit } from '../../core/limits/limit.ts';
import type { MeterView } from '../../core/limits/meter.ts';
import type { StoreBinding } from './store-binding.ts';

/**
 * The number of queued requests that could go if they had a token of this limit. A request that waits for a connection, or
 * for a token of a nested limit, needs none yet.
 */
export function countTokensNeeded(
  limit: Limit,
  store: Pick<StoreBinding['store'], 'has' | 'upstream'> | undefined,
): number {
  let waiting = limit.queue.size;
  for (const inner of limit.nestedWithWaiters ?? []) {
    waiting += Math.min(inner.queue.size, availableTokens(inner.learnedMeter));
  }
  const { upstream } = limit.ref;
  // A reload may have removed the upstream before its last usage is reported.
  const room = store?.has(upstream) === true ? store.upstream(upstream).connectionSlots : undefined;
  return room?.queueLimit === limit ? Math.min(waiting, Math.max(0, room.available)) : waiting;
}

/** Infinity if the meter does not lease, or nothing limits. */
function availableTokens({ tokens }: Pick<MeterView, 'tokens'>): number {
  return tokens ?? Number.POSITIVE_INFINITY;
}
