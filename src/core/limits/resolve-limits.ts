import type { Limit } from './limit.ts';
import type { LimitRef } from './limit-ref.ts';
import type { Store } from '../admission/gate-store.ts';
import { NO_LIMITS } from '../admission/ticket.ts';

/** The limits that exist among those named. Allocates nothing for a request that counts for one limit alone. */
export function resolveLimits(store: Store, refs: readonly LimitRef[]): readonly Limit[] {
  const [only] = refs;
  if (only !== undefined && refs.length === 1) return store.find(only)?.alone ?? NO_LIMITS;
  const limits: Limit[] = [];
  for (const ref of refs) {
    const limit = store.find(ref);
    if (limit !== undefined) limits.push(limit);
  }
  return limits;
}
