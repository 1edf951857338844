import type { LineCounter } from 'yaml';
import type { Finding, Mistake, Path, Place } from './mistakes.ts';
import { formatPath } from './mistakes.ts';

interface Offsets {
  readonly key: number;
  readonly value: number;
}

/** Where everything in a configuration was written: in the file, or by a flag or variable. */
export class Places {
  readonly #file: string;
  readonly #lines: LineCounter;
  readonly #offsets = new Map<string, Offsets>();
  readonly #given = new Map<string, string>();
  readonly #lent = new Map<string, Path>();

  constructor(file: string, lines: LineCounter) {
    this.#file = file;
    this.#lines = lines;
  }

  put(path: Path, key: number, value: number): void {
    this.#offsets.set(pathKey(path), { key, value });
  }

  /** `path` and what is below it was given by `source`, a flag or a variable. */
  give(path: Path, source: string): void {
    this.#given.set(pathKey(path), source);
  }

  /** `path` and what is below it is not written: it comes with what is written at `from`. */
  lend(path: Path, from: Path): void {
    this.#lent.set(pathKey(path), from);
  }

  /** Whether this was written at all; false for defaults and presets. */
  has(path: Path): boolean {
    return this.#offsets.has(pathKey(path)) || this.#given.has(pathKey(path));
  }

  /** Of the finding, or of the key that holds what is not there. */
  locate({ path, at, message, suggestion }: Finding): Mistake {
    const lender = this.#findLender(path);
    if (lender === undefined) return { ...this.#find(path, at), path: formatPath(path), message, suggestion };
    const told = `${message} (as the preset of its provider has it)`;
    return { ...this.#find(lender, 'value'), path: formatPath(path), message: told, suggestion };
  }

  at(offset: number): Place {
    const { line, col } = this.#lines.linePos(offset);
    return { file: this.#file, line: Math.max(1, line), column: Math.max(1, col) };
  }

  #findLender(path: Path): Path | undefined {
    for (let length = path.length; length > 0; length -= 1) {
      const lender = this.#lent.get(pathKey(path.slice(0, length)));
      if (lender !== undefined) return lender;
    }
    return undefined;
  }

  #find(path: Path, at: 'key' | 'value'): Place {
    for (let length = path.length; length >= 0; length -= 1) {
      const key = pathKey(path.slice(0, length));
      const source = this.#given.get(key);
      if (source !== undefined) return { file: source, line: undefined, column: undefined };
      const offsets = this.#offsets.get(key);
      if (offsets !== undefined) return this.at(length === path.length ? offsets[at] : offsets.key);
    }
    return { file: this.#file, line: 1, column: 1 };
  }
}

export function pathKey(path: Path): string {
  return JSON.stringify(path);
}
