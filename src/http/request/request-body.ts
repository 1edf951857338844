import type { Readable } from 'node:stream';
import type { Bound } from '../../core/overload/resource-bound.ts';
import { atEndOfTurn } from '../undici/write-batching.ts';
import type { Inbound } from '../server/server-request.ts';
import type { PatienceOptions } from './upload-timeout.ts';
import { Patience } from './upload-timeout.ts';
import { Upload } from './streaming-body.ts';
import type { StallParts } from '../response/client-stall.ts';
import { Stall } from '../response/client-stall.ts';

/** Bodies kept for a replay, of all requests together. */
export class ReplayMemory {
  readonly #limit: number;
  #used = 0;
  #refused = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  get bound(): Bound {
    return { name: 'replay_memory', used: this.#used / Math.max(1, this.#limit), reached: this.#refused };
  }

  take(bytes: number): boolean {
    if (this.#used + bytes > this.#limit) {
      this.#refused += 1;
      return false;
    }
    this.#used += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#used -= bytes;
  }
}

const EMPTY = Buffer.alloc(0);
const LEAST_GROWN = 1024;

export type Payload = Buffer | Readable | null;

/** What is kept of a body: all of it; or it is streamed, being longer than its limit, or for want of memory. */
export type Kept = 'whole' | 'too_long' | 'no_memory';

export interface BodyOptions extends PatienceOptions {
  /** The longest body that is kept; a longer one is streamed, once. */
  readonly limit: number;
  readonly memory: ReplayMemory;
  /** Whose connection it keeps while it is streamed. */
  readonly place?: StallParts;
  /** All of it is here, or what is not kept will be streamed. Called once. */
  readonly onRead: (kept: Kept) => void;
}

/**
 * The body of a request: kept whole while it is short, so that it can be sent again byte for byte; streamed once, with
 * backpressure, when it is not. A Content-Length is only a hint, except that a long one need not be tried.
 */
export class RequestBody {
  readonly #source: Inbound;
  readonly #options: BodyOptions;
  /** What has been read: the first piece as it came, if it is all of its memory; else all in one that grows. */
  #store: Buffer | undefined;
  #length = 0;
  /** Of a body that is too long, what was read before that was known. */
  #begun: Buffer[] = [];
  /** Of the memory for replays. */
  #taken = 0;
  #whole: Buffer | null = null;
  #upload: Upload | undefined;
  #state: 'reading' | 'whole' | 'streaming' | 'released' = 'reading';
  #patience: Patience | undefined;

  constructor(source: Inbound, options: BodyOptions) {
    this.#source = source;
    this.#options = options;
  }

  read(): void {
    const declared = Number(this.#source.headers['content-length'] ?? 0);
    if (declared > this.#options.limit) {
      this.#state = 'streaming';
      this.#options.onRead('too_long');
      return;
    }
    this.#patience = new Patience(this.#options);
    atEndOfTurn(this.#wait); // mostly all of it has come by then, and no timer was needed
    this.#source.on('data', this.#onData);
    this.#source.on('end', this.#onEnd);
  }

  /** What to send: the same bytes at each call while all is kept. */
  payload(): Payload {
    if (this.#state !== 'streaming') return this.#whole;
    const patience = (this.#patience ??= new Patience(this.#options));
    const { place } = this.#options;
    const stall = place === undefined ? undefined : new Stall(place, () => patience.giveUp());
    this.#upload = new Upload(this.#source, this.#begun, this.#giveBack, patience, stall);
    return this.#upload;
  }

  /** All of it; undefined where it is not kept, or not all here. */
  /** It was not kept: its client's pace is that of the upload. */
  get isStreamed(): boolean {
    return this.#state === 'streaming';
  }

  get whole(): Buffer | undefined {
    return this.#whole ?? undefined;
  }

  /** A streamed body is held up by its client. */
  get awaitsClient(): boolean {
    return this.#upload?.awaitsClient === true;
  }

  /** Some of it has been streamed: it cannot be sent from its beginning any more. */
  get isSpent(): boolean {
    return this.#upload?.isBegun === true;
  }

  /** Whether the client still has to send some of it. */
  get isUnread(): boolean {
    return !this.#source.readableEnded && this.#state !== 'whole';
  }

  release(): void {
    this.#stopReading();
    this.#patience?.close();
    this.#giveBack();
    this.#store = undefined;
    this.#begun = [];
    this.#whole = null;
    this.#state = 'released';
  }

  readonly #wait = (): void => {
    if (this.#state === 'reading') this.#patience?.wait();
  };

  readonly #onData = (chunk: Buffer): void => {
    this.#patience?.receive(chunk.length);
    const kept = this.#keep(chunk);
    if (kept === 'whole') return;
    this.#stopReading();
    this.#source.pause();
    if (this.#store !== undefined) this.#begun.push(this.#store.subarray(0, this.#length));
    this.#begun.push(detach(chunk));
    this.#store = undefined;
    this.#state = 'streaming';
    this.#options.onRead(kept);
  };

  readonly #onEnd = (): void => {
    this.#stopReading();
    this.#whole = this.#store?.subarray(0, this.#length) ?? EMPTY;
    this.#store = undefined;
    this.#patience?.close();
    this.#patience = undefined; // nothing of it is kept while the request waits
    this.#state = 'whole';
    this.#options.onRead('whole');
  };

  /** Adds a piece to what is kept, if it may be. However small the pieces, no more memory is taken than is accounted for. */
  #keep(chunk: Buffer): Kept {
    const { limit, memory } = this.#options;
    const length = this.#length + chunk.length;
    if (length > limit) return 'too_long';
    if (this.#store === undefined) {
      if (!memory.take(chunk.length)) return 'no_memory';
      this.#taken = chunk.length;
      this.#store = detach(chunk);
    } else {
      if (length > this.#store.length) {
        const size = Math.min(limit, Math.max(length, 2 * this.#store.length, LEAST_GROWN));
        if (!memory.take(size - this.#taken)) return 'no_memory';
        this.#taken = size;
        const grown = Buffer.allocUnsafeSlow(size);
        this.#store.copy(grown, 0, 0, this.#length);
        this.#store = grown;
      }
      chunk.copy(this.#store, this.#length);
    }
    this.#length = length;
    return 'whole';
  }

  readonly #giveBack = (): void => {
    this.#options.memory.giveBack(this.#taken);
    this.#taken = 0;
  };

  #stopReading(): void {
    this.#patience?.rest();
    this.#source.off('data', this.#onData);
    this.#source.off('end', this.#onEnd);
  }
}

/** A piece may be one byte of a whole TLS record, which lives as long as that byte: what is held is what is counted. */
function detach(piece: Buffer): Buffer {
  if (piece.buffer.byteLength === piece.length) return piece;
  const own = Buffer.allocUnsafeSlow(piece.length);
  piece.copy(own);
  return own;
}
