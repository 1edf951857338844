import type { Clock, Millis } from '../../core/scalars.ts';
import { Deadline } from '../deadline.ts';
import type { RequestBody } from '../request/request-body.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { isPaused } from '../server/http1-server-request.ts';
import type { AttemptListener } from './attempt-listener.ts';
import type { UpstreamAttempt } from './upstream-attempt.ts';

/** What becomes of a response may depend on what another process knows of a key: that takes milliseconds. */
const DECISION_CHECK_INTERVAL: Millis = 10;

/** Ends what took too long: an attempt without a head, or a body. */
type TimedCall = Pick<AttemptListener, 'onFailure' | 'onBodyAborted'>;

/** Time limits of a call: to the response head, for an upload with an expiring key, and between two chunks of the body. */
export class CallTimers {
  readonly #clock: Clock;
  readonly #routed: RoutedRequest;
  readonly #call: TimedCall;
  /** The last attempt. */
  #attempt: UpstreamAttempt | undefined;
  #body: RequestBody | undefined;
  #timeout: Millis = 0;
  #bodyIdleTimeout: Millis = 0;
  #mayIdle = false;
  #awaits: 'head' | 'decision' | 'body' = 'decision';
  /** For the head, then for the next chunk of the body. */
  readonly #deadline: Deadline;
  /** For a write whose key may expire before all of it is written; made for such a write only. */
  #uploadDeadline: Deadline | undefined;

  constructor(clock: Clock, routed: RoutedRequest, call: TimedCall) {
    this.#clock = clock;
    this.#routed = routed;
    this.#call = call;
    this.#deadline = new Deadline(clock);
  }

  awaitHead(attempt: UpstreamAttempt, body: RequestBody | undefined, timeout: Millis): void {
    this.#attempt = attempt;
    this.#body = body;
    this.#timeout = timeout;
    this.#awaits = 'head';
    this.#deadline.arm(timeout, this.#onTimeout);
  }

  /** @param span until the upstream forgets the idempotency key */
  awaitUpload(span: Millis): void {
    this.#uploadDeadline ??= new Deadline(this.#clock);
    this.#uploadDeadline.arm(span, () => this.#onUploadTimeout());
  }

  /** The head has arrived, and it is not decided yet what becomes of it. An upload that goes on is still bounded by its key. */
  endHead(): void {
    this.#awaits = 'decision';
    this.#deadline.disarm();
  }

  /**
   * The body will be forwarded.
   * @param idleTimeout how long it may pause, and how long the client may read nothing
   * @param mayIdle see `UpstreamCall.forward`
   */
  beginBody(idleTimeout: Millis, mayIdle: boolean): void {
    this.#awaits = 'body';
    this.#bodyIdleTimeout = idleTimeout;
    this.#mayIdle = mayIdle;
  }

  /** Starts the wait for the next chunk; after the last, for the client to read it. */
  awaitBody(): void {
    this.#deadline.arm(this.#bodyIdleTimeout, this.#onIdle);
  }

  /** The body has ended. */
  endBody(): void {
    this.#deadline.disarm();
    this.#mayIdle = false;
  }

  /**
   * Bytes moved: restarts the time limit. Before the head only while the client uploads: a body that has arrived in full goes
   * out in the time of the attempt.
   */
  extend(): void {
    if (this.#awaits !== 'head' || this.#isStreaming) this.#deadline.extend();
  }

  disarm(): void {
    this.#deadline.disarm();
    this.#uploadDeadline?.disarm();
  }

  close(): void {
    this.#deadline.close();
    this.#uploadDeadline?.close();
  }

  /** Not all of the request of the last attempt is written. */
  get isUploading(): boolean {
    if (this.#attempt?.isOver !== false) return false;
    return this.#body?.isIncomplete === true || this.#attempt.isPartlyWritten;
  }

  get #isStreaming(): boolean {
    return this.#body?.isStreamed === true && this.#body.isIncomplete;
  }

  /** The upstream has forgotten the key. What has not been written yet would complete a request that is no longer a repeat. */
  #onUploadTimeout(): void {
    const attempt = this.#attempt;
    if (attempt === undefined || !this.isUploading) return;
    if (this.#awaits === 'decision') return this.awaitUpload(DECISION_CHECK_INTERVAL);
    attempt.cancel();
    if (this.#awaits === 'body') return this.#call.onBodyAborted('KEY_EXPIRED'); // the upstream responded before the end of the upload
    this.#call.onFailure({ reason: 'timeout', sent: attempt.sent, cause: 'KEY_EXPIRED' });
  }

  readonly #onTimeout = (): void => {
    if (this.#attempt?.endPreview() === true) return; // the head was in time, so the response counts
    // Time spent waiting for the client does not count against the upstream; the upload's own idle limit ends that.
    if (this.#body?.isWaitingForClient === true) return this.#deadline.arm(this.#timeout, this.#onTimeout);
    // A response is due from the end of the upload.
    const remaining = (this.#body?.uploadEndedAt ?? Number.NEGATIVE_INFINITY) + this.#timeout - this.#clock.now();
    if (remaining > 0) return this.#deadline.arm(remaining, this.#onTimeout);
    if (this.#attempt?.isResetBusy === true) return this.#deadline.arm(1, this.#onTimeout);
    // Without a connection: either none can be made, or all of ours are busy, which says nothing about the upstream.
    const isLate = this.#attempt?.sent === true || this.#attempt?.waitedForConnection === true;
    this.#attempt?.cancel();
    this.#call.onFailure({ reason: isLate ? 'timeout' : 'connect', sent: this.#attempt?.sent === true });
  };

  readonly #onIdle = (): void => {
    const { request, response } = this.#routed;
    if (response.writableFinished) return; // the client still uploads
    const mayGoOn = this.#mayIdle && !response.writableNeedDrain && !isPaused(request);
    if (mayGoOn) return this.#deadline.arm(this.#bodyIdleTimeout, this.#onIdle);
    this.#attempt?.cancel();
    this.#call.onBodyAborted('STREAM_IDLE');
  };
}
