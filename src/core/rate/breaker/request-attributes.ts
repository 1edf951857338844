import { hashToNumber } from '../../quota/requester.ts';

/**
 * The attributes by which failures may concern a part of all requests, as numbers by `hashToNumber`, 0 if unknown: the
 * address, the client, the credential, the first one to four segments of the path, and the whole path.
 */
export type RequestAttributes = readonly number[];

const ADDRESS = 0;
const CLIENT = 1;
const CREDENTIAL = 2;
const PATH = 3;
const PATH_LEVELS = 4;
const WHOLE_PATH = PATH + PATH_LEVELS;
export const ATTRIBUTE_COUNT = WHOLE_PATH + 1;

/** The scope of all requests, and the attributes of a request of which nothing is known. */
export const ANY_REQUEST: RequestAttributes = [0, 0, 0, 0, 0, 0, 0, 0];

/** The kind of a block's scope: the `part` label of `tidegate_ratelimit_blocks`. */
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
 * @param address the hashed address of the client
 * @param credential see `Requester`
 * @param path as the upstream sees it, without the query; undefined if unknown
 * @param salt hashed with each path, because a path may name a client
 */
export function makeRequestAttributes(
  address: string,
  client: string,
  credential: number,
  path: string | undefined,
  salt: string,
): RequestAttributes {
  const attributes = [hashToNumber(address), hashToNumber(client), credential, 0, 0, 0, 0, 0];
  if (path === undefined) return attributes;
  attributes[WHOLE_PATH] = hashToNumber(salt + path);
  let end = 0;
  for (let level = 0; level < PATH_LEVELS; level += 1) {
    end = path.indexOf('/', end + 1);
    if (end < 0) end = path.length;
    attributes[PATH + level] = hashToNumber(salt + path.slice(0, end));
    if (end === path.length) break;
  }
  return attributes;
}

/** The attributes of a request of which only the client is known. */
export function attributesOfClient(client: string): RequestAttributes {
  const attributes = [...ANY_REQUEST];
  attributes[CLIENT] = hashToNumber(client);
  return attributes;
}

/** Whether a request with these attributes is within the scope. */
export function matchesAttributes(scope: RequestAttributes, attributes: RequestAttributes): boolean {
  for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) {
    const value = scope[i] ?? 0;
    if (value !== 0 && value !== attributes[i]) return false;
  }
  return true;
}

export function areSameAttributes(one: RequestAttributes, other: RequestAttributes): boolean {
  for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) if (one[i] !== other[i]) return false;
  return true;
}

/** The attributes that decide whether a request is within a scope: of the path, only the longest prefix, because its hash covers the others. */
export function definingAttributes(scope: RequestAttributes): number[] {
  const indexes: number[] = [];
  for (let i = 0; i < PATH; i += 1) if ((scope[i] ?? 0) !== 0) indexes.push(i);
  for (let i = WHOLE_PATH; i >= PATH; i -= 1) {
    if ((scope[i] ?? 0) === 0) continue;
    indexes.push(i);
    break;
  }
  return indexes;
}

/** The attributes that are equal in both; 0 for the others. */
export function commonAttributes(one: RequestAttributes, other: RequestAttributes): number[] {
  const common: number[] = [];
  for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) {
    const value = one[i] ?? 0;
    common.push(value === other[i] ? value : 0);
  }
  return common;
}

/** Undefined if unknown. */
export function addressNumberOf(attributes: RequestAttributes): number | undefined {
  return attributes[ADDRESS] === 0 ? undefined : attributes[ADDRESS];
}

/** 0 if unknown. */
export function clientNumberOf(attributes: RequestAttributes): number {
  return attributes[CLIENT] ?? 0;
}

/** The parts that a request may belong to: by path prefix, shortest first; by address, client, credential; by address or client and path. */
export function listCandidateParts(attributes: RequestAttributes): RequestAttributes[] {
  const parts: number[][] = [];
  for (let end = PATH; end <= WHOLE_PATH; end += 1) {
    if ((attributes[end] ?? 0) !== 0) parts.push(keepAttributes(attributes, PATH, end));
  }
  for (const whose of [ADDRESS, CLIENT, CREDENTIAL]) {
    if ((attributes[whose] ?? 0) !== 0) parts.push(keepAttributes(attributes, whose, whose));
  }
  for (const whose of [ADDRESS, CLIENT]) {
    const there = keepAttributes(attributes, PATH, WHOLE_PATH);
    there[whose] = attributes[whose] ?? 0;
    if (there[whose] !== 0) parts.push(there);
  }
  return parts;
}

/** The part of all requests from the sender of this one. @param sender the number of its address or of its client */
export function partOfSender(attributes: RequestAttributes, sender: number): number[] {
  const whose = attributes[ADDRESS] === sender ? ADDRESS : CLIENT;
  return keepAttributes(attributes, whose, whose);
}

/** Narrows a part to the address of this request. */
export function narrowToAddress(part: RequestAttributes, attributes: RequestAttributes): number[] {
  const own = [...part];
  own[ADDRESS] = attributes[ADDRESS] ?? 0;
  return own;
}

/** Keeps only the attributes from `first` to `last`. */
function keepAttributes(attributes: RequestAttributes, first: number, last: number): number[] {
  const part = [...ANY_REQUEST];
  for (let i = first; i <= last; i += 1) part[i] = attributes[i] ?? 0;
  return part;
}

/** The numbers of its path and of the first segments of that; none if it is unknown. */
export function pathNumbersOf(attributes: RequestAttributes): number[] {
  const numbers: number[] = [];
  for (let i = PATH; i < ATTRIBUTE_COUNT; i += 1) {
    const number = attributes[i] ?? 0;
    if (number !== 0 && !numbers.includes(number)) numbers.push(number);
  }
  return numbers;
}

/** Whether the part is defined by path alone. */
export function isPathOnly(part: RequestAttributes): boolean {
  return part[ADDRESS] === 0 && part[CLIENT] === 0 && part[CREDENTIAL] === 0;
}

export function classifyBlockedPart(scope: RequestAttributes): BlockedPart {
  const hasPath = scope[PATH] !== 0 || scope[WHOLE_PATH] !== 0;
  if (scope[CLIENT] !== 0) return hasPath ? 'client_path' : 'client';
  if (scope[ADDRESS] !== 0) return hasPath ? 'address_path' : 'address';
  if (scope[CREDENTIAL] !== 0) return hasPath ? 'credential_path' : 'credential';
  return hasPath ? 'path' : 'upstream';
}
