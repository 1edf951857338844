import { numberOf } from '../../quota/requester.ts';

/**
 * Where a request comes from and what it asks for, as far as failures may be about a part of all requests: numbers as of
 * `numberOf`, 0 where one is not known. They are its address, its client, its credential, the first segments of its path
 * taken together (one, two, three, four of them), and its path.
 */
export type Source = readonly number[];

const ADDRESS = 0;
const CLIENT = 1;
const CREDENTIAL = 2;
const PATH = 3;
const LEVELS = 4;
const WHOLE_PATH = PATH + LEVELS;
export const SOURCE_NUMBERS = WHOLE_PATH + 1;

/** Of all requests, and of one of which nothing is known. */
export const ANYWHERE: Source = [0, 0, 0, 0, 0, 0, 0, 0];

/** What a block holds back: the `part` label of `tidegate_ratelimit_blocks`. */
export type BlockedPart = (typeof BLOCKED_PARTS)[number];
export const BLOCKED_PARTS = [
  'upstream',
  'path',
  'address',
  'address_path',
  'client',
  'client_path',
  'credential',
  'credential_path',
] as const;

/**
 * @param address of its client, hashed
 * @param credential as of `Requester`
 * @param path as the upstream sees it, without its query; undefined where it is not known
 * @param salt what the numbers of a path begin with: a path may name a client
 */
export function sourceOf(
  address: string,
  client: string,
  credential: number,
  path: string | undefined,
  salt: string,
): Source {
  const source = [numberOf(address), numberOf(client), credential, 0, 0, 0, 0, 0];
  if (path === undefined) return source;
  source[WHOLE_PATH] = numberOf(salt + path);
  let end = 0;
  for (let level = 0; level < LEVELS; level += 1) {
    end = path.indexOf('/', end + 1);
    if (end < 0) end = path.length;
    source[PATH + level] = numberOf(salt + path.slice(0, end));
    if (end === path.length) break;
  }
  return source;
}

/** Of a client of which nothing else is known. */
export function sourceOfClient(client: string): Source {
  const source = [...ANYWHERE];
  source[CLIENT] = numberOf(client);
  return source;
}

/** Whether it is about one of those requests. */
export function isWithin(scope: Source, source: Source): boolean {
  for (let i = 0; i < SOURCE_NUMBERS; i += 1) {
    const value = scope[i] ?? 0;
    if (value !== 0 && value !== source[i]) return false;
  }
  return true;
}

export function isSame(one: Source, other: Source): boolean {
  for (let i = 0; i < SOURCE_NUMBERS; i += 1) if (one[i] !== other[i]) return false;
  return true;
}

/** What both have in common. */
export function commonOf(one: Source, other: Source): number[] {
  const common: number[] = [];
  for (let i = 0; i < SOURCE_NUMBERS; i += 1) {
    const value = one[i] ?? 0;
    common.push(value === other[i] ? value : 0);
  }
  return common;
}

/** Undefined where it is not known. */
export function addressIn(source: Source): number | undefined {
  return source[ADDRESS] === 0 ? undefined : source[ADDRESS];
}

/** 0 where it is not known. */
export function clientIn(source: Source): number {
  return source[CLIENT] ?? 0;
}

/** What one request may be part of, the widest first: the beginnings of its path, its path, its address, client and credential, and the first two there. */
export function partsOf(source: Source): Source[] {
  const parts: number[][] = [];
  for (let end = PATH; end <= WHOLE_PATH; end += 1) if ((source[end] ?? 0) !== 0) parts.push(only(source, PATH, end));
  for (const whose of [ADDRESS, CLIENT, CREDENTIAL]) {
    if ((source[whose] ?? 0) !== 0) parts.push(only(source, whose, whose));
  }
  for (const whose of [ADDRESS, CLIENT]) {
    const there = only(source, PATH, WHOLE_PATH);
    there[whose] = source[whose] ?? 0;
    if (there[whose] !== 0) parts.push(there);
  }
  return parts;
}

/** The same part, of the requests that come from the address of this one. */
export function ofAddress(part: Source, source: Source): number[] {
  const own = [...part];
  own[ADDRESS] = source[ADDRESS] ?? 0;
  return own;
}

/** These of its numbers. */
function only(source: Source, first: number, last: number): number[] {
  const part = [...ANYWHERE];
  for (let i = first; i <= last; i += 1) part[i] = source[i] ?? 0;
  return part;
}

/** Whether it says nothing of who asks. */
export function isPath(part: Source): boolean {
  return part[ADDRESS] === 0 && part[CLIENT] === 0 && part[CREDENTIAL] === 0;
}

export function partOf(scope: Source): BlockedPart {
  const hasPath = scope[PATH] !== 0 || scope[WHOLE_PATH] !== 0;
  if (scope[CLIENT] !== 0) return hasPath ? 'client_path' : 'client';
  if (scope[ADDRESS] !== 0) return hasPath ? 'address_path' : 'address';
  if (scope[CREDENTIAL] !== 0) return hasPath ? 'credential_path' : 'credential';
  return hasPath ? 'path' : 'upstream';
}
