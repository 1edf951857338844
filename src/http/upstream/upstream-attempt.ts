import { type Duplex, Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock, Millis } from '../../core/scalars.ts';
import { forwardInterimHeaders } from '../headers/forward-headers.ts';
import { decodeRawHeaders, toHeaderPairs } from '../headers/raw-headers.ts';
import type { ResponseCapture } from '../idempotency/response-capture.ts';
import { BodyForwarding, type BodyReaders } from '../response/body-forwarding.ts';
import type { ResponseReadRate } from '../response/response-read-rate.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import type { AttemptListener } from './attempt-listener.ts';
import { assertMayStart, AT_ANY_TIME, type StartCondition } from './attempt-order.ts';
import type { BodyPreview } from './body-preview.ts';
import { DiscardedBody } from './discarded-body.ts';
import type { DispatchRequest } from './dispatch-request.ts';
import { HeldBody } from './held-body.ts';
import { PooledSend } from './pooled-send.ts';
import { DefectiveResponseError, defectOfHead } from './response-defect.ts';
import { codeOf, failureOf, isConnectionClosed } from './send-failure.ts';

/**
 * One send, as undici's handler. `onResponseStart` decides whether the response is forwarded or retried, before any byte of it
 * has been written to the client; then the body is forwarded with backpressure, or drained.
 */
export class UpstreamAttempt extends PooledSend {
  readonly startedAt: Millis;
  readonly #listener: AttemptListener;
  readonly #clock: Clock;
  readonly #startCondition: StartCondition;
  #controller: Dispatcher.DispatchController | undefined;
  #state: 'open' | 'previewing' | 'held' | 'forwarding' | 'discarding' | 'over' = 'open';
  #hasResponseBegun = false;
  #isComplete = false;
  #isUnanswered = false;
  #preview: BodyPreview | undefined;
  #held: HeldBody | undefined;
  /** Of the body, once it is decided what becomes of the response. */
  #receiver: BodyForwarding | DiscardedBody | undefined;
  #upgradedSocket: Duplex | undefined;

  constructor(listener: AttemptListener, request: DispatchRequest, clock: Clock, startCondition = AT_ANY_TIME) {
    super(request);
    this.startedAt = clock.now();
    this.#listener = listener;
    this.#clock = clock;
    this.#startCondition = startCondition;
  }

  override get sent(): boolean {
    return this.#controller !== undefined && this.writer?.isUnwritten !== true;
  }

  override get isComplete(): boolean {
    return this.#isComplete;
  }

  override get isOver(): boolean {
    return this.#state === 'over';
  }

  /** The upstream closed a connection that it had kept alive, before any byte of a response. */
  get wasOnStaleConnection(): boolean {
    return this.#isUnanswered && this.connection !== undefined && this.connection.responsesServed > 0;
  }

