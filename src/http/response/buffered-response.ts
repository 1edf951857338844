import { EventEmitter } from 'node:events';
import { MAX_ACKNOWLEDGEMENT_BYTES } from '../../core/delivery/acknowledgement.ts';
import type { HttpServerResponse } from '../server/server-response.ts';

/** Keeps a response in memory: that of a delivery, which has no client, or of a check whose answer has another form. */
export class BufferedResponse extends EventEmitter implements HttpServerResponse {
  statusCode = 200;
  headersSent = false;
  destroyed = false;
  writableFinished = false;
  readonly writableNeedDrain = false;
  /** Names and values in turn. */
  headers: readonly string[] = [];
  readonly #maxBody: number;
  #chunks: Buffer[] = [];
  #length = 0;

  /** @param maxBody the bytes of a body that are needed: a longer one is not kept */
  constructor(maxBody: number = MAX_ACKNOWLEDGEMENT_BYTES) {
    super();
    this.#maxBody = maxBody;
  }

  /** Undefined if it is incomplete, or longer than what is needed. */
  get body(): Buffer | undefined {
    return this.writableFinished && this.#length <= this.#maxBody ? Buffer.concat(this.#chunks) : undefined;
  }

  writeContinue(): void {}

  writeHead(status: number, _reasonPhrase = '', headers: readonly string[] = []): void {
    this.statusCode = status;
    this.headers = headers;
    this.headersSent = true;
  }

  write(chunk: Buffer | string): boolean {
    const bytes = Buffer.from(chunk); // a copy: the memory of the chunk is used again
    this.headersSent = true;
    this.#length += bytes.length;
    if (this.#length <= this.#maxBody) this.#chunks.push(bytes);
    else this.#chunks = [];
    return true;
  }

  addTrailers(): void {}

  end(lastChunk?: Buffer): void {
    if (this.destroyed) return;
    if (lastChunk !== undefined) this.write(lastChunk);
    this.headersSent = true;
    this.writableFinished = true;
    this.#close();
  }

  destroy(): void {
    if (!this.destroyed) this.#close();
  }

  #close(): void {
    this.destroyed = true;
    setImmediate(() => this.emit('close'));
  }
}
