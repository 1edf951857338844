import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import type { Logged, LogReader, Skipped } from '../logged-request.ts';
import type { LogFormat } from './log-format.ts';

/** Bytes that are read at once. */
const CHUNK = 256 * 1024;
/** A line longer than this is no request. */
const LONGEST_LINE = 1024 * 1024;

/** Reads a log a piece at a time, so that its size does not matter. */
export class LogFile implements LogReader {
  readonly #descriptor: number;
  readonly #size: number;
  readonly #format: LogFormat;
  #isHead: boolean;
  readonly #decoder = new StringDecoder('utf8');
  readonly #buffer = Buffer.allocUnsafe(CHUNK);
  #read = 0;
  #rest = '';
  #isOpen = true;
  #skipped = 0;
  #firstSkipped: Skipped | undefined;
  #aside = 0;
  #lines = 0;

  /** @throws an error with a `code` of node:fs */
  constructor(path: string, format: LogFormat) {
    this.#format = format;
    this.#isHead = format.hasHead;
    this.#descriptor = openSync(path, 'r');
    this.#size = fstatSync(this.#descriptor).size;
  }

  get progress(): number {
    return this.#size === 0 ? 1 : Math.min(1, this.#read / this.#size);
  }

  get skipped(): number {
    return this.#skipped;
  }

  get firstSkipped(): Skipped | undefined {
    return this.#firstSkipped;
  }

  get aside(): number {
    return this.#aside;
  }

  read(): readonly Logged[] | undefined {
    if (!this.#isOpen) return undefined;
    const bytes = readSync(this.#descriptor, this.#buffer, 0, CHUNK, this.#read);
    this.#read += bytes;
    const isEnd = bytes === 0;
    const text = this.#rest + (isEnd ? this.#decoder.end() : this.#decoder.write(this.#buffer.subarray(0, bytes)));
    const lines = text.split('\n');
    this.#rest = isEnd ? '' : (lines.pop() ?? '');
    if (this.#rest.length > LONGEST_LINE) this.#rest = '';
    if (isEnd) {
      closeSync(this.#descriptor);
      this.#isOpen = false;
    }
    const records: Logged[] = [];
    for (const line of lines) {
      this.#lines += 1;
      if (this.#isHead || line.trim() === '') {
        this.#isHead = false;
        continue;
      }
      const logged = this.#format.parse(line, this.#lines);
      if (logged === 'none') this.#skip(line);
      else if (logged === 'aside') this.#aside += 1;
      else records.push(logged);
    }
    return records;
  }

  #skip(text: string): void {
    this.#skipped += 1;
    this.#firstSkipped ??= { line: this.#lines, why: this.#format.explain(text) };
  }
}
