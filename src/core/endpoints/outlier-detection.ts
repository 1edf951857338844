import type { Millis, Outcome, Random } from '../exchange/attempt-outcome.ts';
import { isGatewayError, isOurs, isThrottled } from '../exchange/attempt-outcome.ts';

/** When an endpoint that fails is left out, and for how long. Named as in Istio's outlier detection. */
export interface OutlierSettings {
  /** Failures without a success between them; 0 never leaves one out. */
  readonly consecutiveGatewayErrors: number;
  /** The first time; the n-th time in a row, n times as long. */
  readonly baseEjectionTime: Millis;
  readonly maxEjectionTime: Millis;
  /** Of all endpoints, rounded up to whole ones. */
  readonly maxEjectionPercent: number;
}

/** What becomes of an endpoint, by its place in the list. */
export type EndpointChange =
  | { readonly kind: 'ejected'; readonly index: number; readonly time: Millis }
  /** `trial`: it answered again. `panic`: those in rotation fail as well, so that nothing is won by leaving it out. */
  | { readonly kind: 'returned'; readonly index: number; readonly cause: 'trial' | 'panic' };

interface Endpoint {
  readonly index: number;
  /** Attempts that hold one of its connections, or wait for one. */
  pending: number;
  /** Failures since its last success. */
  streak: number;
  /** Times it has been left out, forgotten one by one while it works. */
  ejections: number;
  ejectedAt: Millis;
  /** When it may be tried; undefined while it is in rotation. */
  trialAt: Millis | undefined;
  isOnTrial: boolean;
  returnedAt: Millis;
}

/** Proxies that lost an endpoint at the same moment do not all try it at the same moment. */
const JITTER = 0.2;
/** How long a trial waits for a request that may be repeated, before it takes one that may not. */
const CHOOSY: Millis = 2000;

/**
 * The endpoints of an upstream: which is sent to, and which are left out. The one with the fewest pending requests is
 * chosen, equals in turn. One that fails several times in a row is ejected, each time for longer, and comes back by a
 * single trial request (Envoy's outlier detection, but for the trial). Never all: when every one in rotation fails, the
 * ejected come back at once, and what follows is the upstream's failure. With one endpoint there is nothing to decide.
 */
export class Rotation {
  readonly #endpoints: readonly Endpoint[];
  readonly #connections: number;
  readonly #settings: OutlierSettings;
  readonly #random: Random;
  readonly #tell: (change: EndpointChange) => void;
  #ejected = 0;
  /** Who is looked at first: equals are chosen in turn. */
  #turn = 0;

