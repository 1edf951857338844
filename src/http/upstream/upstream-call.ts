import type { Duplex } from 'node:stream';
import { Readable } from 'node:stream';
import type { ReaderAbortReason } from '../../core/events/event-labels.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { Hints } from '../../core/hints/hints.ts';
import type { Millis } from '../../core/scalars.ts';
import { finishesAlone } from '../idempotency/key-claim-end.ts';
import { recordWriteOutcome } from '../idempotency/record-write-outcome.ts';
import type { ResponseCapture } from '../idempotency/response-capture.ts';
import { addressGroupOf } from '../request/client-identity.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import type { BodyReaders } from '../response/body-forwarding.ts';
import type { ClientResponse } from '../response/client-response.ts';
import { invalidRequestProblem } from '../response/problem-details.ts';
import type { ResponseHead } from '../response/response-head.ts';
import { watchReadRate } from '../response/watch-read-rate.ts';
import type { AttemptOrder, CallOwner } from './attempt-order.ts';
import { CallTimers } from './call-timers.ts';
import { classifyHead, toOutcome } from './classify-response.ts';
import { DispatchRequests } from './dispatch-request.ts';
import { EndpointSelector } from './endpoint-selector.ts';
import type { Endpoint } from './open-endpoint.ts';
import { KEY_OUTDATED, type InvalidRequestFailure, type SendFailure } from './send-failure.ts';
import type { AttemptListener } from './attempt-listener.ts';
import { UpstreamAttempt } from './upstream-attempt.ts';

/** The attempts of one exchange, one after another: endpoint, timeouts, response head and body. */
export class UpstreamCall implements AttemptListener {
  attemptCount = 0;
  /** Of the last attempt, if it failed. */
  failure: SendFailure | undefined;
  readonly #context: ExchangeContext;
  readonly #routed: RoutedRequest;
  readonly #response: ClientResponse;
  readonly #owner: CallOwner;
  readonly #selector: EndpointSelector;
  readonly #timers: CallTimers;
  readonly #requests: DispatchRequests;
  /** Of the last attempt. */
  #order: AttemptOrder | undefined;
  /** Undefined if no endpoint was left for it. */
  #attempt: UpstreamAttempt | undefined;
  #head: ResponseHead | undefined;
  /** The client has left within the body, which is read to its end for repeats. */
  #isFinishing = false;
  /** The body is read to its end for repeats, without its client. */
  #keepsBody = false;
  /** Called once the last attempt has given up its connection. */
  #onReleased: ((isComplete: boolean) => void)[] | undefined;

  constructor(context: ExchangeContext, routed: RoutedRequest, response: ClientResponse, owner: CallOwner) {
    this.#context = context;
    this.#routed = routed;
    this.#response = response;
    this.#owner = owner;
    this.#selector = new EndpointSelector(routed, owner);
    this.#timers = new CallTimers(context.clock, routed, this);
    this.#requests = new DispatchRequests({ routed, context, owner, keys: this.#selector, record: response });
  }

  /** Where the last attempt went; undefined before the first. */
  get endpoint(): Endpoint | undefined {
    return this.#selector.endpoint;
  }

  /** Bytes of the response body that were written to the client. */
  get forwardedBytes(): number {
    return this.#attempt?.forwardedBytes ?? 0;
  }

