import type { Readable } from 'node:stream';
import type { Millis } from '../policy/types.ts';
import type { Inbound } from './inbound.ts';
import { Upload } from './upload.ts';

/** Bodies kept for a replay, of all requests together. */
export class ReplayMemory {
  readonly #limit: number;
  #used = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  take(bytes: number): boolean {
    if (this.#used + bytes > this.#limit) return false;
    this.#used += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#used -= bytes;
  }
}

export type Payload = Buffer | Readable | null;

export interface BodyOptions {
  /** The longest body that is kept; a longer one is streamed, once. */
  readonly limit: number;
  readonly memory: ReplayMemory;
  /** How long the client may pause. */
  readonly idle: Millis;
  /** All of it is kept (true), or it has grown too long and will be streamed. Called once. */
  readonly onRead: (replayable: boolean) => void;
  /** The client paused for too long. */
  readonly onIdle: () => void;
}

/**
 * The body of a request: kept whole while it is short, so that it can be sent again byte for byte; streamed once, with
 * backpressure, when it is not. A Content-Length is only a hint, except that a long one need not be tried.
 */
export class RequestBody {
  readonly #source: Inbound;
  readonly #options: BodyOptions;
  #chunks: Buffer[] = [];
  #kept = 0;
  #whole: Buffer | null = null;
  #upload: Upload | undefined;
  #state: 'reading' | 'whole' | 'streaming' | 'released' = 'reading';
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(source: Inbound, options: BodyOptions) {
    this.#source = source;
    this.#options = options;
  }

  read(): void {
    const declared = Number(this.#source.headers['content-length'] ?? 0);
    if (declared > this.#options.limit) {
      this.#state = 'streaming';
      this.#options.onRead(false);
      return;
    }
    this.#watch();
    this.#source.on('data', this.#onData);
    this.#source.on('end', this.#onEnd);
  }

  /** What to send: the same bytes at each call while all is kept. */
  payload(): Payload {
    if (this.#state !== 'streaming') return this.#whole;
    const { idle, onIdle } = this.#options;
    this.#upload = new Upload(this.#source, this.#chunks, idle, onIdle);
    return this.#upload;
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
    this.#options.memory.giveBack(this.#kept);
    this.#kept = 0;
    this.#chunks = [];
    this.#whole = null;
    this.#state = 'released';
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#idleTimer?.refresh();
    this.#chunks.push(chunk);
    if (this.#kept + chunk.length <= this.#options.limit && this.#options.memory.take(chunk.length)) {
      this.#kept += chunk.length;
      return;
    }
    this.#stopReading();
    this.#source.pause();
    this.#state = 'streaming';
    this.#options.onRead(false);
  };

  readonly #onEnd = (): void => {
    this.#stopReading();
    const [first] = this.#chunks;
    this.#whole = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#state = 'whole';
    this.#options.onRead(true);
  };

  #watch(): void {
    this.#idleTimer = setTimeout(this.#options.onIdle, this.#options.idle);
  }

  #stopReading(): void {
    clearTimeout(this.#idleTimer);
    this.#source.off('data', this.#onData);
    this.#source.off('end', this.#onEnd);
  }
}
