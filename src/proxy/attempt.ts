import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { ErrorReason } from '../policy/types.ts';
import type { Payload } from './body.ts';
import type { Flaw } from './flaw.ts';
import { FlawedAnswer, flawOf, flawOfHead } from './flaw.ts';
import { trailerFields } from './headers.ts';

/** Of a response that will not be forwarded, this much is read to keep its connection; beyond it a new one is cheaper. */
const WORTH_DRAINING = 256 * 1024;
const DRAIN_TIME = 500;

/** Written, it sends the head: `flushHeaders` of Node 24.21 makes UTF-8 of its latin1 (nodejs/node#1693). */
const NOTHING = Buffer.alloc(0);

/** Who wants to know what became of an attempt. */
export interface AttemptOwner {
  /** An answer on the way to the final one, 102 to 199 (RFC 9110 §15.2). */
  onInformation(status: number, rawHeaders: string[]): void;
  /** The head has come. Before this returns, the attempt is told to `forward` or to `discard`. */
  onHead(status: number, reasonPhrase: string, rawHeaders: string[]): void;
  /** No head will come. `sent`: bytes of the request may have reached the upstream. */
  onFailure(reason: ErrorReason, sent: boolean, flaw: Flaw | undefined): void;
  /** The HTTP client refuses to write this request: a fault of the request, and no word on the upstream. */
  onUnsendable(detail: string): void;
  /** Bytes of the request went out, of the response came in, or its client takes more of it again. */
  onProgress(): void;
  /** The client takes no more of the response for now. */
  onStall(): void;
  /** The forwarded body has been written; `broken` when the upstream cut it short. */
  onEnd(broken: boolean): void;
  /** This attempt holds no connection any more, and wants none. Once; the next may be under way. */
  onOver(attempt: Attempt): void;
}

type State = 'open' | 'forwarding' | 'discarding' | 'over';

/**
 * One send, as undici's handler. Whether the response is forwarded or retried is decided in `onResponseStart`, before
 * anything of it has been written to the client; then its body flows, with backpressure, or is drained.
 */
export class Attempt implements Dispatcher.DispatchHandler {
  readonly #owner: AttemptOwner;
  readonly #payload: Payload;
  #controller: Dispatcher.DispatchController | undefined;
  #state: State = 'open';
  #response: ServerResponse | undefined;
  #answerBegan = false;
  #isComplete = false;
  #isUnanswered = false;
  #bodyBegan = false;
  #isPaused = false;
  #drained = 0;
  #drainTimer: NodeJS.Timeout | undefined;

  /** @param payload what is sent as body */
  constructor(owner: AttemptOwner, payload: Payload) {
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

  /** Nothing more comes of it. */
  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** Forwards the body to come. The head has been written. */
  forward(response: ServerResponse): void {
    this.#state = 'forwarding';
    this.#response = response;
    // Node keeps a head until the body begins, which may be far off. Mostly it comes in this very turn: then both are one packet.
    process.nextTick(this.#flushHead);
  }

  /** Drains the body to come, so that the connection serves the retry; a long or slow one is cut instead. */
  discard(): void {
    this.#state = 'discarding';
    this.#drainTimer = setTimeout(() => this.#controller?.abort(new Error('discarded')), DRAIN_TIME).unref();
  }

  /**
   * Nothing more is wanted of it. One that has no connection yet stays with undici until there is one, and reads its body
   * then, before it asks (8.12.4, writeH1): so it is parted from the body now, which the next attempt may be sending.
   */
  cancel(): void {
    if (this.#state === 'over') return;
    this.#end();
    if (this.#controller !== undefined) this.#controller.abort(new Error('cancelled'));
    else if (this.#payload instanceof Readable) this.#payload.destroy();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // undici 8.12.4 closes the connection of what is aborted here, and keeps that of what throws.
    if (this.#state === 'over') throw new Error('cancelled');
    this.#controller = controller;
  }

  onBodySent(): void {
    if (this.#state === 'open') this.#owner.onProgress();
  }

  onResponseStarted(): void {
    this.#answerBegan = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _: unknown, reasonPhrase = ''): void {
    if (this.#state !== 'open') return;
    const headers = decode(controller.rawHeaders);
    const flaw = flawOfHead(status, headers);
    if (flaw !== undefined) return controller.abort(new FlawedAnswer(flaw));
    if (status < 200) return this.#owner.onInformation(status, headers);
    this.#owner.onHead(status, reasonPhrase, headers);
    if (this.#response?.writableNeedDrain === true) this.#pause(controller, this.#response);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#state === 'discarding') {
      this.#drained += chunk.length;
      if (this.#drained > WORTH_DRAINING) controller.abort(new Error('discarded'));
      return;
    }
    if (this.#state !== 'forwarding' || this.#response === undefined) return;
    this.#bodyBegan = true;
    this.#owner.onProgress();
    if (!this.#response.write(chunk)) this.#pause(controller, this.#response);
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    const state = this.#state;
    const response = this.#response;
    this.#isComplete = true;
    this.#end();
    if (state !== 'forwarding' || response === undefined) return;
    const trailers = decode(controller.rawTrailers);
    if (trailers.length > 0) response.addTrailers(pairs(trailerFields(trailers)));
    this.#owner.onEnd(false);
  }

  onResponseError(_: unknown, error: Error): void {
    const state = this.#state;
    const { sent } = this;
    this.#isUnanswered = sent && !this.#answerBegan && isClose(error);
    this.#end();
    if (state === 'open' && isUnsendable(error)) return this.#owner.onUnsendable(error.message);
    if (state === 'open') this.#owner.onFailure(reasonOf(error, sent), sent, flawOf(error));
    if (state === 'forwarding') this.#owner.onEnd(true);
  }

  readonly #flushHead = (): void => {
    if (this.#state === 'forwarding' && !this.#bodyBegan) this.#response?.write(NOTHING);
  };

  #pause(controller: Dispatcher.DispatchController, response: ServerResponse): void {
    controller.pause();
    if (this.#isPaused) return; // undici 8.12.4 hands over the rest all the same when the upstream has closed
    this.#isPaused = true;
    this.#owner.onStall();
    response.once('drain', () => {
      this.#isPaused = false;
      this.#owner.onProgress();
      controller.resume();
    });
  }

  #end(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    clearTimeout(this.#drainTimer);
    this.#owner.onOver(this);
  }
}

function isUnsendable(error: Error): boolean {
  const code = 'code' in error ? error.code : undefined;
  return code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED';
}

/** Without a connection nothing was sent, whatever it was that failed: lookup, connect or TLS handshake. */
function reasonOf(error: Error, sent: boolean): ErrorReason {
  if (!sent) return 'connect';
  const code = 'code' in error ? error.code : undefined;
  return code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT' ? 'timeout' : 'reset';
}

/** The other side has closed the connection, or is not there any more. */
function isClose(error: Error): boolean {
  const code = 'code' in error ? error.code : undefined;
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'ECONNABORTED' || code === 'EPIPE';
}

/** Raw headers as undici hands them over: latin1, so that every byte survives. */
function decode(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  if (!Array.isArray(raw)) return [];
  return raw.map((item: Buffer | string) => (typeof item === 'string' ? item : item.toString('latin1')));
}

function pairs(flat: readonly string[]): [string, string][] {
  const out: [string, string][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) out.push([flat[i] ?? '', flat[i + 1] ?? '']);
  return out;
}
