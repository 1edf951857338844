import type { Readable } from 'node:stream';
import type { Millis } from '../../core/scalars.ts';
import { afterPoll } from '../undici/write-batching.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import type { UploadTimeoutOptions } from './upload-timeout.ts';
import { UploadTimeout } from './upload-timeout.ts';
import type { ReplayMemory } from '../overload/replay-memory.ts';
import { StreamingBody } from './streaming-body.ts';
import type { ClientStallOptions } from '../response/client-stall.ts';
import { ClientStall } from '../response/client-stall.ts';

const EMPTY = Buffer.alloc(0);
const MIN_BUFFER_SIZE = 1024;

export type Payload = Buffer | Readable | null;

/** Whether the whole body is kept, or streamed because it is too long or memory is short. */
export type BodyRetention = 'whole' | 'too_long' | 'no_memory';

export interface RequestBodyOptions extends UploadTimeoutOptions {
  /** The longest body that is kept; a longer one is streamed and cannot be sent again. */
  readonly limit: number;
  readonly memory: ReplayMemory;
  /** The address, or the client that is identified by address, whose share of the memory it takes. */
  readonly owner: string;
  /** Whose connection the body occupies while it is streamed. */
  readonly stall?: ClientStallOptions;
  /** The body has been read, or will be streamed. Called once. */
  readonly onRead: (kept: BodyRetention) => void;
}

/**
 * A request body: kept if it is short, so that it can be sent again byte for byte; otherwise streamed once, with backpressure. A
 * Content-Length above the limit means streaming at once; otherwise the number of bytes that arrive decides.
 */
export class RequestBody {
  readonly #source: HttpServerRequest;
  readonly #options: RequestBodyOptions;
  /** What was read: the first chunk itself if it fills its memory, otherwise one growing buffer. */
  #buffer: Buffer | undefined;
  #length = 0;
  /** Bytes read here; a stream counts the rest. */
  #received = 0;
  /** What was read before the body turned out to be too long. */
  #prefix: Buffer[] = [];
  /** Bytes of the replay memory. */
  #reserved = 0;
  #whole: Buffer | null = null;
  #stream: StreamingBody | undefined;
  #state: 'reading' | 'whole' | 'streaming' | 'released' = 'reading';
  #timeout: UploadTimeout | undefined;
  #retention: BodyRetention | undefined;

  constructor(source: HttpServerRequest, options: RequestBodyOptions) {
    this.#source = source;
    this.#options = options;
  }

