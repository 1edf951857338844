import type { LineCounter } from 'yaml';
import type { Finding, Mistake, Path, SourcePosition } from './mistakes.ts';
import { formatPath } from './mistakes.ts';
import type { RawDocument } from './read-document.ts';

/** How a value came into the configuration. */
type ValueOrigin =
  /** Offsets in the text of the file. */
  | { readonly kind: 'file'; readonly key: number; readonly value: number }
  /** A flag or a variable, by its name. */
  | { readonly kind: 'override'; readonly source: string }
  /** The preset of the provider that the file names at `providerPath`. */
  | { readonly kind: 'preset'; readonly providerPath: Path };

/** Where each value of a configuration was written: in the file, by a flag or variable, or in a preset. */
export class SourceMap {
  readonly #file: string;
  readonly #lineCounter: LineCounter;
  /** By `pathKey`. A path without an entry has the origin of the nearest path above it. */
  readonly #origins = new Map<string, ValueOrigin>();

  constructor(file: string, lines: LineCounter) {
    this.#file = file;
    this.#lineCounter = lines;
  }

  setOffsets(path: Path, key: number, value: number): void {
    this.#origins.set(pathKey(path), { kind: 'file', key, value });
  }

  /** `path` and everything below it comes from `source`, a flag or a variable. */
  setOverride(path: Path, source: string): void {
    this.#origins.set(pathKey(path), { kind: 'override', source });
  }

  /** `path` and everything below it comes from the preset of the provider that is named at `providerPath`. */
  setPresetOrigin(path: Path, providerPath: Path): void {
    this.#origins.set(pathKey(path), { kind: 'preset', providerPath });
  }

  /** Gives the origins of `from`, and of everything below it, to `to`. */
  move(from: Path, to: Path): void {
    for (const [key, origin] of [...this.#origins]) {
      const moved = movePathKey(key, from, to);
      if (moved === undefined) continue;
      this.#origins.delete(key);
      this.#origins.set(moved, origin);
    }
  }

  /** True if the file, a flag or a variable sets `path`; false for defaults and presets. */
  isWritten(path: Path): boolean {
    const origin = this.#origins.get(pathKey(path));
    return origin !== undefined && origin.kind !== 'preset';
  }

  /** The finding with its position; of a missing value, with the position of the nearest key above it. */
  locate({ path, at, message, suggestion }: Finding): Mistake {
    const { origin, isExact } = this.#findOrigin(path);
    const mistake = { path: formatPath(path), message, suggestion };
    switch (origin?.kind) {
      case 'file':
        return { ...this.positionAt(isExact ? origin[at] : origin.key), ...mistake };
      case 'override':
        return { file: origin.source, line: undefined, column: undefined, ...mistake };
      case 'preset': {
        const located = this.locate({ path: origin.providerPath, at: 'value', message });
        return { ...located, ...mistake, message: `${message} (set by the preset of its provider)` };
      }
      case undefined:
        return { file: this.#file, line: 1, column: 1, ...mistake };
    }
  }

  positionAt(offset: number): SourcePosition {
    const { line, col } = this.#lineCounter.linePos(offset);
    return { file: this.#file, line: Math.max(1, line), column: Math.max(1, col) };
  }

  /** `isExact`: the origin is that of `path` itself, not of a path above it. */
  #findOrigin(path: Path): { readonly origin: ValueOrigin | undefined; readonly isExact: boolean } {
    for (let length = path.length; length >= 0; length -= 1) {
      const origin = this.#origins.get(pathKey(path.slice(0, length)));
      if (origin !== undefined) return { origin, isExact: length === path.length };
    }
    return { origin: undefined, isExact: false };
  }
}

/** The key of a path at or below `from`, moved to `to`; undefined for any other path. */
export function movePathKey(key: string, from: Path, to: Path): string | undefined {
  const prefix = pathKey(from).slice(0, -1);
  if (key !== `${prefix}]` && !key.startsWith(`${prefix},`)) return undefined;
  return `${pathKey(to).slice(0, -1)}${key.slice(prefix.length)}`;
}

/** Notes that the value of `from`, and everything below it, is now at `to`. */
export function relocate(
  { sourceMap, substituted, failedPaths }: Pick<RawDocument, 'sourceMap' | 'substituted' | 'failedPaths'>,
  from: Path,
  to: Path,
): void {
  sourceMap.move(from, to);
  // A suggestion must not repeat a value from a variable at its new place either.
  for (const [path, written] of [...substituted]) {
    const moved = movePathKey(path, from, to);
    if (moved === undefined) continue;
    substituted.delete(path);
    substituted.set(moved, written);
  }
  for (const path of [...failedPaths]) {
    const moved = movePathKey(path, from, to);
    if (moved !== undefined) failedPaths.add(moved);
  }
}

/** A path as the key of a map. */
export function pathKey(path: Path): string {
  return JSON.stringify(path);
}
