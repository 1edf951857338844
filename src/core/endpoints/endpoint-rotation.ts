import type { EjectionCause, ReturnCause } from '../events/event-labels.ts';
import type { Millis, Random } from '../scalars.ts';
import { type EndpointState, isInRotation, newEndpointState } from './endpoint-state.ts';

/** When a failing endpoint is ejected, and for how long. Named as in Istio's outlier detection. */
export interface OutlierSettings {
  /** Failures in a row; 0 disables ejection for failures. */
  readonly consecutiveGatewayErrors: number;
  /** The first time; the n-th time in a row, n times as long. */
  readonly baseEjectionTime: Millis;
  readonly maxEjectionTime: Millis;
  /** Of all endpoints, rounded up to whole ones. */
  readonly maxEjectionPercent: number;
}

/** A change of one endpoint. `index`: its position in the list. */
export type EndpointChange =
  /** `time`: undefined if it lasts until the health checks succeed. */
  | {
      readonly kind: 'ejected';
      readonly index: number;
      readonly cause: EjectionCause;
      readonly time: Millis | undefined;
    }
  | { readonly kind: 'returned'; readonly index: number; readonly cause: ReturnCause };

/** Spreads the trials of proxies that ejected an endpoint at the same time. */
const JITTER = 0.2;

/**
 * Which endpoints get requests: those that are neither ejected nor unhealthy by their checks. If there is none, those that are
 * only unhealthy get requests nevertheless, because a check may be wrong. Ejections never leave none (`mayEject`).
 */
export class EndpointRotation {
  readonly all: readonly EndpointState[];
  readonly #settings: OutlierSettings;
  readonly #random: Random;
  readonly #onChange: (change: EndpointChange) => void;
  #ejectedCount = 0;
  /** No endpoint is in rotation. */
  #failsOpen = false;

  constructor(
    count: number,
    capacity: number,
    settings: OutlierSettings,
    random: Random,
    onChange: (change: EndpointChange) => void,
  ) {
    this.all = Array.from({ length: count }, (_, index) => newEndpointState(index, capacity));
    this.#settings = settings;
    this.#random = random;
    this.#onChange = onChange;
  }

  at(index: number): EndpointState {
    const endpoint = this.all[index];
    if (endpoint === undefined) throw new RangeError(`there is no endpoint ${index}`);
    return endpoint;
  }

  /** Whether requests are sent to the endpoint, beside trials. */
  isUsed(endpoint: EndpointState): boolean {
    return endpoint.trialAt === undefined && this.isAvailable(endpoint);
  }

  /** Whether its checks do not keep requests from it. */
  isAvailable({ isUnhealthy }: EndpointState): boolean {
    return !isUnhealthy || this.#failsOpen;
  }

  /** Whether it is used, and nothing has failed there since the last success. */
  isWorking(endpoint: EndpointState): boolean {
    return this.isUsed(endpoint) && endpoint.streak === 0;
  }

  /** Requests that the endpoints in use carry at a time. */
  totalConnections(): number {
    let total = 0;
    for (const endpoint of this.all) if (this.isUsed(endpoint)) total += endpoint.capacity;
    return total;
  }

  /** As `totalConnections`, without those that are in use. Over HTTP/2, each stream counts. */
  freeConnections(): number {
    let free = 0;
    for (const endpoint of this.all) {
      if (this.isUsed(endpoint)) free += Math.max(0, endpoint.capacity - endpoint.pending);
    }
    return free;
  }

  /** Whether one more may be ejected. */
  get mayEject(): boolean {
    return this.#ejectedCount < Math.ceil((this.all.length * this.#settings.maxEjectionPercent) / 100);
  }

  /** Ejects an endpoint that fails, each time for longer. */
  ejectForFailures(endpoint: EndpointState, now: Millis): void {
    const { baseEjectionTime } = this.#settings;
    if (endpoint.trialAt === undefined) {
      // Envoy forgets one ejection at each interval without another.
      const forgotten = Math.floor((now - endpoint.returnedAt) / Math.max(1, baseEjectionTime));
      endpoint.ejections = Math.max(0, endpoint.ejections - forgotten);
    }
    endpoint.ejections += 1;
    this.#eject(endpoint, this.#bound(baseEjectionTime * endpoint.ejections), 'failures', now);
  }

  /** Ejects an endpoint that asks for a wait. */
  ejectForWait(endpoint: EndpointState, wait: Millis, now: Millis): void {
    this.#eject(endpoint, this.#bound(wait), 'throttled', now);
  }

  /** Lets an ejection last until the end of a wait at least. */
  extend(endpoint: EndpointState, wait: Millis, now: Millis): void {
    if (endpoint.trialAt !== undefined) endpoint.trialAt = Math.max(endpoint.trialAt, now + this.#bound(wait));
  }

  /** Ends an ejection. */
  return(endpoint: EndpointState, cause: 'trial' | 'panic', now: Millis): void {
    this.#ejectedCount -= 1;
    endpoint.trialAt = undefined;
    endpoint.isOnTrial = false;
    endpoint.returnedAt = now;
    if (cause === 'trial') endpoint.streak = endpoint.evidence = 0;
    this.#update();
    this.#onChange({ kind: 'returned', index: endpoint.index, cause });
  }

  /** Ends all ejections, because they gain nothing. */
  returnAll(now: Millis): void {
    for (const endpoint of this.all) if (endpoint.trialAt !== undefined) this.return(endpoint, 'panic', now);
  }

  /** The health checks of the endpoint began to fail, or succeed again. */
  setHealth(endpoint: EndpointState, isHealthy: boolean): void {
    if (endpoint.isUnhealthy !== isHealthy) return;
    const { index } = endpoint;
    endpoint.isUnhealthy = !isHealthy;
    this.#update();
    if (isHealthy) this.#onChange({ kind: 'returned', index, cause: 'checks' });
    else this.#onChange({ kind: 'ejected', index, cause: 'checks', time: undefined });
  }

  #eject(endpoint: EndpointState, time: Millis, cause: EjectionCause, now: Millis): void {
    if (endpoint.trialAt === undefined) this.#ejectedCount += 1;
    endpoint.ejectedAt = now;
    endpoint.trialAt = now + time;
    endpoint.isOnTrial = false;
    this.#update();
    this.#onChange({ kind: 'ejected', index: endpoint.index, cause, time });
  }

  #bound(time: Millis): Millis {
    return Math.min(this.#settings.maxEjectionTime, time) * (1 + JITTER * this.#random());
  }

  #update(): void {
    this.#failsOpen = !this.all.some(isInRotation);
  }
}
