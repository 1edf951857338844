import { ClientTimeouts } from '../../core/exchange/client-timeouts.ts';
import { LatencyEstimates } from '../../core/retry/latency-estimates.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import { BypassGate } from '../../core/admission/bypass-gate.ts';
import { PollRegistry } from '../../core/polling/poll-registry.ts';
import { InFlightReads } from '../coalescing/in-flight-reads.ts';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { Millis } from '../../core/scalars.ts';
import type { RequestCapacity } from '../overload/request-capacity.ts';
import { senderAddress } from '../overload/sender-address.ts';
import { acceptanceFor } from '../delivery/acceptance-for.ts';
import { DeliveryIntake, type ProxyDeliveries } from '../delivery/delivery-intake.ts';
import type { DeliveryRequest } from '../delivery/delivery-request.ts';
import type { BufferedResponse } from '../response/buffered-response.ts';
import { DeliveryStatusEndpoint } from '../delivery/delivery-status-endpoint.ts';
import type { WriteAttempt } from '../delivery/judge-write.ts';
import { routeDelivery } from '../delivery/route-delivery.ts';
import { describeWriteAttempt } from '../delivery/write-attempt.ts';
import { type FallBack, makeFallBack } from '../fallback/fall-back.ts';
import type { CheckHandler } from '../ext-authz/check-handler.ts';
import { ExtAuthzApi } from '../ext-authz/ext-authz-api.ts';
import type { ExchangeContext, ProxyContext } from './exchange-context.ts';
import type { Endpoints } from '../upstream/endpoints.ts';
import type { RequestSource, RequestSink } from '../server/request-source.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import { chooseHandling } from './choose-handling.ts';
import type { Route } from './route.ts';
import { identifyRequest, type RoutedRequest, type UnidentifiedRequest } from './routed-request.ts';
import type { Principal } from '../auth/auth-types.ts';
import { keyFromHeaders } from '../idempotency/idempotency-key.ts';
import { RequestAuthentication } from '../auth/request-authentication.ts';
import { findInvalidRequest } from './validate-request.ts';
import { RequestHandler } from './request-handler.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import type { Snapshot } from './snapshot-types.ts';
import type { Problem } from '../response/problem.ts';
import { CorsPreflights } from '../response/cors-preflights.ts';
import { Rejections } from '../response/rejections.ts';
import { ActiveSet } from '../../core/collections/active-set.ts';
import type { Upgrade } from '../server/upgrade.ts';

export interface ProxyOptions {
  readonly context: Omit<ProxyContext, 'isDraining' | 'polls' | 'reads' | 'answerTimes' | 'clientTimeouts'>;
  /** The current configuration. Each exchange keeps the snapshot of its arrival. */
  readonly snapshot: () => Snapshot;
  /** Unique among processes; part of Via and of request ids. */
  readonly instance: string;
  readonly capacity: RequestCapacity;
  /** Undefined if no route delivers. */
  readonly deliveries: ProxyDeliveries | undefined;
}

type Handler = RequestHandler | CheckHandler | DeliveryIntake;