  read(): void {
    const declared = Number(this.#source.headers['content-length'] ?? 0);
    if (declared > this.#options.limit) {
      this.#state = 'streaming';
      this.#retain('too_long');
      return;
    }
    this.#timeout = new UploadTimeout(this.#options);
    afterPoll(this.#startTimeout); // most bodies have arrived by then and need no timer
    this.#source.on('data', this.#onData);
    this.#source.on('end', this.#onEnd);
  }

  /** What to send: the same bytes at each call if the body is kept. */
  payload(): Payload {
    if (this.#state !== 'streaming') return this.#whole;
    const timeout = (this.#timeout ??= new UploadTimeout(this.#options));
    const { stall: stallOptions } = this.#options;
    const stall = stallOptions === undefined ? undefined : new ClientStall(stallOptions, () => timeout.expireNow());
    const announced = this.#source.headers['content-length'];
    const length = announced === undefined ? undefined : Number(announced) - this.#received;
    this.#stream = new StreamingBody(this.#source, length, this.#prefix, this.#releaseMemory, timeout, stall);
    return this.#stream;
  }

  /** The body is not kept, so it is sent at the client's pace. */
  get isStreamed(): boolean {
    return this.#state === 'streaming';
  }

  /** Undefined while it is not decided. */
  get retention(): BodyRetention | undefined {
    return this.#retention;
  }

  /** The complete body; undefined if it is not kept, or has not arrived. */
  get whole(): Buffer | undefined {
    return this.#whole ?? undefined;
  }

  /** Bytes read so far. */
  get receivedBytes(): number {
    return this.#received + (this.#stream?.receivedBytes ?? 0);
  }

  /** When a streamed body was complete; undefined before, and for a body that is kept. */
  get uploadEndedAt(): Millis | undefined {
    return this.#timeout?.endedAt;
  }

  /** A streamed body waits for its client. */
  get isWaitingForClient(): boolean {
    return this.#stream?.isWaitingForClient === true;
  }

  /** Some of it has been streamed, so it cannot be sent from its start again. */
  get isPartlySent(): boolean {
    return this.#stream?.hasStarted === true;
  }

  /** The client has not sent all of it: see `StreamingBody.hasAllBytes`. */
  get isIncomplete(): boolean {
    return !this.#source.readableEnded && this.#state !== 'whole' && this.#stream?.hasAllBytes !== true;
  }

  release(): void {
    this.#stopReading();
    this.#timeout?.close();
    this.#releaseMemory();
    this.#buffer = undefined;
    this.#prefix = [];
    this.#whole = null;
    this.#state = 'released';
  }

  readonly #startTimeout = (): void => {
    if (this.#state === 'reading') this.#timeout?.startWaiting();
  };

  readonly #onData = (chunk: Buffer): void => {
    this.#received += chunk.length;
    this.#timeout?.onBytes(chunk.length);
    const retention = this.#append(chunk);
    if (retention === 'whole') return;
    this.#stopReading();
    this.#source.pause();
    if (this.#buffer !== undefined) this.#prefix.push(this.#buffer.subarray(0, this.#length));
    this.#prefix.push(copyChunk(chunk));
    this.#buffer = undefined;
    this.#state = 'streaming';
    this.#retain(retention);
  };

  readonly #onEnd = (): void => {
    this.#stopReading();
    this.#whole = this.#buffer?.subarray(0, this.#length) ?? EMPTY;
    this.#buffer = undefined;
    this.#timeout?.close();
    this.#timeout = undefined; // saves memory while the request waits
    this.#state = 'whole';
    this.#retain('whole');
  };

  /** Adds a chunk to the kept body, if allowed. However small the chunks, no more memory is used than is accounted for. */
  #append(chunk: Buffer): BodyRetention {
    const { limit, memory, owner } = this.#options;
    const length = this.#length + chunk.length;
    if (length > limit) return 'too_long';
    if (this.#buffer === undefined) {
      if (!memory.reserve(chunk.length, owner)) return 'no_memory';
      this.#reserved = chunk.length;
      this.#buffer = copyChunk(chunk);
    } else {
      if (length > this.#buffer.length) {
        const size = Math.min(limit, Math.max(length, 2 * this.#buffer.length, MIN_BUFFER_SIZE));
        if (!memory.reserve(size - this.#reserved, owner)) return 'no_memory';
        this.#reserved = size;
        const grown = Buffer.allocUnsafeSlow(size);
        this.#buffer.copy(grown, 0, 0, this.#length);
        this.#buffer = grown;
      }
      chunk.copy(this.#buffer, this.#length);
    }
    this.#length = length;
    return 'whole';
  }

  #retain(retention: BodyRetention): void {
    this.#retention = retention;
    this.#options.onRead(retention);
  }

  readonly #releaseMemory = (): void => {
    this.#options.memory.release(this.#reserved, this.#options.owner);
    this.#reserved = 0;
  };

  #stopReading(): void {
    this.#timeout?.stopWaiting();
    this.#source.off('data', this.#onData);
    this.#source.off('end', this.#onEnd);
  }
}

/** A chunk may be one byte of a TLS record, which it keeps in memory as a whole. A copy takes only what is accounted for. */
function copyChunk(chunk: Buffer): Buffer {
  if (chunk.buffer.byteLength === chunk.length) return chunk;
  const copy = Buffer.allocUnsafeSlow(chunk.length);
  chunk.copy(copy);
  return copy;
}
