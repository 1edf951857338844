import type { Millis, Random } from '../scalars.ts';
import { type EndpointState, isLessLoaded, isWorking, newEndpointState } from './endpoint-state.ts';
import { type AttributedRequest, FailingParts } from './failing-parts.ts';

/** When a failing endpoint is ejected, and for how long. Named as in Istio's outlier detection. */
export interface OutlierSettings {
  /** Failures in a row; 0 disables ejection. */
  readonly consecutiveGatewayErrors: number;
  /** The first time; the n-th time in a row, n times as long. */
  readonly baseEjectionTime: Millis;
  readonly maxEjectionTime: Millis;
  /** Of all endpoints, rounded up to whole ones. */
  readonly maxEjectionPercent: number;
}

/** A change of one endpoint. `index`: its position in the list. */
export type EndpointChange =
  | { readonly kind: 'ejected'; readonly index: number; readonly time: Millis }
  /** `trial`: it answered again. `panic`: the endpoints in rotation fail too, so ejecting this one gains nothing. */
  | { readonly kind: 'returned'; readonly index: number; readonly cause: 'trial' | 'panic' };

/** Spreads the trials of proxies that ejected an endpoint at the same time. */
const JITTER = 0.2;
/** How long a trial waits for a request that is repeatable and does not fail at several endpoints, before it takes any. */
const TRIAL_WAIT: Millis = 2000;

/**
 * Chooses the endpoint for each attempt: of those with a free connection the one with the fewest pending requests, equal ones
 * in turn. An endpoint that fails repeatedly is ejected for a while, longer each time, then re-admitted with a single trial
 * request (Envoy's outlier detection, plus the trial). Never all endpoints: when every endpoint in rotation fails, the ejected
 * ones return at once, and the failure is the upstream's. With one endpoint there is nothing to decide.
 */
export class EndpointBalancer {
  readonly #endpoints: readonly EndpointState[];
  readonly #settings: OutlierSettings;
  readonly #random: Random;
  readonly #onChange: (change: EndpointChange) => void;
  readonly #failingParts = new FailingParts();
  #ejectedCount = 0;
  /** Where the next search starts, so that equal endpoints take turns. */
  #nextIndex = 0;

  /** @param capacity the requests that each endpoint carries at a time: see `setCapacity` */
  constructor(
    count: number,
    capacity: number,
    settings: OutlierSettings,
    random: Random,
    onChange: (change: EndpointChange) => void,
  ) {
    this.#endpoints = Array.from({ length: count }, (_, index) => newEndpointState(index, capacity));
    this.#settings = settings;
    this.#random = random;
    this.#onChange = onChange;
  }

