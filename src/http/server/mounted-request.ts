import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Inbound } from './server-request.ts';
import { hasBody, withoutQuery } from './server-request.ts';

/** What waits here; the rest waits in the message, and then with its client. */
const MOST_WAITING = 16 * 1024;

/**
 * A request of somebody else's server, whose body nobody has read. That message is left as it is: others look at it too.
 * Node has sent its 100 by now, where the client wanted one.
 */
export class MountedInbound extends Readable implements Inbound {
  readonly verb: string;
  target: string;
  expectsContinue = false;
  readonly httpVersion: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly hasBody: boolean;
  readonly socket: Inbound['socket'];
  readonly #message: IncomingMessage;
  #isAttached = false;

  /** @param target as the proxy is to see it */
  constructor(message: IncomingMessage, target: string) {
    super({ highWaterMark: MOST_WAITING });
    this.#message = message;
    this.verb = message.method ?? '';
    this.target = target;
    this.httpVersion = message.httpVersion;
    this.headers = message.headers;
    this.rawHeaders = message.rawHeaders;
    this.socket = message.socket;
    this.hasBody = hasBody(message.headers);
    // Its client may break off when nobody reads.
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
    if (!this.#message.readableEnded) this.destroy(new Error('the client broke off'));
  };
}
