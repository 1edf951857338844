import type { Duplex } from 'node:stream';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { AnswerReading } from '../response/response-read-rate.ts';
import type { Payload } from '../request/request-body.ts';
import type { Failure } from './send-failure.ts';
import { isClose, isUnsendable, LateError, readFailure } from './send-failure.ts';
import { FlawedAnswer, flawOfHead } from './response-defect.ts';
import { forwardPiece } from '../undici/buffer-release.ts';
import { besideHead } from '../headers/forward-headers.ts';
import type { AnswerVersion } from '../undici/parser-patches.ts';
import type { Outbound } from '../server/server-response.ts';
import type { Peek } from './body-preview.ts';

/** Of a response that will not be forwarded, this much is read to keep its connection; beyond it a new one is cheaper. */
const WORTH_DRAINING = 256 * 1024;
const DRAIN_TIME = 500;

/** Written, it sends the head: `flushHeaders` of Node 24.21 makes UTF-8 of its latin1 (nodejs/node#1693). */
const NOTHING = Buffer.alloc(0);

/** Who wants to know what became of an attempt. */
export interface AttemptOwner {
  /** Asked when there is a connection, before anything is written to it. */
  mayStart(): boolean;
  /** An answer on the way to the final one, 102 to 199 (RFC 9110 §15.2). */
  onInformation(status: number, rawHeaders: string[]): void;
  /** The head has come. Before this returns, the attempt is told to `forward`, to `discard`, or to `peek`, and one of the two later. */
  onHead(status: number, reasonPhrase: string, rawHeaders: string[]): void;
  /** No head will come. */
  onFailure(failure: Failure): void;
  /** The HTTP client refuses to write this request: a fault of the request, and no word on the upstream. */
  onUnsendable(detail: string): void;
  /** Bytes of the request went out, of the response came in, or its client takes more of it again. */
  onProgress(): void;
  /** The forwarded body has come to its end. @param rest of it that is still to be written: all, where it came with its head */
  onEnd(rest: Buffer | undefined): void;
  /** The upstream cut the forwarded body short. */
  onBroken(): void;
  /** This attempt holds no connection any more, and wants none. Once; the next may be under way. */
  onOver(attempt: Attempt): void;
}

type State = 'open' | 'peeking' | 'forwarding' | 'discarding' | 'over';

/**
 * One send, as undici's handler. Whether the response is forwarded or retried is decided in `onResponseStart`, before
 * anything of it has been written to the client; then its body flows, with backpressure, or is drained.
 */
export class Attempt implements Dispatcher.DispatchHandler {
  /** Of its answer, once the head has come. */
  answerVersion: AnswerVersion = '1.1';
  readonly begunAt: Millis;
  readonly #owner: AttemptOwner;
  readonly #payload: Payload;
  #controller: Dispatcher.DispatchController | undefined;
  #state: State = 'open';
  #response: Outbound | undefined;
  #reading: AnswerReading | undefined;
  /** Bytes that have been written since its client had read all. */
  #unread = 0;
  #answerBegan = false;
  #isComplete = false;
  #isUnanswered = false;
  /** Something has been written. */
  #isBegun = false;
  /** The first piece of the body, while more may come in this very turn. */
  #first: Buffer | undefined;
  #isPaused = false;
  #peek: Peek | undefined;
  #drained = 0;
  #drainTimer: NodeJS.Timeout | undefined;
  #switched: Duplex | undefined;

  /** @param payload what is sent as body @param begunAt on the clock of its owner */
  constructor(owner: AttemptOwner, payload: Payload, begunAt: Millis = 0) {
    this.begunAt = begunAt;
    this.#owner = owner;
    this.#payload = payload;
  }

  /** True once bytes of the request may have reached the upstream. */
  get sent(): boolean {
    return this.#controller !== undefined;
  }

  /** The whole answer has come: its connection is good for another. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** The connection was closed before any byte of an answer. */
  get isUnanswered(): boolean {
    return this.#isUnanswered;
  }

  /** The connection on which the upstream has changed to another protocol: from then on it is whoever's takes it. */
  takeSwitched(): Duplex | undefined {
    const socket = this.#switched;
    this.#switched = undefined;
    return socket;
  }