  /** @param connections that each may have */
  constructor(
    count: number,
    connections: number,
    settings: OutlierSettings,
    random: Random,
    tell: (change: EndpointChange) => void,
  ) {
    this.#endpoints = Array.from({ length: count }, (_, index) => ({
      index,
      pending: 0,
      streak: 0,
      ejections: 0,
      ejectedAt: Number.NEGATIVE_INFINITY,
      trialAt: undefined,
      isOnTrial: false,
      returnedAt: Number.NEGATIVE_INFINITY,
    }));
    this.#connections = connections;
    this.#settings = settings;
    this.#random = random;
    this.#tell = tell;
  }

  /** What is pending at the fullest endpoint, as a share of its connections; above 1 while some wait for one. */
  get fullness(): number {
    return Math.max(...this.#endpoints.map(({ pending }) => pending)) / this.#connections;
  }

  isEjected(index: number): boolean {
    return this.#at(index).trialAt !== undefined;
  }

  /** Connections that are free, or may be made, at the endpoints in rotation. */
  free(): number {
    let free = 0;
    for (const { pending, trialAt } of this.#endpoints) {
      if (trialAt === undefined) free += Math.max(0, this.#connections - pending);
    }
    return free;
  }

  /**
   * Where an attempt goes; to be followed by `begin`.
   * @param failedAt endpoints at which its request has failed before
   * @param isRepeatable whether its request may be sent again whatever comes of this attempt
   */
  choose(failedAt: ReadonlySet<number> | undefined, isRepeatable: boolean, now: Millis): number {
    const count = this.#endpoints.length;
    if (count === 1) return 0;
    let best: Endpoint | undefined;
    let anywhere: Endpoint | undefined;
    for (let i = 0; i < count; i += 1) {
      const endpoint = this.#at((this.#turn + i) % count);
      const isNew = failedAt?.has(endpoint.index) !== true;
      if (endpoint.trialAt !== undefined) {
        if (isNew && isTrialDue(endpoint, isRepeatable, now)) return endpoint.index;
        continue;
      }
      if (anywhere === undefined || endpoint.pending < anywhere.pending) anywhere = endpoint;
      if (isNew && (best === undefined || endpoint.pending < best.pending)) best = endpoint;
    }
    const chosen = (best ?? anywhere)?.index ?? 0;
    this.#turn = (chosen + 1) % count;
    return chosen;
  }

  /** An attempt goes there. */
  begin(index: number): void {
    const endpoint = this.#at(index);
    endpoint.pending += 1;
    if (endpoint.trialAt !== undefined) endpoint.isOnTrial = true;
  }

  /** It holds no connection any more. */
  end(index: number): void {
    this.#at(index).pending -= 1;
  }

  /** An answer that speaks of no gateway failure. `sentAt` of the attempt. */
  succeeded(index: number, sentAt: Millis, now: Millis): void {
    const endpoint = this.#at(index);
    if (endpoint.trialAt === undefined) {
      endpoint.streak = 0;
    } else if (sentAt >= endpoint.ejectedAt) {
      this.#return(endpoint, 'trial', now);
    }
  }

  /** No connection, a broken one, no answer in time, or 502 to 504. Returns whether another endpoint works. */
  failed(index: number, sentAt: Millis, now: Millis): boolean {
    if (this.#endpoints.length === 1) return false;
    const endpoint = this.#at(index);
    const othersWork = this.#endpoints.some((other) => other !== endpoint && works(other));
    endpoint.streak += 1;
    if (endpoint.trialAt !== undefined) {
      if (sentAt >= endpoint.ejectedAt) this.#eject(endpoint, now);
    } else if (this.#isOutlier(endpoint)) {
      this.#leaveOut(endpoint, now);
    }
    return othersWork;
  }

  /** It tells nothing of the endpoint: another may be the trial. */
  abandoned(index: number, sentAt: Millis): void {
    const endpoint = this.#at(index);
    if (sentAt >= endpoint.ejectedAt) endpoint.isOnTrial = false;
  }

  #leaveOut(endpoint: Endpoint, now: Millis): void {
    const isLast = !this.#endpoints.some((other) => other.trialAt === undefined && !this.#isOutlier(other));
    if (isLast) {
      for (const other of this.#endpoints) if (other.trialAt !== undefined) this.#return(other, 'panic', now);
      return;
    }
    const most = Math.ceil((this.#endpoints.length * this.#settings.maxEjectionPercent) / 100);
    if (this.#ejected >= most) return;
    // Envoy forgets one ejection at each interval without another.
    const { baseEjectionTime } = this.#settings;
    const forgotten = Math.floor((now - endpoint.returnedAt) / Math.max(1, baseEjectionTime));
    endpoint.ejections = Math.max(0, endpoint.ejections - forgotten);
    this.#ejected += 1;
    this.#eject(endpoint, now);
  }

  #eject(endpoint: Endpoint, now: Millis): void {
    const { baseEjectionTime, maxEjectionTime } = this.#settings;
    endpoint.ejections += 1;
    const time = Math.min(maxEjectionTime, baseEjectionTime * endpoint.ejections) * (1 + JITTER * this.#random());
    endpoint.ejectedAt = now;
    endpoint.trialAt = now + time;
    endpoint.isOnTrial = false;
    this.#tell({ kind: 'ejected', index: endpoint.index, time });
  }

  #return(endpoint: Endpoint, cause: 'trial' | 'panic', now: Millis): void {
    this.#ejected -= 1;
    endpoint.trialAt = undefined;
    endpoint.isOnTrial = false;
    endpoint.returnedAt = now;
    if (cause === 'trial') endpoint.streak = 0;
    this.#tell({ kind: 'returned', index: endpoint.index, cause });
  }

  #isOutlier({ streak }: Endpoint): boolean {
    const { consecutiveGatewayErrors } = this.#settings;
    return consecutiveGatewayErrors > 0 && streak >= consecutiveGatewayErrors;
  }

  #at(index: number): Endpoint {
    const endpoint = this.#endpoints[index];
    if (endpoint === undefined) throw new RangeError(`there is no endpoint ${index}`);
    return endpoint;
  }
}

/** Nothing has failed there since something succeeded. */
function works({ trialAt, streak }: Endpoint): boolean {
  return trialAt === undefined && streak === 0;
}

function isTrialDue(
  { trialAt = Number.POSITIVE_INFINITY, isOnTrial }: Endpoint,
  isRepeatable: boolean,
  now: Millis,
): boolean {
  return !isOnTrial && now >= trialAt + (isRepeatable ? 0 : CHOOSY);
}

/** What an outcome says of the endpoint: a refusal for its rate or a 500 is an answer; a client that left, or a want of ours, says nothing. */
export function judgeEndpoint(outcome: Outcome): 'works' | 'fails' | 'nothing' {
  if (outcome.kind === 'response') {
    return isGatewayError(outcome.status) && !isThrottled(outcome.status, outcome.hints) ? 'fails' : 'works';
  }
  return isOurs(outcome) || outcome.stale === true ? 'nothing' : 'fails';
}
