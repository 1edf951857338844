import type { Millis, PerSecond } from '../scalars.ts';

/** What an operator has set for the limits of an upstream. It takes precedence over what has been learned. */
export interface OperatorOverride {
  /** Requests are spaced by this rate; undefined: by the learned one. */
  readonly pinnedRate: PerSecond | undefined;
  /** Nothing passes before this: Infinity until an operator unblocks, −Infinity if nothing is blocked. */
  readonly blockedUntil: Millis;
}

export const NO_OVERRIDE: OperatorOverride = { pinnedRate: undefined, blockedUntil: Number.NEGATIVE_INFINITY };

export type OverrideChange =
  | { readonly action: 'pin'; readonly rate: PerSecond }
  | { readonly action: 'unpin' }
  /** `until` is Infinity if the block has no known end. */
  | { readonly action: 'block'; readonly until: Millis }
  | { readonly action: 'unblock' };

export function applyOverride(override: OperatorOverride, change: OverrideChange): OperatorOverride {
  switch (change.action) {
    case 'pin':
      return { ...override, pinnedRate: change.rate };
    case 'unpin':
      return { ...override, pinnedRate: undefined };
    case 'block':
      return { ...override, blockedUntil: change.until };
    case 'unblock':
      return { ...override, blockedUntil: Number.NEGATIVE_INFINITY };
  }
}

export function isOverridden({ pinnedRate, blockedUntil }: OperatorOverride, now: Millis): boolean {
  return pinnedRate !== undefined || blockedUntil > now;
}
