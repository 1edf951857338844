import type { Mistake, Path } from '../config/load/mistakes.ts';
import { formatPath } from '../config/load/mistakes.ts';
import { ConfigError } from './config-error.ts';

/**
 * Serialises a configuration object for the configuration parser. `${` is escaped, so that strings are taken literally and
 * not as references to environment variables.
 * @param name stands for the file in error messages
 * @throws ConfigError if the value is no object or cannot be serialised (a cycle, a BigInt)
 */
export function stringifyConfig(value: unknown, name: string): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ConfigError([mistakeOf(name, '', `must be an object, not ${kindOf(value)}`)]);
  }
  try {
    return JSON.stringify(value, (_, inner: unknown) =>
      typeof inner === 'string' ? inner.replaceAll('${', () => '$${') : inner,
    );
  } catch (error) {
    const [path, message] = findUnserializable(value, [], []) ?? [[], `cannot be read: ${String(error)}`];
    throw new ConfigError([withoutPosition(mistakeOf(name, formatPath(path), message))]);
  }
}

/** An object has no lines, so the message names the path instead of a position. */
export function withoutPosition({ file, path, message, ...rest }: Mistake): Mistake {
  const fullMessage = path === '' ? message : `${path}: ${message}`;
  return { ...rest, file, path, message: fullMessage, line: undefined, column: undefined };
}

function mistakeOf(file: string, path: string, message: string): Mistake {
  return { file, path, message, line: undefined, column: undefined, suggestion: undefined };
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
}

/** The first value that JSON cannot represent, with the reason. `above`: the objects that contain it. */
function findUnserializable(
  value: unknown,
  path: Path,
  above: readonly unknown[],
): readonly [Path, string] | undefined {
  if (typeof value === 'bigint') return [path, 'a BigInt is no number here'];
  if (typeof value !== 'object' || value === null) return undefined;
  if (above.includes(value)) return [path, 'holds itself'];
  const isList = Array.isArray(value);
  for (const [name, inner] of Object.entries(value)) {
    const found = findUnserializable(inner, [...path, isList ? Number(name) : name], [...above, value]);
    if (found !== undefined) return found;
  }
  return undefined;
}
