import { MAX_PREVIEW_BYTES } from './error-codes.ts';

/** Beyond this many, chunks are joined: a body may arrive byte by byte, and each chunk costs more than its byte. */
const MAX_CHUNKS = 64;

/** The beginning of a response body, held back until the response is classified. */
export class BodyPreview {
  readonly #onEnd: (body: Buffer, isWhole: boolean) => void;
  #chunks: Buffer[] = [];
  #length = 0;

  /** @param onEnd called once with what has arrived; `isWhole`: that is the whole body */
  constructor(onEnd: (body: Buffer, isWhole: boolean) => void) {
    this.#onEnd = onEnd;
  }

  /** @returns whether more has arrived than a preview reads */
  addChunk(chunk: Buffer): boolean {
    if (this.#chunks.length === MAX_CHUNKS) this.#chunks = [Buffer.concat(this.#chunks)];
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    return this.#length > MAX_PREVIEW_BYTES;
  }

  /** @returns everything that was held back */
  end(isWhole: boolean): Buffer {
    const body = Buffer.concat(this.#chunks);
    this.#onEnd(body, isWhole);
    return body;
  }
}
