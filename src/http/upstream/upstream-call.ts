import type { Duplex } from 'node:stream';
import { Readable } from 'node:stream';
import { readHints } from '../../core/hints/read-hints.ts';
import type { CutReason } from '../../core/events/proxy-events.ts';
import type { Hints, Millis, Outcome } from '../../core/exchange/attempt-outcome.ts';
import { isSafeMethod } from '../../core/exchange/attempt-outcome.ts';
import type { SendStep } from '../../core/exchange/steps.ts';
import { readCodes } from './error-codes.ts';
import { watchReading } from '../response/response-read-rate.ts';
import type { Arrival } from '../request/routed-request.ts';
import type { AttemptOwner } from './upstream-attempt.ts';
import { Attempt } from './upstream-attempt.ts';
import type { RequestBody } from '../request/request-body.ts';
import { pollPolicyOf } from '../response/client-polling.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import { Deadline } from '../request/deadline.ts';
import type { Endpoint } from './endpoints.ts';
import type { Failure } from './send-failure.ts';
import { ENDPOINT_REMOVED } from './send-failure.ts';
import { besideHead } from '../headers/forward-headers.ts';
import { isUnread } from '../server/server-request.ts';
import { Peek } from './body-preview.ts';
import { firstValue, marksIn } from '../headers/raw-headers.ts';
import type { Head } from '../response/client-response.ts';
import { SendHeaders } from './upstream-headers.ts';
import type { Sender } from './upstream-call-owner.ts';
import { asksToComeBack, withImpliedWait } from '../headers/retry-after-header.ts';
import { writeInformation } from '../server/write-response.ts';
import { rewriteTarget, upstreamPath } from '../request/router.ts';
import { Trip } from './endpoint-selector.ts';
import { WEBSOCKET } from '../server/upgrade.ts';

/** Interim answers of a request, of all its attempts. Who says more says nothing that has to be heard (RFC 9110 §15.2). */
const MAX_INFORMATION = 32;

export interface SendOrder extends Pick<SendStep, 'timeout' | 'startBy'> {
  /** Undefined when the request has none. */
  readonly body: RequestBody | undefined;
  /** Whether the request, by its nature, may be sent again whatever this comes to. */
  readonly isRepeatable: boolean;
  /** The only endpoint that it may go to; undefined: any. */
  readonly pinnedTo: string | undefined;
}

/** The sends of one exchange, one after another: what goes to the upstream, how long it may take, what comes back. */
export class Sends implements AttemptOwner {
  readonly #context: ExchangeContext;
  readonly #arrival: Arrival;
  readonly #sender: Sender;
  readonly #trip: Trip;
  readonly #headers: SendHeaders;
  #body: RequestBody | undefined;
  #attempt: Attempt | undefined;
  #count = 0;
  #sentAt: Millis = 0;
  #timeout: Millis = 0;
  #startBy: Millis = Number.POSITIVE_INFINITY;
  /** The endpoint that the last send reached. */
  #reached: string | undefined;
  #held: Head | undefined;
  #failure: Failure | undefined;
  /** Interim answers that may still be passed on; none is kept for a client that does not take them. */
  #informationLeft = MAX_INFORMATION;
  #idle: Millis = 0;
  #mayPause = false;
  /** Of a head, then of the next piece of its body. */
  readonly #deadline: Deadline;
  /** Of an upload; made where there is one whose key may be forgotten before it ends. */
  #uploadBy: Deadline | undefined;

  constructor(context: ExchangeContext, arrival: Arrival, sender: Sender) {
    this.#trip = new Trip(arrival.route.target.endpoints, arrival.isPreflight !== true);
    this.#context = context;
    this.#arrival = arrival;
    this.#sender = sender;
    this.#headers = new SendHeaders(context, arrival, sender);
    this.#deadline = new Deadline(context.clock);
  }

  /** How many there were. */
  get count(): number {
    return this.#count;
  }

  /** Of the last one, if it failed. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** Where the last one goes; undefined before the first. */
  get endpoint(): Endpoint | undefined {
    return this.#count === 0 ? undefined : this.#trip.endpoint;
  }

  /** As metrics call it; undefined before one was reached. */
  get reached(): string | undefined {
    return this.#reached;
  }

