import type { Limit } from './limit.ts';
import type { LimitRef } from './limit-ref.ts';
import type { GateStore } from '../admission/gate-store.ts';
import { NO_LIMITS } from '../admission/ticket.ts';

/** Returns those of the referenced limits that exist. Allocates nothing for a request with a single limit. */
export function resolveLimits(store: GateStore, refs: readonly LimitRef[]): readonly Limit[] {
  const [only] = refs;
  if (only !== undefined && refs.length === 1) return store.findLimit(only)?.asList ?? NO_LIMITS;
  const limits: Limit[] = [];
  for (const ref of refs) {
    const limit = store.findLimit(ref);
    if (limit !== undefined) limits.push(limit);
  }
  return limits;
}
