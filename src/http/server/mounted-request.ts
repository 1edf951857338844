import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Millis } from '../../core/scalars.ts';
import type { BodyListener, HttpServerRequest } from './server-request.ts';
import { hasBody, takeBuffered, withoutQuery } from './server-request.ts';

/** Bytes buffered here; the rest waits in the message, then at the client. */
const MAX_BUFFERED = 16 * 1024;

/**
 * A request of the host program's server, whose body has not been read. The message itself is not changed, because the program
 * uses it too. Node has sent `100 Continue` already if the client expected it.
 */
export class MountedRequest extends Readable implements HttpServerRequest {
  readonly verb: string;
  target: string;
  expectsContinue = false;
  readonly httpVersion: string;
  headers: IncomingHttpHeaders;
  rawHeaders: readonly string[];
  readonly hasBody: boolean;
  readonly socket: HttpServerRequest['socket'];
  readonly handoverDelay: Millis;
  bodyListener: BodyListener | undefined;
  readonly #message: IncomingMessage;
  #isAttached = false;

  /** @param target without the mount prefix @param handoverDelay see `HttpServerRequest` */
  constructor(message: IncomingMessage, target: string, handoverDelay: Millis) {
    super({ highWaterMark: MAX_BUFFERED });
    this.#message = message;
    this.verb = message.method ?? '';
    this.target = target;
    this.handoverDelay = handoverDelay;
    this.httpVersion = message.httpVersion;
    this.headers = message.headers;
    this.rawHeaders = message.rawHeaders;
    this.socket = message.socket;
    this.hasBody = hasBody(message.headers);
    // The client may abort while nothing reads the body.
    this.on('error', () => undefined);
    if (this.hasBody) message.on('close', this.#onClose);
    else this.push(null);
  }

  get complete(): boolean {
    return !this.hasBody || this.#message.complete;
  }

  get path(): string {
    return withoutQuery(this.target);
  }

  /** From the message: this stream would have it only in a later turn of the event loop. */
  takeArrivedBody(): Buffer | undefined {
    return this.complete && !this.#isAttached ? takeBuffered(this.#message) : undefined;
  }

  override _read(): void {
    if (!this.hasBody) return;
    if (!this.#isAttached) {
      this.#isAttached = true;
      this.#message.on('data', this.#onData);
      this.#message.on('end', this.#onEnd);
    }
    this.#message.resume();
  }

  readonly #onData = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.#message.pause();
  };

  readonly #onEnd = (): void => {
    this.push(null);
  };

  readonly #onClose = (): void => {
    if (!this.#message.readableEnded) this.destroy(new Error('the client aborted its upload'));
  };
}
