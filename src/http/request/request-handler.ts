import type { ActiveSetMember } from '../../core/collections/active-set.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { KeyClaim } from '../../core/idempotency/key-store.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ExchangeEffects } from '../../core/exchange/effects.ts';
import type { ExchangeDriver } from '../../core/exchange/exchange-driver.ts';
import type { LastAttempt, ObservedExchange, TraceContext, TraceStep } from '../../core/exchange/exchange-observer.ts';
import type { SendStep } from '../../core/exchange/steps.ts';
import { JoinedRead } from '../coalescing/joined-read.ts';
import type { IdempotencyKey } from '../idempotency/idempotency-types.ts';
import type { FallBack } from '../fallback/fall-back.ts';
import { endpointOfKey } from '../idempotency/endpoint-of-key.ts';
import { finishesAlone, keyClaimEnd } from '../idempotency/key-claim-end.ts';
import { makeKeyClaim } from '../idempotency/make-key-claim.ts';
import { type ClientPolling, clientPollingFor } from '../response/client-polling.ts';
import { ClientResponse, WITH_RESPONSE } from '../response/client-response.ts';
import { forwardResponse, sendKept } from '../response/forward-verdict.ts';
import { DRAINING_PROBLEM, problemForVerdict } from '../response/problem-details.ts';
import type { Problem } from '../response/problem.ts';
import { reportFault } from '../response/report-fault.ts';
import type { BodyListener } from '../server/server-request.ts';
import type { Endpoints } from '../upstream/endpoints.ts';
import { UpstreamCall } from '../upstream/upstream-call.ts';
import { addressGroupOf } from './client-identity.ts';
import type { ExchangeContext } from './exchange-context.ts';
import { makeDriver } from './make-driver.ts';
import { announceArrival, lastAttemptOf, type OnHandlerDone, releaseRequest, timingsOf } from './observe-request.ts';
import { pinnedAccountOf } from '../idempotency/pinned-account.ts';
import { readRequestBody } from './read-body.ts';
import type { RequestBody } from './request-body.ts';
import { arrivalOf, describeExchange, factsOf, isRepeatableAnywhere, type RoutedRequest } from './routed-request.ts';

/** Handles one request: performs the effects of its exchange over HTTP. The exchange and the gate decide what happens when. */
export class RequestHandler implements ExchangeEffects, ObservedExchange, ActiveSetMember, BodyListener {
  place = -1;
  readonly addressGroup: string;
  readonly startedAt: Millis;
  steps: TraceStep[] | undefined;
  trace: TraceContext | undefined;
  readonly driver: ExchangeDriver<RequestHandler>;
  readonly context: ExchangeContext;
  readonly routed: RoutedRequest;
  readonly #facts: ReturnType<typeof factsOf>;
  readonly #onDone: OnHandlerDone;
  readonly #fallBack: FallBack | undefined;
  readonly response: ClientResponse;
  readonly call: UpstreamCall;
  readonly polling: ClientPolling | undefined;
  #key: IdempotencyKey | undefined;
  keyClaim: KeyClaim | undefined;
  read: JoinedRead | undefined;
  #body: RequestBody | undefined;
  #sleepTimer: NodeJS.Timeout | undefined;
  /** The write is finished without its client (`onClientGone: finish`). */
  #isDetached = false;
  isClosed = false;
  #verdict: ExchangeVerdict | undefined;
  /** Why the request itself is at fault, until the client has the response. */
  #requestProblem: Problem | undefined;

