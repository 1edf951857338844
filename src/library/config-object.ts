import type { Mistake, Path } from '../config/load/mistakes.ts';
import { formatPath } from '../config/load/mistakes.ts';
import { ConfigError } from './config-error.ts';

/**
 * An object as the text that the readers of configurations read. What it holds is meant as it stands: a `${` in it refers to
 * nothing.
 * @param name what mistakes in it are told of
 * @throws ConfigError for what is no object, and for one that no text can hold: a cycle, a BigInt
 */
export function writeObject(value: unknown, name: string): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ConfigError([mistakeOf(name, '', `must be an object, not ${kindOf(value)}`)]);
  }
  try {
    return JSON.stringify(value, (_, inner: unknown) =>
      typeof inner === 'string' ? inner.replaceAll('${', () => '$${') : inner,
    );
  } catch (error) {
    const [path, message] = findUnwritable(value, [], []) ?? [[], `cannot be read: ${String(error)}`];
    throw new ConfigError([withoutLines(mistakeOf(name, formatPath(path), message))]);
  }
}

/** Of an object nobody has lines to look for: the path says where. */
export function withoutLines({ file, path, message, ...rest }: Mistake): Mistake {
  const told = path === '' ? message : `${path}: ${message}`;
  return { ...rest, file, path, message: told, line: undefined, column: undefined };
}

function mistakeOf(file: string, path: string, message: string): Mistake {
  return { file, path, message, line: undefined, column: undefined, suggestion: undefined };
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
}

/** The first thing in it that JSON has no word for, and why. `above`: what holds it. */
function findUnwritable(value: unknown, path: Path, above: readonly unknown[]): readonly [Path, string] | undefined {
  if (typeof value === 'bigint') return [path, 'a BigInt is no number here'];
  if (typeof value !== 'object' || value === null) return undefined;
  if (above.includes(value)) return [path, 'holds itself'];
  const isList = Array.isArray(value);
  for (const [name, inner] of Object.entries(value)) {
    const found = findUnwritable(inner, [...path, isList ? Number(name) : name], [...above, value]);
    if (found !== undefined) return found;
  }
  return undefined;
}
