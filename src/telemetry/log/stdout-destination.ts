import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { DestinationStream } from 'pino';
import type { Bound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';

const STDOUT = 1;
/**
 * Lines are written in pieces of this size, or after FLUSH_EVERY, whichever is first: to hand one over to Node's pool of threads
 * costs as much as fifty lines.
 */
const PIECE = 64 * 1024;
const LARGEST_PIECE = 128 * 1024;
/** What others write to a pipe never comes within so many bytes (POSIX has at least 512; Linux and macOS these or more). */
const PIPE_BUF = 4096;
const FLUSH_EVERY: Millis = 200;
/** Where nobody reads, it is tried again after this; and when the process ends, for no longer than LAST_WORDS. */
const RETRY_AFTER: Millis = 50;
const LAST_WORDS: Millis = 300;

/**
 * Standard output, written behind the caller's back. While nobody reads it, so many bytes wait and further lines are
 * dropped: neither requests nor the end of the process wait for a reader. (pino's own destination, sonic-boom 4.2.1,
 * tries for ever at the exit, whatever the error.)
 */
export class LogOutput implements DestinationStream {
  readonly #limit: number;
  readonly #fd: number;
  /** Bytes that are worth a system call. */
  readonly #least: number;
  /** Whole lines, put together into pieces; the last one still grows. */
  readonly #pieces: string[] = [];
  /** Bytes of the last piece. */
  #lastBytes = 0;
  readonly #largest: number;
  #pending = 0;
  #dropped = 0;
  /** What is being written, and how much of it has been. */
  #current: Buffer | undefined;
  #offset = 0;
  /** Something is being written, or waits to be tried again. */
  #isWriting = false;
  #isInFlight = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #onFlushed: (() => void)[] = [];

  /**
   * @param limit bytes that may wait
   * @param isShared other processes write there too: no piece is larger than what a pipe takes as a whole. A file takes any.
   */
  constructor(limit: number, isShared = false) {
    this.#limit = limit;
    const isTornApart = isShared && !fstatSync(STDOUT).isFile();
    this.#largest = isTornApart ? PIPE_BUF : LARGEST_PIECE;
    const watched = isatty(STDOUT);
    this.#fd = watched ? openTerminal() : STDOUT;
    // Who watches wants to see a line when it happens; and a small buffer is not filled by what nobody has begun to write.
    this.#least = watched ? 0 : Math.min(PIECE, this.#largest, limit / 2);
    process.on('exit', this.#onExit);
  }

  get bound(): Bound {
    return { name: 'log_buffer', used: this.#pending / this.#limit, reached: this.#dropped };
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#pending + bytes > this.#limit) {
      this.#dropped += 1;
      return;
    }
    this.#pending += bytes;
    const last = this.#pieces.length - 1;
    const piece = this.#pieces[last];
    this.#lastBytes += bytes;
    if (piece === undefined || this.#lastBytes > this.#largest) {
      this.#pieces.push(line);
      this.#lastBytes = bytes;
    } else this.#pieces[last] = piece + line;
    if (!this.#isWriting) this.#writeInTime();
  }

  /** Calls back when all lines so far are written, or cannot be; not while nobody reads. */
  flush(done: () => void): void {
    this.#onFlushed.push(done);
    if (!this.#isWriting) this.#writeOn();
  }

  /** What has gathered meanwhile is not worth it at once either. */
  #writeInTime(): void {
    if (this.#pending >= this.#least) this.#writeOn();
    else this.#timer ??= setTimeout(this.#writeOn, FLUSH_EVERY).unref();
  }

  readonly #writeOn = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const piece = this.#current ?? this.#take();
    this.#isWriting = piece !== undefined;
    if (piece === undefined) {
      for (const done of this.#onFlushed.splice(0)) done();
      return;
    }
    this.#isInFlight = true;
    write(this.#fd, piece, this.#offset, piece.length - this.#offset, null, this.#onWritten);
  };

  readonly #onWritten = (error: NodeJS.ErrnoException | null, written: number): void => {
    this.#isInFlight = false;
    if (error?.code === 'EAGAIN') {
      setTimeout(this.#writeOn, RETRY_AFTER).unref();
      return;
    }
    // A full disk or a closed pipe costs lines, not requests.
    this.#advance(error === null ? written : Number.POSITIVE_INFINITY);
    this.#isWriting = false;
    if (this.#current !== undefined || this.#pending === 0 || this.#onFlushed.length > 0) this.#writeOn();
    else this.#writeInTime();
  };

  #take(): Buffer | undefined {
    const piece = this.#pieces.shift();
    if (piece === undefined) return undefined;
    this.#current = Buffer.from(piece);
    this.#offset = 0;
    return this.#current;
  }

  #advance(written: number): void {
    if (this.#current === undefined) return;
    const left = this.#current.length - this.#offset;
    this.#pending -= Math.min(left, written);
    this.#offset += Math.min(left, written);
    if (written >= left) this.#current = undefined;
  }

  /** Synchronously, as nothing else runs any more; what cannot be written soon is lost. */
  readonly #onExit = (): void => {
    const until = Date.now() + LAST_WORDS;
    if (this.#isInFlight) this.#current = undefined; // Node waits for what it has begun
    for (let piece = this.#current ?? this.#take(); piece !== undefined; piece = this.#current ?? this.#take()) {
      try {
        this.#advance(writeSync(this.#fd, piece, this.#offset));
      } catch (error) {
        const mayYet = error instanceof Error && 'code' in error && error.code === 'EAGAIN' && Date.now() < until;
        if (!mayYet) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_AFTER / 5);
      }
    }
  };
}

/**
 * The terminal by a descriptor of our own, so that it can be one that does not block without making everybody else's so:
 * a terminal that is held (Ctrl-S, a container's whose reader hangs) would hold this process at its next line.
 */
function openTerminal(): number {
  try {
    return openSync('/dev/stdout', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return STDOUT;
  }
}
