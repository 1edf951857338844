import { z } from 'zod';

/** One value or a list: `429` or `[403, 429]`. */
export function oneOrMany<T extends z.ZodType>(one: T) {
  return z.union([one, z.array(one).min(1)]);
}

/** Always a list: empty for undefined. */
export function toList<T>(value: T | readonly T[] | undefined): readonly T[] {
  if (value === undefined) return [];
  return isList(value) ? value : [value];
}

function isList<T>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value);
}
