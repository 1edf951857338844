import type { Duplex } from 'node:stream';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock, Millis } from '../../core/scalars.ts';
import { forwardInterimHeaders } from '../headers/forward-headers.ts';
import { decodeRawHeaders, toHeaderPairs } from '../headers/raw-headers.ts';
import type { ForwardingListener } from '../response/body-forwarding.ts';
import { BodyForwarding } from '../response/body-forwarding.ts';
import type { ResponseReadRate } from '../response/response-read-rate.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import type { BodyPreview } from './body-preview.ts';
import type { DispatchRequest } from './dispatch-request.ts';
import { PooledSend } from './pooled-send.ts';
import { DefectiveResponseError, defectOfHead } from './response-defect.ts';
import type { InvalidRequestFailure, SendFailure } from './send-failure.ts';
import { codeOf, failureOf, isConnectionClosed, SendTooLateError } from './send-failure.ts';

/** A response that is not forwarded is read up to this size and time, to keep its connection; beyond, a new one is cheaper. */
const MAX_DRAIN_BYTES = 256 * 1024;
const MAX_DRAIN_TIME = 500;

/** Receives the result of an attempt. */
export interface AttemptListener extends ForwardingListener {
  /** An interim response arrived, 102 to 199 (RFC 9110 §15.2). */
  onInterimResponse(status: number, rawHeaders: string[]): void;
  /**
   * The head arrived. Before this returns, the listener calls `forward`, `discard` or `holdForPreview` of the attempt; after
   * `holdForPreview` it calls one of the other two later.
   */
  onHead(status: number, reasonPhrase: string, rawHeaders: string[]): void;
  /** No head will arrive. */
  onFailure(failure: SendFailure | InvalidRequestFailure): void;
  /** The forwarded body is complete. @param lastChunk still to be written: the whole body if it arrived with its head */
  onBodyEnd(lastChunk: Buffer | undefined): void;
  /** The upstream cut the forwarded body short. @param cause see `SendFailure.cause` */
  onBodyAborted(cause: string | undefined): void;
  /** The attempt has given up its connection, and needs no other. Called once; the next attempt may be under way. */
  onConnectionReleased(attempt: UpstreamAttempt): void;
}

/**
 * One send, as undici's handler. `onResponseStart` decides whether the response is forwarded or retried, before any byte of it
 * has been written to the client; then the body is forwarded with backpressure, or drained.
 */
export class UpstreamAttempt extends PooledSend {
  readonly startedAt: Millis;
  readonly #listener: AttemptListener;
  readonly #clock: Clock;
  readonly #startBy: Millis;
  #controller: Dispatcher.DispatchController | undefined;
  #state: 'open' | 'previewing' | 'forwarding' | 'discarding' | 'over' = 'open';
  #hasResponseBegun = false;
  #isComplete = false;
  #isUnanswered = false;
  #preview: BodyPreview | undefined;
  #forwarding: BodyForwarding | undefined;
  #drainedBytes = 0;
  #drainTimer: NodeJS.Timeout | undefined;
  #upgradedSocket: Duplex | undefined;

  /** @param startBy on `clock`: when a connection is available later than this, nothing is sent */
  constructor(
    listener: AttemptListener,
    request: DispatchRequest,
    clock: Clock,
    startBy: Millis = Number.POSITIVE_INFINITY,
  ) {
    super(request);
    this.startedAt = clock.now();
    this.#listener = listener;
    this.#clock = clock;
    this.#startBy = startBy;
  }

  override get sent(): boolean {
    return this.#controller !== undefined;
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

  /** Bytes of its response body that were written to the client. */
  get forwardedBytes(): number {
    return this.#forwarding?.writtenBytes ?? 0;
  }

  /** The connection after a change of protocol, once; undefined if there was none. The caller owns it from then on. */
  takeUpgradedSocket(): Duplex | undefined {
    const socket = this.#upgradedSocket;
    this.#upgradedSocket = undefined;
    return socket;
  }

  /** Forwards the body. The head has been written. @param readRate measures how fast the client reads */
  forward(response: HttpServerResponse, readRate?: ResponseReadRate): void {
    this.#state = 'forwarding';
    this.#forwarding = new BodyForwarding(response, this.#controller, this.#listener, readRate);
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
    const held = preview.end(isComplete);
    this.#forwarding?.onPreviewed(held);
    return true;
  }

  /** Drains the body, so that the connection can carry the retry. A long or slow body is cut instead. */
  discard(): void {
    this.#state = 'discarding';
    this.#drainTimer = setTimeout(() => this.#controller?.abort(new Error('discarded')), MAX_DRAIN_TIME).unref();
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
    if (this.#clock.now() > this.#startBy) throw new SendTooLateError();
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

  override onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    switch (this.#state) {
      case 'forwarding':
        return this.#forwarding?.onChunk(chunk);
      case 'previewing':
        if (this.#preview?.addChunk(chunk) === true) this.endPreview();
        break;
      case 'discarding':
        this.#drainedBytes += chunk.length;
        if (this.#drainedBytes > MAX_DRAIN_BYTES) controller.abort(new Error('discarded'));
        break;
      case 'open':
      case 'over':
        break;
    }
  }

  override onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#isComplete = true;
    this.endPreview(true);
    const forwarding = this.#state === 'forwarding' ? this.#forwarding : undefined;
    this.#finish();
    if (forwarding === undefined) return;
    const trailers = decodeRawHeaders(controller.rawTrailers);
    if (trailers.length > 0) forwarding.response.addTrailers(toHeaderPairs(forwardInterimHeaders(trailers)));
    this.#listener.onBodyEnd(forwarding.takeLastChunk());
  }

  override onResponseError(_: unknown, error: Error): void {
    this.endPreview(); // a body that is cut during its preview is forwarded as it arrived, cut
    const state = this.#state;
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

  #finish(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#forwarding?.end();
    clearTimeout(this.#drainTimer);
    this.#listener.onConnectionReleased(this);
  }
}
