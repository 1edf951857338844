import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import type { LoggedRequest, LogReader, SkippedLine } from '../logged-request.ts';
import type { LogFormat } from './log-format.ts';

/** Bytes per read. */
const CHUNK = 256 * 1024;
/** A longer line is not a request. */
const MAX_LINE_LENGTH = 1024 * 1024;

/** Reads a log in chunks, so that memory does not grow with its size. */
export class LogFile implements LogReader {
  readonly #descriptor: number;
  readonly #size: number;
  readonly #format: LogFormat;
  #isHeader: boolean;
  readonly #decoder = new StringDecoder('utf8');
  readonly #buffer = Buffer.allocUnsafe(CHUNK);
  #read = 0;
  #rest = '';
  #isOpen = true;
  #skipped = 0;
  #firstSkipped: SkippedLine | undefined;
  #aside = 0;
  #lines = 0;

  /** @throws an error with a `code` of node:fs */
  constructor(path: string, format: LogFormat) {
    this.#format = format;
    this.#isHeader = format.hasHeader;
    this.#descriptor = openSync(path, 'r');
    this.#size = fstatSync(this.#descriptor).size;
  }

  get progress(): number {
    return this.#size === 0 ? 1 : Math.min(1, this.#read / this.#size);
  }

  get skipped(): number {
    return this.#skipped;
  }

  get firstSkipped(): SkippedLine | undefined {
    return this.#firstSkipped;
  }

  get aside(): number {
    return this.#aside;
  }

  read(): readonly LoggedRequest[] | undefined {
    if (!this.#isOpen) return undefined;
    const bytes = readSync(this.#descriptor, this.#buffer, 0, CHUNK, this.#read);
    this.#read += bytes;
    const isEnd = bytes === 0;
    const text = this.#rest + (isEnd ? this.#decoder.end() : this.#decoder.write(this.#buffer.subarray(0, bytes)));
    const lines = text.split('\n');
    this.#rest = isEnd ? '' : (lines.pop() ?? '');
    if (this.#rest.length > MAX_LINE_LENGTH) this.#rest = '';
    if (isEnd) {
      closeSync(this.#descriptor);
      this.#isOpen = false;
    }
    const records: LoggedRequest[] = [];
    for (const line of lines) {
      this.#lines += 1;
      if (this.#isHeader || line.trim() === '') {
        this.#isHeader = false;
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
    this.#firstSkipped ??= { line: this.#lines, why: this.#format.describeProblem(text) };
  }
}