/** The proxy: takes requests from a source, decides how each is handled, and keeps its handler until it is done. */
export class Proxy implements RequestSink {
  readonly #options: ProxyOptions;
  readonly #context: ProxyContext;
  readonly #handlers = new ActiveSet<Handler>();
  readonly #preflights: CorsPreflights;
  readonly #deliveryStatus: DeliveryStatusEndpoint | undefined;
  readonly #authentication: RequestAuthentication;
  /** For requests that no limit applies to. */
  readonly #unlimitedContext: ExchangeContext;
  readonly #fallBack: FallBack;
  readonly rejections: Rejections;
  readonly extAuthz: ExtAuthzApi;
  #source: RequestSource | undefined;
  #requestCount = 0;
  /** When a shutdown ends what is left; undefined before. */
  #drainDeadline: Millis | undefined;

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#context = {
      ...options.context,
      isDraining: () => this.#drainDeadline !== undefined,
      answerTimes: new LatencyEstimates(),
      clientTimeouts: new ClientTimeouts(),
      polls: new PollRegistry(),
      reads: new InFlightReads(options.context.clock),
    };
    const { snapshot } = options;
    const parts = { context: this.#context, snapshot, nextId: () => this.#nextId() };
    this.#preflights = new CorsPreflights(parts);
    const count = this.count.bind(this);
    this.rejections = new Rejections({ ...parts, preflights: this.#preflights, count });
    this.#fallBack = makeFallBack(this.#context, (handler) => this.#start(handler), this.#onHandlerDone);
    const { listen } = this.#context;
    const { rejections } = this;
    this.#authentication = new RequestAuthentication({ listen, rejections, count });
    this.#unlimitedContext = { ...this.#context, gate: new BypassGate(options.context.gate) };
    const { deliveries } = options;
    const { via } = this.#context;
    this.#deliveryStatus = deliveries && new DeliveryStatusEndpoint(deliveries, rejections, via);
    this.extAuthz = new ExtAuthzApi({
      ...parts,
      rejections,
      authentication: this.#authentication,
      start: (handler) => this.#start(handler),
      onDone: this.#onHandlerDone,
    });
  }

  get inFlight(): number {
    return this.#handlers.size + (this.#source?.startingCount ?? 0) + this.#authentication.pendingCount;
  }

  /** Whether a request in flight uses these endpoints. Looks at all requests, so it must not be called often. */
  usesEndpoints(endpoints: Endpoints): boolean {
    for (const handler of this.#handlers) if (handler.usesEndpoints(endpoints)) return true;
    return false;
  }

  get bounds(): readonly ResourceBound[] {
    const { keys, responses, polls } = this.#context;
    const own = [this.#options.capacity.bound, ...keys.bounds, ...polls.bounds];
    return [...(this.#source?.bounds ?? []), ...own, ...(responses?.bounds ?? [])];
  }

  /** To be called once: see `RequestSource.open`. */
  open(source: RequestSource): Promise<string> {
    this.#source = source;
    return source.open(this);
  }

  /** Takes no new connections, and closes each one after its current response. Requests in flight go on until `by`. */
  drain(by: Millis): void {
    this.#drainDeadline = by;
    for (const handler of this.#handlers) handler.drain(by);
    this.#source?.drain();
  }

  /** The drain time is over: refuses requests that still wait. */
  expireDrain(): void {
    for (const handler of this.#handlers) handler.expireDrain();
  }

  /** Ends what is left at once. After a drain that left nothing, the last bytes are sent first. */
  async close(): Promise<void> {
    if (this.#drainDeadline !== undefined && this.#handlers.size === 0) await this.#source?.flush();
    await this.#source?.close();
    this.#context.gateTimer.stop();
  }

  problemIfFull(request: HttpServerRequest): Problem | undefined {
    return this.#options.capacity.problemIfFull(() => this.#senderOf(request));
  }

  problemIfOverloaded(request: HttpServerRequest): Problem | undefined {
    return this.#options.capacity.problemIfOverloaded(() => this.#senderOf(request));
  }

  get hasQueued(): boolean {
    return this.#context.gateTimer.isSet;
  }

  count(request: HttpServerRequest, isRefused: boolean): () => void {
    const { capacity } = this.#options;
    if (isRefused) return capacity.enterRefused();
    const address = this.#senderOf(request);
    capacity.enter(address);
    return () => capacity.leave(address);
  }

  #senderOf(request: HttpServerRequest): string | undefined {
    return senderAddress(request, this.#options.snapshot());
  }

  handle(request: HttpServerRequest, response: HttpServerResponse, upgrade?: Upgrade): void {
    const { rejections } = this;
    const invalid = findInvalidRequest(request);
    if (invalid !== undefined) return rejections.reject(request, response, invalid.problem, invalid.isFramingInDoubt);
    const snapshot = this.#options.snapshot();
    const { check } = snapshot;
    if (check !== undefined && this.extAuthz.handle(check, { request, response, snapshot, upgrade })) return;
    if (this.#deliveryStatus?.handle(request, response, snapshot) === true) return upgrade?.decline();
    const handling = chooseHandling(request, snapshot.router, this.#context.via);
    switch (handling.kind) {
      case 'rejected':
        return rejections.reject(request, response, handling.problem);
      case 'preflight':
        return this.#preflights.respond(request, response, handling.route, handling.cors);
      case 'final-recipient':
        return rejections.respondAsFinalRecipient(request, response, handling.route.target.identityHeaders);
      case 'exchange': {
        const { route, isPreflight } = handling;
        const arrived = { request, response, upgrade, route, snapshot, isPreflight };
        const start = (principal?: Principal): void => this.#identifyAndStart(arrived, principal);
        if (snapshot.authentication === undefined || route.isPublic) return start();
        return this.#authentication.run(snapshot.authentication, arrived, start);
      }
    }
  }

  #identifyAndStart(arrived: UnidentifiedRequest, principal?: Principal): void {
    const key = keyFromHeaders(arrived.request, arrived.route);
    const routed = identifyRequest(arrived, this.#nextId(), key, principal);
    if (principal !== undefined && this.#authentication.rejectForbidden(routed)) return;
    this.#startExchange(routed);
  }

  #startExchange(routed: RoutedRequest): void {
    const { deliveries } = this.#options;
    const acceptance = deliveries && !routed.isPreflight ? acceptanceFor(routed, this.#context, deliveries) : undefined;
    if (acceptance !== undefined && deliveries !== undefined) {
      routed.upgrade?.decline();
      const parts = { ...deliveries, acceptance, onDone: this.#onHandlerDone };
      return this.#start(new DeliveryIntake(this.#context, routed, parts));
    }
    const context = routed.isPreflight ? this.#unlimitedContext : this.#context;
    this.#start(new RequestHandler(context, routed, this.#onHandlerDone, this.#fallBack));
  }

  /** Sends an attempt of a stored delivery. @param onDone called once */
  deliver(
    route: Route,
    request: DeliveryRequest,
    response: BufferedResponse,
    onDone: (record: RequestRecord, write: WriteAttempt) => void,
  ): void {
    const routed = routeDelivery({ request, response, route, snapshot: this.#options.snapshot() }, this.#nextId());
    this.#start(
      new RequestHandler(this.#context, routed, (handler, record) => {
        this.#onHandlerDone(handler);
        onDone(record, describeWriteAttempt(routed, handler.driver.outcome));
      }),
    );
  }

  #start(handler: Handler): void {
    this.#handlers.add(handler);
    this.#options.capacity.enter(handler.addressGroup);
    if (this.#drainDeadline !== undefined) handler.drain(this.#drainDeadline);
    handler.start();
  }

  readonly #onHandlerDone = (ended: Handler): void => {
    this.#handlers.remove(ended);
    this.#options.capacity.leave(ended.addressGroup);
  };

  #nextId(): string {
    this.#requestCount += 1;
    return `${this.#options.instance}-${this.#requestCount.toString(36)}`;
  }
}
