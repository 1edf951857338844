/**
 * Credentials that have used a write's key, as of `WriteIdentity`, one for each time. Mostly there is none (0) or one, and 100 000 writes
 * are kept: only several make an object.
 */
export type Credentials = number | readonly number[];

export const NONE: Credentials = 0;

/** Of more, those are forgotten that are there twice, and then the oldest: a signature for each request is a credential too. */
const MOST = 16;

export function includes(some: Credentials, credential: number): boolean {
  return listOf(some).includes(credential);
}

export function countOf(some: Credentials): number {
  return listOf(some).length;
}

/** Once more. */
export function including(some: Credentials, credential: number): Credentials {
  const list = [...listOf(some), credential];
  if (list.length <= MOST) return compact(list);
  const twice = list.findIndex((each, i) => list.includes(each, i + 1));
  return compact(list.toSpliced(Math.max(0, twice), 1));
}

/** Once less. */
export function excludingOne(some: Credentials, credential: number): Credentials {
  const list = listOf(some);
  const at = list.indexOf(credential);
  return at < 0 ? some : compact(list.toSpliced(at, 1));
}

export function excluding(some: Credentials, credential: number): Credentials {
  return compact(listOf(some).filter((each) => each !== credential));
}

function listOf(some: Credentials): readonly number[] {
  if (typeof some !== 'number') return some;
  return some === NONE ? [] : [some];
}

function compact(some: readonly number[]): Credentials {
  return some.length > 1 ? some : (some[0] ?? NONE);
}
