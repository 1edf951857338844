import type { AttemptOutcome, ErrorOutcome } from '../../core/exchange/attempt-outcome.ts';
import { formatKeyPlace, parseKeyPlace } from '../../core/idempotency/key-place.ts';
import type { KeyClaim } from '../../core/idempotency/key-store.ts';
import { UNKNOWN_ENDPOINT } from '../../core/idempotency/keyed-write.ts';
import type { Millis } from '../../core/scalars.ts';
import { upstreamKeyOf } from '../idempotency/upstream-key.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import type { AttemptOrder, CallOwner } from './attempt-order.ts';
import type { Endpoints } from './endpoints.ts';
import type { Endpoint } from './open-endpoint.ts';
import { ACCOUNT_REMOVED, ENDPOINT_REMOVED, type SendFailure } from './send-failure.ts';
import type { UpstreamAttempt } from './upstream-attempt.ts';

/** Where a write may have been sent before; undefined if nothing is recorded. */
type RecordedPlace = Pick<KeyClaim, 'endpoint'>;

/**
 * Chooses the endpoint of each attempt of one exchange, and reports outcomes to it. An endpoint that failed the exchange is
 * avoided while there is another.
 */
export class EndpointSelector {
  /** Where the last attempt went; undefined before the first. */
  endpoint: Endpoint | undefined = undefined;
  /** The upstream closed the last connection: the next attempt gets a new one, or over HTTP/2 one of its own. */
  needsFreshConnection = false;
  /** The key that the upstream got in place of the client's in the last attempt; undefined if it got that one, or none. */
  upstreamKey: string | undefined = undefined;
  readonly #endpoints: Endpoints;
  /** Whether a response says that its endpoint works. */
  readonly #judgesResponses: boolean;
  /** Whether a request without an account is not sent. */
  readonly #needsAccount: boolean;
  /** Where the write may have been sent before; undefined if nothing is recorded. */
  #recordedPlace: string | undefined;
  readonly #routed: RoutedRequest;
  /** Its driver has the ticket of the request, once there is an attempt. */
  readonly #owner: Pick<CallOwner, 'driver'>;
  #sentAt: Millis = 0;
  #isOutcomePending = false;
  /** Indexes of endpoints that failed; made when one has. */
  #failedEndpoints: Set<number> | undefined;

  constructor(routed: RoutedRequest, owner: Pick<CallOwner, 'driver'>) {
    const { route, isPreflight } = routed;
    const { endpoints, accounts } = route.target;
    this.#routed = routed;
    this.#endpoints = endpoints;
    this.#owner = owner;
    this.#judgesResponses = !isPreflight;
    this.#needsAccount = accounts !== undefined && !isPreflight;
  }

  /** Where the last attempt went, as it is recorded with an idempotency key. */
  get place(): string {
    const label = this.endpoint?.label ?? UNKNOWN_ENDPOINT;
    return formatKeyPlace({ label, account: this.#owner.driver.ticket.account?.name, upstreamKey: this.upstreamKey });
  }

  /** Why there was no endpoint: what the request is pinned to has been removed from the configuration, or was not known in time. */
  get missing(): SendFailure {
    return { reason: 'connect', sent: false, cause: this.#lacksAccount ? ACCOUNT_REMOVED : ENDPOINT_REMOVED };
  }

  /**
   * The account that the request has to be sent with is not configured, or another one was chosen before it was recorded with the key.
   * Then nothing is sent: a retry gets the recorded account, if it is configured.
   */
  get #lacksAccount(): boolean {
    const account = this.#needsAccount ? this.#owner.driver.ticket.account?.name : undefined;
    if (this.#needsAccount && account === undefined) return true;
    const place = this.#recordedPlace;
    return place !== undefined && place !== UNKNOWN_ENDPOINT && parseKeyPlace(place).account !== account;
  }

  /**
   * The endpoint of the next attempt; undefined if the one that it is pinned to, or its account, has been removed, or if its account is
   * not the recorded one, or if the write was sent with a derived key before and has its own in the body, which is never changed.
   * @param order its claim knows where the write may have been sent before
   * @param isRepeatable the request and its body can be sent again to any endpoint, whatever the outcome
   */
  choose(
    { key, pinnedTo, claim }: Pick<AttemptOrder, 'key' | 'pinnedTo'> & { readonly claim: RecordedPlace | undefined },
    isRepeatable: boolean,
    now: Millis,
  ): Endpoint | undefined {
    this.#recordedPlace = claim?.endpoint;
    this.upstreamKey = upstreamKeyOf(this.#routed, this.#recordedPlace, key);
    if (this.#lacksAccount || (key?.from === 'body' && this.upstreamKey !== undefined)) return undefined;
    const endpoint =
      pinnedTo === undefined
        ? this.#endpoints.choose(this.#failedEndpoints, isRepeatable, now, this.#owner.driver.ticket)
        : this.#endpoints.findByLabel(pinnedTo);
    if (endpoint === undefined) return undefined;
    this.endpoint = endpoint;
    this.#sentAt = now;
    this.#isOutcomePending = true;
    return endpoint;
  }

  /**
   * Judges the endpoint by the outcome. Returns the outcome with what it says about the connection and other endpoints.
   * @param code of the error, if it has one
   */
  recordOutcome(outcome: AttemptOutcome, attempt: UpstreamAttempt | undefined, code?: string): AttemptOutcome {
    const { endpoint } = this;
    // Nothing was sent: that says nothing about the endpoints that exist.
    if (!this.#isOutcomePending && outcome.kind === 'error') return { ...outcome, otherEndpointsWork: true };
    if (endpoint === undefined) return outcome;
    if (!this.#judgesResponses && outcome.kind === 'response') {
      this.abandon();
      return outcome;
    }
    this.#isOutcomePending = false;
    const isStaleConnection = outcome.kind === 'error' && attempt?.wasOnStaleConnection === true;
    this.needsFreshConnection = isStaleConnection || attempt?.mayEndConnections === true;
    const known = outcome.kind === 'error' ? withConnection(outcome, endpoint, attempt, isStaleConnection) : outcome;
    const verdict = this.#endpoints.recordOutcome(endpoint, known, this.#sentAt, this.#owner.driver.ticket, code);
    if (verdict === 'healthy' || verdict === 'ignored') return known;
    this.#failedEndpoints ??= new Set();
    this.#failedEndpoints.add(endpoint.index);
    if (verdict === 'waits' && known.kind === 'response') {
      return { ...known, otherEndpointsWork: true, isTakenOver: true };
    }
    return verdict === 'failed-others-healthy' ? { ...known, otherEndpointsWork: true } : known;
  }

  /** The outcome will not be known. */
  abandon(): void {
    if (!this.#isOutcomePending || this.endpoint === undefined) return;
    this.#isOutcomePending = false;
    this.#endpoints.recordAbandoned(this.endpoint, this.#sentAt);
  }
}

/** Adds what is known about the connections. A request that the upstream refused unread had one. */
function withConnection(
  outcome: ErrorOutcome,
  { connections, upgradeConnections }: Endpoint,
  attempt: UpstreamAttempt | undefined,
  isStaleConnection: boolean,
): ErrorOutcome {
  if (isStaleConnection) return { ...outcome, isStaleConnection };
  if (outcome.reason !== 'connect') return outcome;
  const isConnected = attempt?.sent === true || connections.hasOpenConnection || upgradeConnections.hasOpenConnection;
  return isConnected ? { ...outcome, isEndpointConnected: true } : outcome;
}
