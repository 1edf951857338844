import type { Millis, Random } from '../scalars.ts';
import { EndpointRotation, type EndpointChange, type OutlierSettings } from './endpoint-rotation.ts';
import { type EndpointState, isInRotation, isLessLoaded } from './endpoint-state.ts';
import { type AttributedRequest, FailingParts } from './failing-parts.ts';

export type { EndpointChange, OutlierSettings } from './endpoint-rotation.ts';

/** How long a trial waits for a request that is repeatable and does not fail at several endpoints, before it takes any. */
const TRIAL_WAIT: Millis = 2000;

/**
 * Chooses the endpoint for each attempt: of those with a free connection the one with the fewest pending requests, equal ones
 * in turn. An endpoint that fails repeatedly is ejected for a while, longer each time, then re-admitted with a single trial
 * request (Envoy's outlier detection, plus the trial). Never all endpoints: when every endpoint in rotation fails, the ejected
 * ones return at once, and the failure is the upstream's. An endpoint that asks for a wait is ejected until then. With one
 * endpoint there is nothing to decide.
 */
export class EndpointBalancer {
  readonly #rotation: EndpointRotation;
  readonly #consecutiveGatewayErrors: number;
  readonly #failingParts = new FailingParts();
  /** The same for requests whose endpoints asked for a wait. */
  readonly #waitingParts = new FailingParts();
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
    this.#rotation = new EndpointRotation(count, capacity, settings, random, onChange);
    this.#consecutiveGatewayErrors = settings.consecutiveGatewayErrors;
  }

  /** Pending attempts at the fullest endpoint, as a share of its capacity; above 1 while some wait for a connection. */
  get peakUtilization(): number {
    return Math.max(...this.#rotation.all.map(({ pending, capacity }) => pending / Math.max(1, capacity)));
  }

  /** Ejected, or unhealthy by its checks. */
  isEjected(index: number): boolean {
    return !isInRotation(this.#rotation.at(index));
  }

  /** The endpoint's connections carry another number of requests from now on. */
  setCapacity(index: number, capacity: number): void {
    this.#rotation.at(index).capacity = capacity;
  }

  /** See `EndpointRotation.setHealth`. */
  setHealth(index: number, isHealthy: boolean): void {
    this.#rotation.setHealth(this.#rotation.at(index), isHealthy);
  }

  /** Requests that the endpoints in rotation carry at a time. */
  totalConnections(): number {
    return this.#rotation.totalConnections();
  }

  /** As `totalConnections`, without those that are in use. Over HTTP/2, each stream counts. */
  freeConnections(): number {
    return this.#rotation.freeConnections();
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
    const count = this.#rotation.all.length;
    if (count === 1) return 0;
    let best: EndpointState | undefined;
    let bestOfAll: EndpointState | undefined;
    for (let i = 0; i < count; i += 1) {
      const endpoint = this.#rotation.at((this.#nextIndex + i) % count);
      const isNew = failedAt?.has(endpoint.index) !== true;
      if (!this.#rotation.isUsed(endpoint)) {
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
    const endpoint = this.#rotation.at(index);
    endpoint.pending += 1;
    if (endpoint.trialAt !== undefined) endpoint.isOnTrial = true;
  }

  /** The attempt no longer holds a connection. */
  onAttemptEnd(index: number): void {
    this.#rotation.at(index).pending -= 1;
  }

  /** A response that is neither a gateway failure nor asks for a wait. @param sentAt of the attempt */
  onSuccess(index: number, sentAt: Millis, now: Millis, request?: AttributedRequest): void {
    const endpoint = this.#rotation.at(index);
    if (request !== undefined) {
      this.#failingParts.onSuccess(request);
      this.#waitingParts.onSuccess(request);
    }
    if (endpoint.trialAt === undefined) {
      endpoint.streak = 0;
      endpoint.evidence = 0;
    } else if (sentAt >= endpoint.ejectedAt) {
      this.#rotation.return(endpoint, 'trial', now);
    }
  }

  /**
   * No connection, a broken connection, a timeout, or 502 to 504.
   * @param request undefined if the failure concerns the endpoint, whatever the request: it has no connection
   * @returns whether another endpoint works
   */
  onFailure(index: number, sentAt: Millis, now: Millis, request?: AttributedRequest): boolean {
    const { all } = this.#rotation;
    if (all.length === 1) return false;
    const endpoint = this.#rotation.at(index);
    const othersWork = all.some((other) => other !== endpoint && this.#rotation.isWorking(other));
    endpoint.streak += 1;
    if (request !== undefined) this.#failingParts.onFailure(request, index);
    const isEvidence = request === undefined || !this.#failingParts.hasPartOf(request);
    if (isEvidence) endpoint.evidence += 1;
    if (endpoint.trialAt !== undefined) {
      // Before the trial is due, a request is sent there only because no other endpoint may get it.
      if (!isEvidence || sentAt < endpoint.trialAt) this.onInconclusive(index, sentAt);
      else this.#rotation.ejectForFailures(endpoint, now);
    } else if (this.#isOutlier(endpoint)) {
      this.#ejectOrPanic(endpoint, now);
    }
    return othersWork;
  }

  /**
   * The endpoint rejects a request and asks for a wait: ejects it until then, if another endpoint takes over.
   * @param wait above 0; at most `maxEjectionTime` of it counts
   * @returns whether another takes over. It does not if none is used, or each fails as often as an ejected one, if as many are ejected
   *   as may be, or if similar requests are rejected at several endpoints: then the limit is common to them
   */
  onWaitRequested(index: number, wait: Millis, sentAt: Millis, now: Millis, request: AttributedRequest): boolean {
    const { all, mayEject } = this.#rotation;
    const endpoint = this.#rotation.at(index);
    if (!all.some((other) => other !== endpoint && this.#takesOver(other))) return false;
    this.#waitingParts.onFailure(request, index);
    if (this.#waitingParts.hasPartOf(request)) {
      this.onInconclusive(index, sentAt);
      return false;
    }
    if (endpoint.trialAt === undefined) {
      if (!mayEject) return false;
      this.#rotation.ejectForWait(endpoint, wait, now);
    } else if (sentAt >= endpoint.trialAt) this.#rotation.ejectForWait(endpoint, wait, now);
    else this.#rotation.extend(endpoint, wait, now);
    return true;
  }

  /** The outcome says nothing about the endpoint, so another request may be the trial. */
  onInconclusive(index: number, sentAt: Millis): void {
    const endpoint = this.#rotation.at(index);
    if (sentAt >= endpoint.ejectedAt) endpoint.isOnTrial = false;
  }

  #ejectOrPanic(endpoint: EndpointState, now: Millis): void {
    if (!this.#rotation.all.some((other) => this.#takesOver(other))) return this.#rotation.returnAll(now);
    if (!this.#rotation.mayEject || endpoint.evidence < this.#consecutiveGatewayErrors) return;
    this.#rotation.ejectForFailures(endpoint, now);
  }

  #isTrialDue(
    endpoint: EndpointState,
    isRepeatable: boolean,
    now: Millis,
    request: AttributedRequest | undefined,
  ): boolean {
    const { trialAt = Number.POSITIVE_INFINITY, isOnTrial } = endpoint;
    if (isOnTrial || !this.#rotation.isAvailable(endpoint) || now < trialAt) return false;
    if (now >= trialAt + TRIAL_WAIT) return true;
    return isRepeatable && (request === undefined || !this.#failingParts.hasPartOf(request));
  }

  /** Whether the endpoint can serve the requests of one that is ejected. */
  #takesOver(endpoint: EndpointState): boolean {
    return this.#rotation.isUsed(endpoint) && !this.#isOutlier(endpoint);
  }

  #isOutlier({ streak }: EndpointState): boolean {
    return this.#consecutiveGatewayErrors > 0 && streak >= this.#consecutiveGatewayErrors;
  }
}