  get #forwarding(): BodyForwarding | undefined {
    return this.#receiver instanceof BodyForwarding ? this.#receiver : undefined;
  }

  /** Bytes of its response body that were written to the client. */
  get forwardedBytes(): number {
    return this.#receiver?.writtenBytes ?? 0;
  }

  /** The connection after a change of protocol, once; undefined if there was none. The caller owns it from then on. */
  takeUpgradedSocket(): Duplex | undefined {
    const socket = this.#upgradedSocket;
    this.#upgradedSocket = undefined;
    return socket;
  }

  /** Forwards the body. The head has been written. @param readRate measures how fast the client reads */
  forward(response: HttpServerResponse, readRate?: ResponseReadRate, readers?: BodyReaders): void {
    this.#passBodyTo(new BodyForwarding(response, this.#controller, this.#listener, readRate, readers));
  }

  /** Holds the body back until the preview has seen enough of it, or `endPreview` is called. */
  holdForPreview(preview: BodyPreview): void {
    this.#state = 'previewing';
    this.#preview = preview;
  }

  /**
   * Classifies the response by the part of its body that has arrived. The preview's callback calls `forward` or `discard`.
   * @param isComplete nothing more arrives
   * @returns false when there was no preview
   */
  endPreview(isComplete = false): boolean {
    const preview = this.#preview;
    this.#preview = undefined;
    if (preview === undefined || this.#state !== 'previewing') return false;
    this.#state = 'open';
    const seen = preview.end(isComplete);
    this.#receiver?.onPreviewed(seen);
    this.#holdIfUndecided(seen);
    return true;
  }

  /** Drains the body, so that the connection can carry the retry. A long or slow body is cut instead. */
  discard(capture?: ResponseCapture): void {
    if (this.#state === 'over') return capture?.abort();
    this.#passBodyTo(new DiscardedBody(this.#controller, capture));
  }

  /** The client has left: reads the rest of a body that is kept for repeats. @returns false if it is not kept: nothing changes */
  finishForRepeats(): boolean {
    const capture = this.#forwarding?.abandon();
    if (capture === undefined) return false;
    this.#passBodyTo(new DiscardedBody(this.#controller, capture, this.forwardedBytes));
    this.#controller?.resume();
    return true;
  }

  /**
   * Ends the attempt. One without a connection stays with undici until there is one, and undici reads its body before
   * it checks whether to send it (8.13.1, writeH1). So the body is destroyed now: the next attempt may be sending it.
   * @param isByClient see `isCutByClient`
   */
  cancel(isByClient = false): void {
    if (this.#state === 'over') return;
    this.isCutByClient = isByClient;
    this.#finish();
    if (this.#isComplete) return;
    const { body } = this.request;
    if (this.#controller !== undefined) this.#controller.abort(new Error('cancelled'));
    else if (body instanceof Readable) body.destroy();
  }

  override onRequestStart(controller: Dispatcher.DispatchController): void {
    // undici 8.13.1 closes the connection when the request is aborted here, and keeps it when this throws.
    if (this.#state === 'over') throw new Error('cancelled');
    assertMayStart(this.#startCondition, this.#clock.now());
    this.#controller = controller;
  }

  override onRefusedUnread(): void {
    this.#controller = undefined;
  }

  override onBodySent(): void {
    if (this.#state === 'open') this.#listener.onProgress();
  }

  override onResponseStarted(): void {
    this.#hasResponseBegun = true;
  }

  override onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _: unknown,
    reasonPhrase = '',
  ): void {
    if (this.#state !== 'open' || status === 100) return; // over HTTP/1.1, parser-patches.ts skips it
    const headers = decodeRawHeaders(controller.rawHeaders);
    const defect = defectOfHead(status, headers);
    if (defect !== undefined) return controller.abort(new DefectiveResponseError(defect));
    if (status < 200) return this.#listener.onInterimResponse(status, headers);
    this.#listener.onHead(status, reasonPhrase, headers);
    this.#holdIfUndecided();
    this.#forwarding?.pauseIfFull();
  }

  /** The upstream agreed to change to another protocol; undici has given up the connection. */
  onRequestUpgrade(controller: Dispatcher.DispatchController, status: number, _: unknown, socket: Duplex): void {
    socket.on('error', () => undefined);
    const headers = decodeRawHeaders(controller.rawHeaders);
    const defect = defectOfHead(status, headers, this.request.upgrade);
    if (defect !== undefined) {
      socket.destroy();
      return this.onResponseError(controller, new DefectiveResponseError(defect));
    }
    this.#upgradedSocket = socket;
    if (this.#state === 'open') this.#listener.onHead(status, '', headers);
    this.takeUpgradedSocket()?.destroy(); // the listener did not take it
    this.#finish();
  }

  override onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    switch (this.#state) {
      case 'forwarding':
      case 'discarding':
        return this.#receiver?.onChunk(chunk);
      case 'previewing':
        if (this.#preview?.addChunk(chunk) === true) this.endPreview();
        break;
      case 'held':
        return this.#held?.add(chunk);
      case 'open':
      case 'over':
        break;
    }
  }

  override onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#isComplete = true;
    this.endPreview(true);
    if (this.#state === 'held') return this.#held?.whenDecided(() => this.onResponseEnd(controller));
    const receiver = this.#state === 'over' ? undefined : this.#receiver;
    const trailers = decodeRawHeaders(controller.rawTrailers);
    if (trailers.length > 0) receiver?.addTrailers(toHeaderPairs(forwardInterimHeaders(trailers)));
    this.#finish();
    if (receiver instanceof BodyForwarding) this.#listener.onBodyEnd(receiver.takeLastChunk());
  }

  override onResponseError(_: unknown, error: Error): void {
    this.endPreview(); // a body that is cut during its preview is forwarded as it arrived, cut
    const state = this.#state;
    if (state === 'held') return this.#held?.whenDecided(() => this.onResponseError(_, error));
    const { sent } = this;
    this.#isUnanswered = sent && !this.#hasResponseBegun && isConnectionClosed(error);
    this.#finish();
    if (state === 'open') this.#listener.onFailure(failureOf(error, sent));
    if (state !== 'forwarding') return;
    // The connection may break in the turn in which the head arrived. The head goes out before the response is cut, because it
    // counts as forwarded; Node holds what is written back until the turn ends.
    this.#forwarding?.flushHead();
    setImmediate(() => this.#listener.onBodyAborted(codeOf(error)));
  }

  /** The listener has neither forwarded nor discarded the response yet. */
  #holdIfUndecided(first?: Buffer): void {
    if (this.#state !== 'open' || this.#controller === undefined) return;
    this.#state = 'held';
    this.#held = new HeldBody(this.#controller, first);
  }

  #passBodyTo(receiver: BodyForwarding | DiscardedBody): void {
    this.#state = receiver instanceof BodyForwarding ? 'forwarding' : 'discarding';
    this.#receiver = receiver;
    this.#held?.release(receiver);
    this.#held = undefined;
  }

  #finish(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#receiver?.end(this.#isComplete);
    this.#listener.onConnectionReleased(this);
  }
}
