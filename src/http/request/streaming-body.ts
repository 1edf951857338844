import { Readable } from 'node:stream';
import type { Inbound } from '../server/server-request.ts';
import type { Patience } from './upload-timeout.ts';
import { letGoOf } from '../undici/buffer-release.ts';
import type { Stall } from '../response/client-stall.ts';

/**
 * A body too long to be kept, read from its client as fast as the upstream takes it. It begins when it is first read:
 * an attempt that gets no connection leaves the source untouched.
 */
export class Upload extends Readable {
  readonly #source: Inbound;
  /** What had been read before it was known to be too long; taken from as it goes. */
  readonly #begun: Buffer[];
  readonly #onBegun: () => void;
  readonly #patience: Patience;
  readonly #stall: Stall | undefined;
  #isAttached = false;
  #isBegun = false;

  /** @param onBegun called when nothing is left of what had been read */
  constructor(source: Inbound, begun: Buffer[], onBegun: () => void, patience: Patience, stall?: Stall) {
    // One piece waits here at most: the others wait in the source, which gathers crumbs.
    super({ highWaterMark: 1 });
    this.#source = source;
    this.#begun = begun;
    this.#onBegun = onBegun;
    this.#patience = patience;
    this.#stall = stall;
    // undici 8 takes its listener off when the response has ended first; the client may break off after that.
    this.on('error', () => undefined);
  }

  /** Nothing can be sent on because the client sends nothing: its slowness, not the upstream's. */
  get awaitsClient(): boolean {
    return this.#patience.isWaiting;
  }

  /** Bytes have been taken that nobody keeps. */
  get isBegun(): boolean {
    return this.#isBegun;
  }

  override _read(): void {
    this.#isBegun = true;
    for (let chunk = this.#begun.shift(); chunk !== undefined; chunk = this.#begun.shift()) {
      if (!this.push(chunk)) return;
    }
    this.#onBegun();
    if (this.#source.readableEnded) return void this.push(null); // all had come, and was read, before this began
    if (!this.#isAttached) this.#attach();
    this.#patience.wait();
    this.#stall?.wait();
    this.#source.resume();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#patience.close();
    this.#stall?.end();
    // Not paused: if the upstream has answered already, the rest is being let go (`endAnswer`).
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
    this.#patience.receive(chunk.length);
    letGoOf(chunk, this.#source);
    if (this.push(chunk)) return;
    this.#patience.rest(); // a slow upstream is not the client's fault
    this.#stall?.rest();
    this.#source.pause();
  };

  readonly #onEnd = (): void => {
    this.#patience.close();
    this.#stall?.end();
    this.push(null);
  };

  readonly #onClose = (): void => {
    if (!this.#source.readableEnded) this.destroy(new Error('the client broke off'));
  };
}
