import type { GateStore } from '../../core/admission/gate-store.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ClientHold } from '../../core/limits/client-holds.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';

/** What a client of shared limits needs from this process's store and gate, once both exist. */
export interface StoreBinding {
  readonly store: GateStore & {
    applyHold(hold: ClientHold, now: Millis): void;
    has(upstream: string): boolean;
    /** Whether the configuration has this limit: one that a reload has removed may still be in use. */
    isConfigured(ref: LimitRef): boolean;
  };
  /** Tokens have arrived, or the limit has changed: its queue is to be served. */
  readonly onTokensSupplied: (limit: Limit, now: Millis) => void;
}