  begin({ timeout, startBy, body, isRepeatable, pinnedTo }: SendOrder): void {
    const { request, route, upgrade } = this.#arrival;
    this.#count += 1;
    this.#startBy = startBy;
    this.#body = body;
    this.#sentAt = this.#context.clock.now();
    const payload = body?.payload() ?? null;
    this.#attempt = new Attempt(this, payload, this.#sentAt);
    this.#timeout = timeout;
    this.#deadline.arm(timeout, this.#onTimeout);
    if (payload instanceof Readable && startBy < Number.POSITIVE_INFINITY) {
      this.#uploadBy ??= new Deadline(this.#context.clock);
      this.#uploadBy.arm(Math.max(0, startBy - this.#sentAt), this.#onUploadLate);
    }
    const mayTry = isRepeatable && !(payload instanceof Readable);
    const endpoint = this.#trip.choose(mayTry, this.#sentAt, pinnedTo);
    if (endpoint === undefined) return this.onFailure({ reason: 'connect', sent: false, cause: ENDPOINT_REMOVED });
    this.#context.gate.begin(route.target.name, this.#holder);
    this.#sender.onSending(endpoint.label);
    this.#trip.send(
      {
        method: request.verb,
        path: rewriteTarget(request.target, route),
        headers: this.#headers.for(endpoint.authority),
        body: payload,
        upgrade: upgrade === undefined ? null : WEBSOCKET,
      },
      this.#attempt,
    );
  }

  /** Nothing more is wanted of the last one. @returns whether the upstream has the request, or a part of it */
  cancel(): boolean {
    const sent = this.#attempt?.sent === true;
    if (sent) this.#reached = this.#trip.endpoint.label;
    this.#disarm();
    this.#attempt?.cancel();
    this.#trip.abandon();
    return sent;
  }

  /** The head in hand, once; undefined when there is none. */
  takeHead(): Head | undefined {
    const head = this.#held;
    this.#held = undefined;
    return head;
  }

  /** The response in hand is not forwarded. */
  discard(): void {
    this.#held = undefined;
    this.#attempt?.discard();
  }

  /** Nothing more comes of the last one. */
  get isOver(): boolean {
    return this.#attempt?.isOver !== false;
  }

  /**
   * Forwards the body to come; the head has been written.
   * @param idle how long it may pause, and how long its client may not read it
   * @param mayPause its upstream may pause for as long as it likes, while its client would be seen to leave
   */
  forward(idle: Millis, mayPause: boolean): void {
    this.#idle = idle;
    this.#mayPause = mayPause;
    const reading = watchReading(this.#context, this.#arrival, this.#holder, this.#onUnreadAnswer);
    this.#attempt?.forward(this.#arrival.response, reading);
    this.#deadline.arm(idle, this.#onIdle);
  }

  /** The client has all of it, or has gone. */
  close(): void {
    this.#deadline.close();
    this.#uploadBy?.close();
  }

  /** The connection on which the upstream has changed to another protocol, once; undefined when it has not. */
  takeSwitched(): Duplex | undefined {
    return this.#attempt?.takeSwitched();
  }

  // — AttemptOwner: what becomes of a send —

  mayStart(): boolean {
    return this.#context.clock.now() <= this.#startBy;
  }

  onInformation(status: number, headers: string[]): void {
    if (this.#informationLeft === 0) return;
    const takesMore = writeInformation(this.#arrival.response, status, besideHead(headers));
    this.#informationLeft = takesMore ? this.#informationLeft - 1 : 0;
  }

  onHead(status: number, reasonPhrase: string, headers: string[]): void {
    this.#held = { status, reasonPhrase, headers, version: this.#attempt?.answerVersion ?? '1.1' };
    this.#failure = undefined;
    // What is not ready says when to ask again, whatever its status: as a 202 does.
    const isNotReady = pollPolicyOf(this.#arrival)?.notReady.has(status) === true;
    const hints = readHints(isNotReady ? 202 : status, headers, Date.now());
    if (this.#arrival.route.target.throttle?.concerns(status, hints) === true) return this.#judge(this.#held, hints);
    this.#settle(status, hints, this.#took());
  }

  onFailure(failure: Failure): void {
    this.#disarm();
    this.#failure = failure;
    const { reason, sent } = failure;
    if (sent) this.#reached = this.#trip.endpoint.label;
    const bodySpent = this.#body?.isSpent === true;
    this.#sender.onOutcome(this.#trip.settle({ kind: 'error', reason, sent, bodySpent, took: this.#took() }));
  }

  onUnsendable(detail: string): void {
    this.#deadline.disarm();
    this.#trip.abandon();
    this.#sender.onUnsendable(detail);
  }

  /** What moves is not hung: its time counts from the last byte of the upload, a stream's from its last byte. */
  onProgress(): void {
    this.#deadline.extend();
  }

  onEnd(rest: Buffer | undefined): void {
    this.#mayPause = false;
    this.#sender.onEnd(rest);
    this.#deadline.arm(this.#idle, this.#onIdle); // what is left of it is for the client to read
  }

  onBroken(why?: CutReason): void {
    this.#deadline.disarm();
    this.#mayPause = false;
    this.#sender.onBroken(why);
  }

  onOver(attempt: Attempt): void {
    const took = this.#context.clock.now() - attempt.begunAt;
    this.#context.gate.over(this.#arrival.route.target.name, this.#holder, took);
    this.#trip.over(attempt);
  }

  /** Reads an answer that `throttle` has rules for: by its status and headers, and by its body only where these cannot tell. */
  #judge({ status, headers }: Head, hints: Hints): void {
    const { request, route } = this.#arrival;
    const { throttle } = route.target;
    const path = upstreamPath(request.target, route);
    const took = this.#took();
    const read = (codes?: readonly string[]) =>
      throttle?.read({ method: request.verb, path, status, headers }, hints, codes, Date.now());
    const told = read();
    if (told !== undefined || throttle === undefined) return this.#settle(status, told ?? hints, took);
    const peek = new Peek((body, isWhole) => {
      const coding = firstValue(headers, 'content-encoding') ?? '';
      const codes = isWhole ? readCodes(body, coding, throttle.codeFields) : [];
      this.#settle(status, read(codes) ?? hints, took);
    });
    this.#attempt?.peek(peek);
  }

  #settle(status: number, hints: Hints, took: Millis): void {
    this.#disarm();
    this.#reached = this.#trip.endpoint.label;
    const { replayedHeader } = this.#arrival.route.target.idempotency;
    const headers = this.#held?.headers ?? [];
    const marks = isSafeMethod(this.#arrival.request.verb) ? undefined : marksIn(headers, replayedHeader);
    const outcome: Outcome = { kind: 'response', status, hints, took, ...marks };
    const told = asksToComeBack(status) ? withImpliedWait(outcome, headers, Date.now()) : outcome;
    this.#sender.onOutcome(this.#trip.settle(told));
  }

  #disarm(): void {
    this.#deadline.disarm();
    this.#uploadBy?.disarm();
  }

  /** The upstream has forgotten its key: what is left of the body would be no repeat any more. */
  readonly #onUploadLate = (): void => {
    if (this.#body?.isUnread !== true) return;
    const sent = this.#attempt?.sent === true;
    this.#attempt?.cancel();
    this.onFailure({ reason: 'timeout', sent, cause: 'KEY_EXPIRED' });
  };

  readonly #onTimeout = (): void => {
    if (this.#attempt?.endPeek() === true) return; // the head has come in time: that is the answer
    // What its client owes is no time of the upstream's: the body's own idle limit ends that.
    if (this.#body?.awaitsClient === true) return this.#deadline.arm(this.#timeout, this.#onTimeout);
    const sent = this.#attempt?.sent === true;
    this.#attempt?.cancel();
    // Without a connection in time: either none can be made, or all of ours are busy, which says nothing of the upstream.
    this.onFailure({ reason: sent || this.#trip.hadToWait ? 'timeout' : 'connect', sent });
  };

  readonly #onIdle = (): void => {
    const { request, response } = this.#arrival;
    const mayGoOn = this.#mayPause && !response.writableNeedDrain && !isUnread(request);
    if (mayGoOn) return this.#deadline.arm(this.#idle, this.#onIdle);
    this.#attempt?.cancel();
    this.onBroken();
  };

  /** Its client does not read it. */
  readonly #onUnreadAnswer = (why: CutReason): void => {
    this.#attempt?.cancel();
    this.onBroken(why);
  };

  /** Whose connection it is: its client's, or of all the keys of its address. */
  get #holder(): string {
    const { nest, hash } = this.#arrival.client;
    return nest ?? hash;
  }

  #took(): Millis {
    return this.#context.clock.now() - this.#sentAt;
  }
}
