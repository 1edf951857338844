import { readFileSync, statSync } from 'node:fs';
import type { Clock, Millis } from '../../core/scalars.ts';

/** A changed file is used within this time. */
const CHECK_INTERVAL: Millis = 1000;

/**
 * The parsed contents of a file that may be replaced while it is in use. Looks for changes when it is used, at most once a second, so
 * that it needs no watcher, and each process sees the change by itself. A file that cannot be used leaves the previous contents.
 */
export class WatchedFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  readonly #clock: Clock;
  readonly #onChange: (problem: string | undefined) => void;
  #version: string;
  #checkedAt: Millis;
  #value: T;

  /**
   * @param onChange called for each change, with the problem if the file cannot be used
   * @throws the error of node:fs or of `parse`, with the path
   */
  constructor(
    path: string,
    parse: (text: string) => T,
    { clock, onChange }: { readonly clock: Clock; readonly onChange: (problem: string | undefined) => void },
  ) {
    this.#path = path;
    this.#parse = parse;
    this.#clock = clock;
    this.#onChange = onChange;
    this.#version = versionOf(path);
    this.#checkedAt = clock.now();
    this.#value = this.#read();
  }

  get value(): T {
    const now = this.#clock.now();
    if (now - this.#checkedAt >= CHECK_INTERVAL) {
      this.#checkedAt = now;
      this.#reload();
    }
    return this.#value;
  }

  #reload(): void {
    const version = versionOf(this.#path);
    if (version === this.#version) return;
    this.#version = version;
    try {
      this.#value = this.#read();
      this.#onChange(undefined);
    } catch (error) {
      this.#onChange(error instanceof Error ? error.message : String(error));
    }
  }

  #read(): T {
    const text = readFileSync(this.#path, 'utf8');
    try {
      return this.#parse(text);
    } catch (error) {
      throw new Error(`${this.#path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }
}

/** Changes when the file is replaced or written. Never throws: reading the file reports why it cannot be used. */
function versionOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  }
}
