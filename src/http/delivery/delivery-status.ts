import type { Delivery, DeliveryAttempt } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';

/** Clients read the state of their deliveries below this path. */
export const DELIVERIES_PATH = '/.well-known/tidegate/deliveries/';

export function statusPathOf(id: string): string {
  return DELIVERIES_PATH + id;
}

/** The state of a delivery as its sender sees it. */
export interface DeliveryStatus {
  readonly id: string;
  readonly state: Delivery['state']['kind'];
  readonly acceptedAt: string;
  readonly attempts: number;
  /** While it waits. */
  readonly nextAttemptAt?: string;
  /** When it was delivered, given up or canceled. */
  readonly endedAt?: string;
  readonly lastAttempt?: AttemptStatus;
}

interface AttemptStatus {
  readonly at: string;
  readonly status?: number;
  /** Why it did not acknowledge the delivery. */
  readonly reason?: string;
}

export function describeDelivery({ id, state, acceptedAt, attempts, lastAttempt }: Delivery): DeliveryStatus {
  return {
    id,
    state: state.kind,
    acceptedAt: toDate(acceptedAt),
    attempts,
    ...(state.kind === 'waiting' ? { nextAttemptAt: toDate(state.until) } : {}),
    ...('at' in state ? { endedAt: toDate(state.at) } : {}),
    ...(lastAttempt === undefined ? {} : { lastAttempt: describeAttempt(lastAttempt) }),
  };
}

function describeAttempt({ at, status, reason }: DeliveryAttempt): AttemptStatus {
  return {
    at: toDate(at),
    ...(status === undefined ? {} : { status }),
    ...(reason === undefined ? {} : { reason }),
  };
}

function toDate(time: Millis): string {
  return new Date(time).toISOString();
}
