import { Readable } from 'node:stream';
import type { HttpServerRequest } from '../server/server-request.ts';
import type { UploadTimeout } from './upload-timeout.ts';
import { markReleasable } from '../undici/buffer-release.ts';
import type { ClientStall } from '../response/client-stall.ts';

/**
 * A request body that is too long to be kept, read from the client as fast as the upstream takes it. It starts when it is first
 * read: an attempt that gets no connection leaves the source untouched.
 */
export class StreamingBody extends Readable {
  /** Bytes read from the source, without the prefix. */
  receivedBytes = 0;
  readonly #source: HttpServerRequest;
  readonly #length: number | undefined;
  /** What was read before the body turned out to be too long; emptied as it is sent. */
  readonly #prefix: Buffer[];
  readonly #onPrefixSent: () => void;
  readonly #timeout: UploadTimeout;
  readonly #stall: ClientStall | undefined;
  #isAttached = false;
  #hasStarted = false;

  /**
   * @param length bytes that the source announced, without the prefix; undefined if it announced none
   * @param onPrefixSent called when `prefix` is empty
   */
  constructor(
    source: HttpServerRequest,
    length: number | undefined,
    prefix: Buffer[],
    onPrefixSent: () => void,
    timeout: UploadTimeout,
    stall?: ClientStall,
  ) {
    // At most one chunk waits here; the others wait in the source, which joins small ones.
    super({ highWaterMark: 1 });
    this.#source = source;
    this.#length = length;
    this.#prefix = prefix;
    this.#onPrefixSent = onPrefixSent;
    this.#timeout = timeout;
    this.#stall = stall;
    // undici 8 removes its listener when the response ends first; the client may abort after that.
    this.on('error', () => undefined);
  }

  /**
   * All announced bytes have arrived. Over HTTP/2 the end of the stream may come later; an upstream over HTTP/1.1 does not wait
   * for it, so its client is not late, and the request may take effect.
   */
  get hasAllBytes(): boolean {
    return this.receivedBytes === this.#length;
  }

  /** Nothing can be sent because the client sends nothing: the client is slow, not the upstream. */
  get isWaitingForClient(): boolean {
    return this.#timeout.isWaiting;
  }

  /** Bytes have been read and are not kept: the body cannot be sent from its start again. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  override _read(): void {
    this.#hasStarted = true;
    for (let chunk = this.#prefix.shift(); chunk !== undefined; chunk = this.#prefix.shift()) {
      if (!this.push(chunk)) return;
    }
    this.#onPrefixSent();
    if (this.#source.readableEnded) return void this.push(null); // everything was read before this started
    if (!this.#isAttached) this.#attach();
    if (this.hasAllBytes) this.#onAllBytes();
    else {
      this.#timeout.startWaiting();
      this.#stall?.start();
    }
    this.#source.resume();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#timeout.close();
    this.#stall?.remove();
    // Not paused: if the response has ended, `endResponse` is reading and dropping the rest.
    this.#source.off('data', this.#onData);
    this.#source.off('end', this.#onEnd);
    this.#source.off('close', this.#onClose);
    done(error);
  }

  #attach(): void {
    this.#isAttached = true;
    this.#source.on('data', this.#onData);
    this.#source.on('end', this.#onEnd);
    this.#source.on('close', this.#onClose);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.receivedBytes += chunk.length;
    this.#timeout.onBytes(chunk.length);
    if (this.hasAllBytes) this.#onAllBytes();
    markReleasable(chunk, this.#source);
    if (this.push(chunk)) return;
    this.#timeout.stopWaiting(); // the client is not late while the upstream is slow
    this.#stall?.stop();
    this.#source.pause();
  };

  readonly #onEnd = (): void => {
    this.#onAllBytes();
    this.push(null);
  };

  #onAllBytes(): void {
    this.#timeout.end();
    this.#stall?.remove();
  }

  readonly #onClose = (): void => {
    if (!this.#source.readableEnded) this.destroy(new Error('the client aborted its upload'));
  };
}