  /** Sends the next attempt. */
  start(order: AttemptOrder): void {
    const { timeout, keyValidUntil, body, isRepeatable, traceHeaders } = order;
    const { clock, gate } = this.#context;
    const { target } = this.#routed.route;
    this.attemptCount += 1;
    this.#order = order;
    this.#attempt = undefined;
    const payload = body?.payload() ?? null;
    const isStreamed = payload instanceof Readable;
    const now = clock.now();
    const endpoint = this.#selector.choose(order, isRepeatable && !isStreamed, now);
    if (endpoint === undefined) return this.onFailure(this.#selector.missing);
    const attempt = new UpstreamAttempt(this, this.#requests.to(endpoint, payload, traceHeaders), clock, order);
    attempt.sender = this.#owner.driver.ticket;
    this.#attempt = attempt;
    this.#timers.awaitHead(attempt, body, timeout);
    if (keyValidUntil < Infinity) this.#timers.awaitUpload(Math.max(0, keyValidUntil - now));
    gate.connections.onClaimed(target.name, addressGroupOf(this.#routed.client));
    order.claim?.onSend(this.#selector.place);
    target.endpoints.send(endpoint, attempt, this.#selector.needsFreshConnection, now);
  }

  /** Cancels the attempt or the body. @returns whether a part was sent: some upstreams act before the body is complete */
  cancel(): boolean {
    this.#timers.disarm();
    this.#attempt?.cancel(true);
    this.#selector.abandon();
    return this.#attempt?.sent === true;
  }

  /** The client has left within the body: cancels it, unless the write is finished for its repeats. */
  abandonBody(): void {
    const goesOn =
      finishesAlone(this.#routed) && !this.#timers.isUploading && this.#attempt?.finishForRepeats() === true;
    this.#isFinishing = this.#keepsBody = goesOn && !this.isOver; // what had arrived may have been the rest
    if (this.#isFinishing) return;
    this.cancel();
    this.#owner.driver.onResponseEnd();
  }

  /** The response head in hand, once; undefined if there is none. */
  takeHead(): ResponseHead | undefined {
    const head = this.#head;
    this.#head = undefined;
    return head;
  }

  /** Drains the response in hand instead of forwarding it. @param capture keeps its body */
  discard(capture?: ResponseCapture): void {
    this.#head = undefined;
    if (this.#order?.claim !== undefined && this.#timers.isUploading) {
      capture?.abort();
      return this.#attempt?.cancel(); // the rest would be a part of a write that is sent again
    }
    this.#keepsBody = capture !== undefined;
    this.#attempt?.discard(capture);
  }

  /** Calls back once no body is read for repeats without its client. */
  whenBodyKept(run: () => void): void {
    if (this.#keepsBody && !this.isOver) (this.#onReleased ??= []).push(run);
    else run();
  }

  /** Calls back once nothing more of the request is written. @param run is given whether the response may still come as a whole */
  whenWritten(run: (mayBeWhole: boolean) => void): void {
    if (this.#timers.isUploading) (this.#onReleased ??= []).push(run);
    else run(true);
  }

  /** No attempt is under way, and no body is being forwarded. */
  get isOver(): boolean {
    return this.#attempt?.isOver !== false;
  }

  /**
   * Forwards the body; the head has been written.
   * @param mayIdle the upstream may pause without limit, as long as the connection would show a disconnected client
   */
  forward(mayIdle: boolean, readers?: BodyReaders): void {
    const { route, response } = this.#routed;
    this.#timers.beginBody(route.target.streamIdle, mayIdle);
    const readRate = watchReadRate(this.#context, this.#routed, this.#owner.driver.ticket, this.#onSlowReader);
    this.#attempt?.forward(response, readRate, readers);
    this.#timers.awaitBody();
  }

  /** Stops all timers: the exchange is over. */
  close(): void {
    this.#timers.close();
  }

  takeUpgradedSocket(): Duplex | undefined {
    return this.#attempt?.takeUpgradedSocket();
  }

  onInterimResponse(status: number, headers: string[]): void {
    this.#response.forwardInterim(status, headers);
  }

  onHead(status: number, reasonPhrase: string, headers: string[]): void {
    this.#head = { status, reasonPhrase, headers, httpVersion: this.#attempt?.responseVersion ?? '1.1' };
    this.failure = undefined;
    const took = this.#elapsed();
    const preview = classifyHead(this.#routed, this.#head, (hints) => this.#reportResponse(status, hints, took));
    if (preview !== undefined) this.#attempt?.holdForPreview(preview);
  }

  onFailure(failure: SendFailure | InvalidRequestFailure): void {
    if (failure.reason === 'invalid_request') {
      this.#timers.endBody();
      this.#selector.abandon();
      return this.#owner.abort(invalidRequestProblem(failure.detail));
    }
    this.#timers.disarm();
    this.failure = failure;
    const { reason, sent, cause } = failure;
    const bodyConsumed = this.#order?.body?.isPartlySent === true;
    const isKeyOutdated = cause === KEY_OUTDATED;
    this.#reportOutcome({ kind: 'error', reason, sent, cause, bodyConsumed, isKeyOutdated, took: this.#elapsed() });
  }

  onProgress(): void {
    this.#timers.extend();
  }

  onBodyEnd(lastChunk: Buffer | undefined): void {
    this.#timers.endBody();
    this.#owner.driver.onResponseEnd();
    this.#response.end(lastChunk);
    this.#timers.awaitBody(); // the client still has to read the rest
  }

  onBodyAborted(cause: string | undefined): void {
    this.failure = { reason: 'reset', sent: true, cause };
    this.#abortBody();
  }

  #abortBody(why?: ReaderAbortReason): void {
    this.#timers.endBody();
    this.#order?.claim?.onUndelivered();
    this.#owner.driver.onResponseEnd();
    this.#response.abort(why);
  }

  onConnectionReleased(attempt: UpstreamAttempt): void {
    const { route, client } = this.#routed;
    const took = this.#context.clock.now() - attempt.startedAt;
    const { connections } = this.#context.gate;
    connections.onReleased(route.target.name, addressGroupOf(client), took, attempt.isCutByClient);
    attempt.release();
    if (attempt !== this.#attempt) return;
    if (this.#isFinishing) this.#owner.driver.onResponseEnd();
    for (const run of this.#onReleased?.splice(0) ?? []) run(attempt.isComplete);
  }

  #reportResponse(status: number, hints: Hints, took: Millis): void {
    this.#timers.endHead();
    this.#reportOutcome(toOutcome(this.#routed, status, this.#head?.headers ?? [], hints, took));
  }

  /** The endpoint is judged first: what its outcome means for the limit and for a retry depends on the other endpoints. */
  #reportOutcome(original: AttemptOutcome): void {
    const outcome = this.#selector.recordOutcome(original, this.#attempt, this.failure?.cause);
    recordWriteOutcome(outcome, this.#routed, this.#order, this.#context.answerTimes);
    this.#owner.driver.onOutcome(outcome);
  }

  readonly #onSlowReader = (why: ReaderAbortReason): void => {
    this.#attempt?.cancel(true);
    this.#abortBody(why);
  };

  #elapsed(): Millis {
    return this.#attempt === undefined ? 0 : this.#context.clock.now() - this.#attempt.startedAt;
  }
}
