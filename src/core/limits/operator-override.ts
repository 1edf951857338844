import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';

/** What an operator wants of the limits of an upstream, whatever has been learned of them. */
export interface Steering {
  /** Requests are spaced by this; undefined: by what is learned. */
  readonly pinned: PerSecond | undefined;
  /** Nothing passes before this: Infinity until somebody says otherwise, −Infinity where nothing is blocked. */
  readonly blockedUntil: Millis;
}

export const UNSTEERED: Steering = { pinned: undefined, blockedUntil: Number.NEGATIVE_INFINITY };

export type Order =
  | { readonly do: 'pin'; readonly rate: PerSecond }
  | { readonly do: 'unpin' }
  /** `until`: Infinity where no end is known. */
  | { readonly do: 'block'; readonly until: Millis }
  | { readonly do: 'unblock' };

export function obey(steering: Steering, order: Order): Steering {
  switch (order.do) {
    case 'pin':
      return { ...steering, pinned: order.rate };
    case 'unpin':
      return { ...steering, pinned: undefined };
    case 'block':
      return { ...steering, blockedUntil: order.until };
    case 'unblock':
      return { ...steering, blockedUntil: Number.NEGATIVE_INFINITY };
  }
}

export function isSteered({ pinned, blockedUntil }: Steering, now: Millis): boolean {
  return pinned !== undefined || blockedUntil > now;
}
