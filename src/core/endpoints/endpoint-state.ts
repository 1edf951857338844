import type { Millis } from '../scalars.ts';

/** What is known of one endpoint of an upstream. */
export interface EndpointState {
  readonly index: number;
  /** Attempts that hold one of its connections, or wait for one. */
  pending: number;
  /** Requests that its connections carry at a time. */
  capacity: number;
  /** Failures since its last success. */
  streak: number;
  /** Those of them that are evidence against the endpoint: see `FailingParts`. */
  evidence: number;
  /** Ejections, forgotten one by one while the endpoint works. */
  ejections: number;
  ejectedAt: Millis;
  /** When its trial may start; undefined while it is in rotation. */
  trialAt: Millis | undefined;
  isOnTrial: boolean;
  /** Its health checks fail. */
  isUnhealthy: boolean;
  returnedAt: Millis;
}

export function newEndpointState(index: number, capacity: number): EndpointState {
  return {
    index,
    pending: 0,
    capacity,
    streak: 0,
    evidence: 0,
    ejections: 0,
    ejectedAt: Number.NEGATIVE_INFINITY,
    trialAt: undefined,
    isOnTrial: false,
    isUnhealthy: false,
    returnedAt: Number.NEGATIVE_INFINITY,
  };
}

/** Whether a request is sent to the first endpoint and not to the second, because that is full or has more requests. */
export function isLessLoaded(a: EndpointState, b: EndpointState): boolean {
  const excess = a.pending - a.capacity;
  const otherExcess = b.pending - b.capacity;
  if (excess >= 0 || otherExcess >= 0) return excess < otherExcess;
  return a.pending < b.pending;
}

/** True if it is neither ejected nor unhealthy by its checks. */
export function isInRotation({ trialAt, isUnhealthy }: EndpointState): boolean {
  return trialAt === undefined && !isUnhealthy;
}
