import { z } from 'zod';

/** One, or a list of them: `429` or `[403, 429]`. */
export function oneOrMany<T extends z.ZodType>(one: T) {
  return z.union([one, z.array(one).min(1)]);
}

/** Always a list. */
export function listOf<T>(written: T | readonly T[]): readonly T[] {
  return isList(written) ? written : [written];
}

function isList<T>(written: T | readonly T[]): written is readonly T[] {
  return Array.isArray(written);
}