  /** Pending attempts at the fullest endpoint, as a share of its capacity; above 1 while some wait for a connection. */
  get peakUtilization(): number {
    return Math.max(...this.#endpoints.map(({ pending, capacity }) => pending / Math.max(1, capacity)));
  }

  isEjected(index: number): boolean {
    return this.#at(index).trialAt !== undefined;
  }

  /** The endpoint's connections carry another number of requests from now on. */
  setCapacity(index: number, capacity: number): void {
    this.#at(index).capacity = capacity;
  }

  /** Requests that the endpoints in rotation carry at a time. */
  totalConnections(): number {
    let total = 0;
    for (const { capacity, trialAt } of this.#endpoints) if (trialAt === undefined) total += capacity;
    return total;
  }

  /** As `totalConnections`, without those that are in use. Over HTTP/2, each stream counts. */
  freeConnections(): number {
    let free = 0;
    for (const { pending, capacity, trialAt } of this.#endpoints) {
      if (trialAt === undefined) free += Math.max(0, capacity - pending);
    }
    return free;
  }

  /**
   * Chooses the endpoint of an attempt; to be followed by `onAttemptStart`.
   * @param failedAt endpoints at which the request failed before
   * @param isRepeatable whether the request may be sent again to any endpoint, whatever the outcome of this attempt
   */
  choose(
    failedAt: ReadonlySet<number> | undefined,
    isRepeatable: boolean,
    now: Millis,
    request?: AttributedRequest,
  ): number {
    const count = this.#endpoints.length;
    if (count === 1) return 0;
    let best: EndpointState | undefined;
    let bestOfAll: EndpointState | undefined;
    for (let i = 0; i < count; i += 1) {
      const endpoint = this.#at((this.#nextIndex + i) % count);
      const isNew = failedAt?.has(endpoint.index) !== true;
      if (endpoint.trialAt !== undefined) {
        if (isNew && this.#isTrialDue(endpoint, isRepeatable, now, request)) return endpoint.index;
        continue;
      }
      if (bestOfAll === undefined || isLessLoaded(endpoint, bestOfAll)) bestOfAll = endpoint;
      if (isNew && (best === undefined || isLessLoaded(endpoint, best))) best = endpoint;
    }
    const chosen = (best ?? bestOfAll)?.index ?? 0;
    this.#nextIndex = (chosen + 1) % count;
    return chosen;
  }

  onAttemptStart(index: number): void {
    const endpoint = this.#at(index);
    endpoint.pending += 1;
    if (endpoint.trialAt !== undefined) endpoint.isOnTrial = true;
  }

  /** The attempt no longer holds a connection. */
  onAttemptEnd(index: number): void {
    this.#at(index).pending -= 1;
  }

  /** A response that is not a gateway failure. @param sentAt of the attempt */
  onSuccess(index: number, sentAt: Millis, now: Millis, request?: AttributedRequest): void {
    const endpoint = this.#at(index);
    if (request !== undefined) this.#failingParts.onSuccess(request);
    if (endpoint.trialAt === undefined) {
      endpoint.streak = 0;
      endpoint.evidence = 0;
    } else if (sentAt >= endpoint.ejectedAt) {
      this.#return(endpoint, 'trial', now);
    }
  }

  /**
   * No connection, a broken connection, a timeout, or 502 to 504.
   * @param request undefined if the failure concerns the endpoint, whatever the request: it has no connection
   * @returns whether another endpoint works
   */
  onFailure(index: number, sentAt: Millis, now: Millis, request?: AttributedRequest): boolean {
    if (this.#endpoints.length === 1) return false;
    const endpoint = this.#at(index);
    const othersWork = this.#endpoints.some((other) => other !== endpoint && isWorking(other));
    endpoint.streak += 1;
    if (request !== undefined) this.#failingParts.onFailure(request, index);
    const isEvidence = request === undefined || !this.#failingParts.hasPartOf(request);
    if (isEvidence) endpoint.evidence += 1;
    if (endpoint.trialAt !== undefined) {
      // Before the trial is due, a request is sent there only because no other endpoint may get it.
      if (!isEvidence || sentAt < endpoint.trialAt) this.onInconclusive(index, sentAt);
      else this.#eject(endpoint, now);
    } else if (this.#isOutlier(endpoint)) {
      this.#ejectOrPanic(endpoint, now);
    }
    return othersWork;
  }

  /** The outcome says nothing about the endpoint, so another request may be the trial. */
  onInconclusive(index: number, sentAt: Millis): void {
    const endpoint = this.#at(index);
    if (sentAt >= endpoint.ejectedAt) endpoint.isOnTrial = false;
  }

  #ejectOrPanic(endpoint: EndpointState, now: Millis): void {
    const isLast = !this.#endpoints.some((other) => other.trialAt === undefined && !this.#isOutlier(other));
    if (isLast) {
      for (const other of this.#endpoints) if (other.trialAt !== undefined) this.#return(other, 'panic', now);
      return;
    }
    const maxEjected = Math.ceil((this.#endpoints.length * this.#settings.maxEjectionPercent) / 100);
    if (this.#ejectedCount >= maxEjected || endpoint.evidence < this.#settings.consecutiveGatewayErrors) return;
    // Envoy forgets one ejection at each interval without another.
    const { baseEjectionTime } = this.#settings;
    const forgotten = Math.floor((now - endpoint.returnedAt) / Math.max(1, baseEjectionTime));
    endpoint.ejections = Math.max(0, endpoint.ejections - forgotten);
    this.#ejectedCount += 1;
    this.#eject(endpoint, now);
  }

  #eject(endpoint: EndpointState, now: Millis): void {
    const { baseEjectionTime, maxEjectionTime } = this.#settings;
    endpoint.ejections += 1;
    const time = Math.min(maxEjectionTime, baseEjectionTime * endpoint.ejections) * (1 + JITTER * this.#random());
    endpoint.ejectedAt = now;
    endpoint.trialAt = now + time;
    endpoint.isOnTrial = false;
    this.#onChange({ kind: 'ejected', index: endpoint.index, time });
  }

  #return(endpoint: EndpointState, cause: 'trial' | 'panic', now: Millis): void {
    this.#ejectedCount -= 1;
    endpoint.trialAt = undefined;
    endpoint.isOnTrial = false;
    endpoint.returnedAt = now;
    if (cause === 'trial') endpoint.streak = endpoint.evidence = 0;
    this.#onChange({ kind: 'returned', index: endpoint.index, cause });
  }

  #isTrialDue(
    { trialAt = Number.POSITIVE_INFINITY, isOnTrial }: EndpointState,
    isRepeatable: boolean,
    now: Millis,
    request: AttributedRequest | undefined,
  ): boolean {
    if (isOnTrial || now < trialAt) return false;
    if (now >= trialAt + TRIAL_WAIT) return true;
    return isRepeatable && (request === undefined || !this.#failingParts.hasPartOf(request));
  }

  #isOutlier({ streak }: EndpointState): boolean {
    const { consecutiveGatewayErrors } = this.#settings;
    return consecutiveGatewayErrors > 0 && streak >= consecutiveGatewayErrors;
  }

  #at(index: number): EndpointState {
    const endpoint = this.#endpoints[index];
    if (endpoint === undefined) throw new RangeError(`there is no endpoint ${index}`);
    return endpoint;
  }
}