  /** Nothing more comes of it. */
  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** Forwards the body to come. The head has been written. @param reading how its client reads it */
  forward(response: Outbound, reading?: AnswerReading): void {
    this.#state = 'forwarding';
    this.#response = response;
    this.#reading = reading;
    // Node keeps a head until the body begins, which may be far off. Mostly all of it comes in this very turn: then both are one
    // write, and one packet.
    process.nextTick(this.#begin);
  }

  /** Holds the body to come back, until the one who looks has seen enough of it or `endPeek` says so. */
  peek(peek: Peek): void {
    this.#state = 'peeking';
    this.#peek = peek;
  }

  /**
   * What has come of the body has to do: who looks is told, and says what becomes of it.
   * @param isWhole nothing more comes
   * @returns false: nobody was looking
   */
  endPeek(isWhole = false): boolean {
    const peek = this.#peek;
    this.#peek = undefined;
    if (peek === undefined || this.#state !== 'peeking') return false;
    this.#state = 'open';
    const held = peek.end(isWhole);
    if (this.#response === undefined) return true;
    if (held.length > 0) this.#first = held;
    if (this.#controller && this.#response.writableNeedDrain) this.#pause(this.#controller, this.#response);
    return true;
  }

  /** Drains the body to come, so that the connection serves the retry; a long or slow one is cut instead. */
  discard(): void {
    this.#state = 'discarding';
    this.#drainTimer = setTimeout(() => this.#controller?.abort(new Error('discarded')), DRAIN_TIME).unref();
  }

  /**
   * Nothing more is wanted of it. One that has no connection yet stays with undici until there is one, and reads its body
   * then, before it asks (8.13.1, writeH1): so it is parted from the body now, which the next attempt may be sending.
   */
  cancel(): void {
    if (this.#state === 'over') return;
    this.#end();
    if (this.#isComplete) return;
    if (this.#controller !== undefined) this.#controller.abort(new Error('cancelled'));
    else if (this.#payload instanceof Readable) this.#payload.destroy();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // undici 8.13.1 closes the connection of what is aborted here, and keeps that of what throws.
    if (this.#state === 'over') throw new Error('cancelled');
    if (!this.#owner.mayStart()) throw new LateError();
    this.#controller = controller;
  }

  /** Nothing of it was read, and another connection gets it: that is no retry. */
  onUnread(): void {
    this.#controller = undefined;
  }

  onBodySent(): void {
    if (this.#state === 'open') this.#owner.onProgress();
  }

  onResponseStarted(): void {
    this.#answerBegan = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _: unknown, reasonPhrase = ''): void {
    if (this.#state !== 'open' || status === 100) return; // over HTTP/1.1, parser-patches.ts skips it
    const headers = decode(controller.rawHeaders);
    const flaw = flawOfHead(status, headers);
    if (flaw !== undefined) return controller.abort(new FlawedAnswer(flaw));
    if (status < 200) return this.#owner.onInformation(status, headers);
    this.#owner.onHead(status, reasonPhrase, headers);
    if (this.#response?.writableNeedDrain === true) this.#pause(controller, this.#response);
  }

  /** The upstream has agreed to change to another protocol; its connection is no longer undici's. */
  onRequestUpgrade(controller: Dispatcher.DispatchController, status: number, _: unknown, socket: Duplex): void {
    socket.on('error', () => undefined);
    this.#switched = socket;
    if (this.#state === 'open') this.#owner.onHead(status, '', decode(controller.rawHeaders));
    this.takeSwitched()?.destroy(); // nobody wants it
    this.#end();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#state === 'discarding') {
      this.#drained += chunk.length;
      if (this.#drained > WORTH_DRAINING) controller.abort(new Error('discarded'));
      return;
    }
    if (this.#state === 'peeking' && this.#peek?.take(chunk) === true) return void this.endPeek();
    if (this.#state !== 'forwarding') return;
    this.#owner.onProgress();
    if (!this.#isBegun && this.#first === undefined) {
      this.#first = chunk;
      return;
    }
    this.#begin();
    this.#write(chunk);
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#isComplete = true;
    this.endPeek(true);
    const state = this.#state;
    const response = this.#response;
    this.#end();
    if (state !== 'forwarding' || response === undefined) return;
    const trailers = decode(controller.rawTrailers);
    if (trailers.length > 0) response.addTrailers(pairs(besideHead(trailers)));
    const rest = this.#first;
    this.#first = undefined;
    this.#owner.onEnd(rest);
  }

  onResponseError(_: unknown, error: Error): void {
    this.endPeek(); // cut while somebody looks, it is forwarded as it came, cut
    const state = this.#state;
    const { sent } = this;
    this.#isUnanswered = sent && !this.#answerBegan && isClose(error);
    this.#end();
    if (state === 'open' && isUnsendable(error)) return this.#owner.onUnsendable(error.message);
    if (state === 'open') this.#owner.onFailure(readFailure(error, sent));
    if (state !== 'forwarding') return;
    // It may break in the very turn in which its head came. What is told of as an answer has gone out before it is cut: Node
    // holds what is written back until this turn is over.
    if (!this.#isBegun) this.#response?.write(this.#first ?? NOTHING);
    setImmediate(() => this.#owner.onBroken());
  }

  /** Writes the head, and what is here of the body, unless that was done or all of it has been handed on. */
  readonly #begin = (): void => {
    if (this.#isBegun || this.#state !== 'forwarding') return;
    this.#isBegun = true;
    const first = this.#first ?? NOTHING;
    this.#first = undefined;
    this.#write(first);
  };

  #write(chunk: Buffer): void {
    const response = this.#response;
    this.#unread += chunk.length;
    if (response === undefined || forwardPiece(response, chunk) || this.#controller === undefined) return;
    this.#pause(this.#controller, response);
  }

  #pause(controller: Dispatcher.DispatchController, response: Outbound): void {
    controller.pause();
    if (this.#isPaused) return; // undici 8.13.1 hands over the rest all the same when the upstream has closed
    this.#isPaused = true;
    this.#owner.onProgress();
    this.#reading?.stall();
    response.once('drain', () => {
      this.#isPaused = false;
      this.#owner.onProgress();
      this.#reading?.resume(this.#unread);
      this.#unread = 0;
      controller.resume();
    });
  }

  #end(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#reading?.end();
    clearTimeout(this.#drainTimer);
    this.#owner.onOver(this);
  }
}

/** Raw headers as undici hands them over: latin1, so that every byte survives. Over HTTP/2 they are text already. */
function decode(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  if (!Array.isArray(raw)) return [];
  return raw.map((item: Buffer | string) => (typeof item === 'string' ? item : item.toString('latin1')));
}

function pairs(flat: readonly string[]): [string, string][] {
  const out: [string, string][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) out.push([flat[i] ?? '', flat[i + 1] ?? '']);
  return out;
}