  constructor(context: ExchangeContext, routed: RoutedRequest, onDone: OnHandlerDone, fallBack?: FallBack) {
    this.context = context;
    this.routed = routed;
    this.addressGroup = addressGroupOf(routed.client);
    this.#onDone = onDone;
    this.#fallBack = fallBack;
    this.#key = routed.key;
    this.startedAt = routed.fallback?.arrivedAt ?? arrivalOf(routed.request, context.clock);
    this.response = new ClientResponse(context, routed);
    this.call = new UpstreamCall(context, routed, this.response, this);
    this.polling = clientPollingFor(context, routed, this.startedAt);
    this.#facts = factsOf(routed, this.polling?.maxWait);
    this.driver = makeDriver<RequestHandler>(this, context, routed, this.#facts, this.startedAt, this.polling);
  }

  /** Whether the request was sent, or may still be sent, to these endpoints. */
  usesEndpoints(endpoints: Endpoints): boolean {
    return this.routed.route.target.endpoints === endpoints;
  }

  start(): void {
    const { request, response, route, fallback } = this.routed;
    if (fallback === undefined) announceArrival(this.context, route, this.#key);
    request.bodyListener = this;
    response.on('close', this.onClose);
    this.driver.start(fallback !== undefined);
  }

  /** The rest of the request body cannot be parsed. */
  onMalformed(problem: Problem): void {
    if (!this.driver.isDone) this.abort(problem);
    else if (!this.call.isOver) this.response.abort(); // the upstream responds to a request that it never has in full
  }

  /** Responds with a problem of the request itself, from which nothing is learned about the upstream. */
  abort(problem: Problem): void {
    if (this.driver.isDone) return;
    this.#requestProblem = problem;
    this.driver.onClientGone();
    this.#respondWithProblem(false);
  }

  /** The process ends at `by`: refuses the request if it waits for something later. */
  drain(by: Millis): void {
    this.driver.drain(by);
  }

  /** The process ends now: refuses the request if it still waits. A request that was sent ends with its connection. */
  expireDrain(): void {
    this.driver.expireDrain();
    if (this.call.attemptCount === 0) this.abort(DRAINING_PROBLEM);
  }

  describe(): ReturnType<ObservedExchange['describe']> {
    return describeExchange(this.routed, this.context.proto, this.#key);
  }

  lastAttempt(): LastAttempt {
    return lastAttemptOf(this.driver, this.call);
  }

  readBody(): void {
    if (!this.routed.request.hasBody && this.routed.route.verify === undefined) return this.driver.onBodyRead(true);
    this.#body = readRequestBody(this.routed, this.context, this.driver.ticket, {
      onRead: (replayable, key) => {
        this.#key = key ?? this.#key;
        this.driver.onBodyRead(replayable, key !== undefined);
      },
      onRejected: (problem) => this.abort(problem),
    });
    this.#body?.read();
  }

  pinnedAccount(): string | undefined {
    return pinnedAccountOf(this.routed, this.#key, this.keyClaim);
  }

  claim(deadline: Millis): void {
    this.keyClaim ??= makeKeyClaim(this.context, this.routed, this.#key, this.#body, this.response);
    this.keyClaim.begin(this.driver, deadline);
  }

  stopClaim(): void {
    this.keyClaim?.stopWaiting();
  }

  join(deadline: Millis): void {
    this.read = new JoinedRead(this.context, this.routed, this.driver);
    this.read.begin(deadline);
  }

  leave(): void {
    this.read?.leave();
  }

  lookUpKey(): void {
    this.keyClaim?.lookUp((record) => this.driver.onKeyKnown(record));
  }

  send(step: SendStep): void {
    this.read?.onSent();
    this.call.start({
      ...step,
      ...{ body: this.#body, claim: this.keyClaim, key: this.#key },
      isRepeatable: isRepeatableAnywhere(this.routed, this.#facts, this.#key !== undefined),
      pinnedTo: step.isPinned ? endpointOfKey(this.keyClaim, this.call.endpoint, this.routed.route.target) : undefined,
      traceHeaders: this.trace?.outgoing,
    });
  }

  cancelSend(): boolean {
    return this.call.cancel();
  }

  discardResponse(): void {
    this.call.discard();
  }

  sleep(ms: Millis): void {
    this.#sleepTimer = setTimeout(() => this.driver.onWake(), Math.ceil(ms));
  }

  cancelSleep(): void {
    clearTimeout(this.#sleepTimer);
  }

  rearmGateTimer(): void {
    this.context.gateTimer.rearm();
  }

  finish(verdict: ExchangeVerdict): void {
    if (verdict.kind !== 'forward') this.read?.end(verdict.kind === 'gone' || verdict.kind === 'fail');
    if (this.#fallBack?.(this.routed, this, verdict) === true) return;
    this.#verdict = verdict;
    let isDelivered = true;
    if (verdict.kind === 'forward') isDelivered = forwardResponse(this, verdict);
    else if (verdict.kind === 'replay' || verdict.kind === 'share') isDelivered = sendKept(this, verdict);
    else if (verdict.kind === 'gone') this.#respondWithProblem(verdict.unknown);
    else this.response.respondWith(problemForVerdict(verdict, this.call.failure), verdict.attempts);
    const end = keyClaimEnd(this.routed, verdict, this.driver.outcome, isDelivered);
    this.call.whenWritten((mayBeWhole) => this.keyClaim?.release(mayBeWhole ? end : { kind: 'unknown' }));
    this.#finishIfDone();
  }

  /** Responds with the request's own problem, if it has one; once. @param unknown an attempt of its own may have taken effect */
  #respondWithProblem(unknown: boolean): void {
    const problem = this.#requestProblem;
    this.#requestProblem = undefined;
    if (problem !== undefined) reportFault(problem, unknown, this, this.#key, this.#body);
  }

  readonly onClose = (): void => {
    this.isClosed = true;
    if (!this.driver.isDone) return this.#onClientGone();
    const isWhole = this.routed.response.writableFinished || this.response.tunnelBytes !== undefined;
    if (!isWhole) this.#onUndelivered();
    this.#finishIfDone();
  };

  #onUndelivered(): void {
    if (this.#verdict === undefined || !WITH_RESPONSE.has(this.#verdict.kind)) return;
    this.keyClaim?.onUndelivered();
    this.response.abort();
    if (this.#verdict.kind === 'forward') this.call.abandonBody();
  }

  /** A keyed write whose body has arrived is finished without its client if the route says so. */
  #onClientGone(): void {
    const isSent = this.#key !== undefined && this.call.attemptCount > 0 && this.#body?.isIncomplete !== true;
    if (isSent && finishesAlone(this.routed)) {
      this.#isDetached = true;
      this.driver.clientWait?.onDetached(this.context.clock.now());
    } else this.driver.onClientGone(true);
  }

  /** Nothing is in progress any more. */
  release(): void {
    releaseRequest(this.routed, [this.call, this.keyClaim, this.read], this.#body, this.onClose);
  }

  /** Ends the handler once both the exchange and the response are over. */
  #finishIfDone(): void {
    if (this.#verdict === undefined || !(this.isClosed || this.#isDetached)) return;
    this.release();
    const record = this.response.toRecord(this.#verdict, timingsOf(this, this.routed, this.call, this.#body));
    this.call.whenBodyKept(() => this.#onDone(this, record)); // a drain waits for it
    this.context.listen({ type: 'done', record });
    this.context.observer?.onEnd(this, record);
  }
}
