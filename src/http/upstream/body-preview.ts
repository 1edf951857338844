import { MAX_LOOK } from './error-codes.ts';

/** Pieces beyond this are put together: a body may come byte by byte, and each piece costs more than its byte. */
const MANY = 64;

/** The beginning of an answer's body, held back until it is known what the answer means. */
export class Peek {
  readonly #onEnd: (body: Buffer, isWhole: boolean) => void;
  #pieces: Buffer[] = [];
  #length = 0;

  /** @param onEnd told once, with all that has come; `isWhole`: nothing more comes */
  constructor(onEnd: (body: Buffer, isWhole: boolean) => void) {
    this.#onEnd = onEnd;
  }

  /** @returns whether that is more than is looked into */
  take(chunk: Buffer): boolean {
    if (this.#pieces.length === MANY) this.#pieces = [Buffer.concat(this.#pieces)];
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    return this.#length > MAX_LOOK;
  }

  /** @returns all that was held back */
  end(isWhole: boolean): Buffer {
    const body = Buffer.concat(this.#pieces);
    this.#onEnd(body, isWhole);
    return body;
  }
}
