import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { DestinationStream } from 'pino';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';

const STDOUT = 1;
/**
 * Lines are written in chunks of this size, or after FLUSH_INTERVAL, whichever is first: a write in Node's thread pool costs
 * as much as formatting fifty lines.
 */
const CHUNK_BYTES = 64 * 1024;
const MAX_CHUNK_BYTES = 128 * 1024;
/** Writes to a pipe of up to this many bytes are atomic (POSIX guarantees 512, Linux 4096). */
const PIPE_BUF = 4096;
const FLUSH_INTERVAL: Millis = 200;
/** Delay before a blocked write is retried; at exit, retries end after EXIT_FLUSH_TIMEOUT. */
const RETRY_DELAY: Millis = 50;
const EXIT_FLUSH_TIMEOUT: Millis = 300;

/**
 * Standard output, written asynchronously. While it is not read, a bounded number of bytes is buffered and further
 * lines are dropped: neither requests nor the exit of the process wait for a reader. (pino's own destination,
 * sonic-boom 4.2.1, retries forever at exit, whatever the error.)
 */
export class StdoutDestination implements DestinationStream {
  readonly isTerminal = isatty(STDOUT);
  readonly #limit: number;
  readonly #fd: number;
  /** Pending bytes that trigger a write. */
  readonly #flushThreshold: number;
  /** Whole lines, joined into chunks; the last chunk still grows. */
  readonly #chunks: string[] = [];
  /** Bytes of the last chunk. */
  #lastChunkBytes = 0;
  readonly #maxChunkBytes: number;
  #pendingBytes = 0;
  #dropped = 0;
  /** The chunk being written, and how much of it is written. */
  #current: Buffer | undefined;
  #offset = 0;
  /** A write is in progress, or waits to be retried. */
  #isWriting = false;
  #isInFlight = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #onFlushed: (() => void)[] = [];

  /**
   * @param limit maximum buffered bytes
   * @param isShared other processes write there too: no chunk is larger than what a pipe takes as a whole. A file takes any.
   */
  constructor(limit: number, isShared = false) {
    this.#limit = limit;
    const mayInterleave = isShared && !fstatSync(STDOUT).isFile();
    this.#maxChunkBytes = mayInterleave ? PIPE_BUF : MAX_CHUNK_BYTES;
    this.#fd = this.isTerminal ? openTerminal() : STDOUT;
    // A terminal shows each line at once; a small buffer is flushed at half of its limit.
    this.#flushThreshold = this.isTerminal ? 0 : Math.min(CHUNK_BYTES, this.#maxChunkBytes, limit / 2);
    process.on('exit', this.#onExit);
  }

  get bound(): ResourceBound {
    return { name: 'log_buffer', used: this.#pendingBytes / this.#limit, reached: this.#dropped };
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#pendingBytes + bytes > this.#limit) {
      this.#dropped += 1;
      return;
    }
    this.#pendingBytes += bytes;
    const last = this.#chunks.length - 1;
    const chunk = this.#chunks[last];
    this.#lastChunkBytes += bytes;
    if (chunk === undefined || this.#lastChunkBytes > this.#maxChunkBytes) {
      this.#chunks.push(line);
      this.#lastChunkBytes = bytes;
    } else this.#chunks[last] = chunk + line;
    if (!this.#isWriting) this.#scheduleWrite();
  }

  /** Calls back when all lines so far are written or cannot be; not while the reader is stuck. */
  flush(done: () => void): void {
    this.#onFlushed.push(done);
    if (!this.#isWriting) this.#writeNext();
  }

  /** Writes at once above the threshold, else after FLUSH_INTERVAL. */
  #scheduleWrite(): void {
    if (this.#pendingBytes >= this.#flushThreshold) this.#writeNext();
    else this.#timer ??= setTimeout(this.#writeNext, FLUSH_INTERVAL).unref();
  }

  readonly #writeNext = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const chunk = this.#current ?? this.#takeChunk();
    this.#isWriting = chunk !== undefined;
    if (chunk === undefined) {
      for (const done of this.#onFlushed.splice(0)) done();
      return;
    }
    this.#isInFlight = true;
    write(this.#fd, chunk, this.#offset, chunk.length - this.#offset, null, this.#onWritten);
  };

  readonly #onWritten = (error: NodeJS.ErrnoException | null, written: number): void => {
    this.#isInFlight = false;
    if (error?.code === 'EAGAIN') {
      setTimeout(this.#writeNext, RETRY_DELAY).unref();
      return;
    }
    // After an error such as a full disk or a closed pipe, the chunk is dropped.
    this.#advance(error === null ? written : Number.POSITIVE_INFINITY);
    this.#isWriting = false;
    if (this.#current !== undefined || this.#pendingBytes === 0 || this.#onFlushed.length > 0) this.#writeNext();
    else this.#scheduleWrite();
  };

  #takeChunk(): Buffer | undefined {
    const chunk = this.#chunks.shift();
    if (chunk === undefined) return undefined;
    this.#current = Buffer.from(chunk);
    this.#offset = 0;
    return this.#current;
  }

  #advance(written: number): void {
    if (this.#current === undefined) return;
    const left = this.#current.length - this.#offset;
    this.#pendingBytes -= Math.min(left, written);
    this.#offset += Math.min(left, written);
    if (written >= left) this.#current = undefined;
  }

  /** Writes synchronously at exit; lines that cannot be written within EXIT_FLUSH_TIMEOUT are lost. */
  readonly #onExit = (): void => {
    const until = Date.now() + EXIT_FLUSH_TIMEOUT;
    if (this.#isInFlight) this.#current = undefined; // Node completes a write in progress
    for (
      let chunk = this.#current ?? this.#takeChunk();
      chunk !== undefined;
      chunk = this.#current ?? this.#takeChunk()
    ) {
      try {
        this.#advance(writeSync(this.#fd, chunk, this.#offset));
      } catch (error) {
        const mayRetry = error instanceof Error && 'code' in error && error.code === 'EAGAIN' && Date.now() < until;
        if (!mayRetry) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_DELAY / 5);
      }
    }
  };
}

/**
 * Opens the terminal with a descriptor of our own, which is non-blocking without changing the shared one: a suspended terminal
 * (Ctrl-S, or a container whose reader hangs) would block this process at its next line.
 */
function openTerminal(): number {
  try {
    return openSync('/dev/stdout', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return STDOUT;
  }
}
