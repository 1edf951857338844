/** Who sent a request, as far as an upstream's quota may tell requests apart. Each is undefined where it is not known. */
export interface Requester {
  /** What it authenticates with; 0 for nothing. */
  readonly credential: number | undefined;
  readonly client: number | undefined;
  /** Of its client, as far as it is known. */
  readonly address?: number | undefined;
}

/** What is said of it holds for everybody. */
export const ANYBODY: Requester = { credential: undefined, client: undefined };

/** Whom a quota is about that is in force. */
export interface QuotaOwner extends Requester {
  /** Other clients of the same credential were told the same: it holds for all of them. */
  readonly isCommon: boolean;
  /** Nothing of it is left until then; −Infinity where something is. */
  readonly until: number;
  /** The upstream says so; else what was sent since is taken to have used it up, whoever sent it. */
  readonly isSpent: boolean;
}

/** Two that are both known, and are not the same. */
export function differ(one: number | undefined, other: number | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

/** Whether it is about this one too. A client that was not answered yet is taken to be like another only once two were. */
export function isOf(owner: QuotaOwner, { credential, client }: Requester): boolean {
  return !differ(owner.credential, credential) && (owner.isCommon || !differ(owner.client, client));
}

/** What a hold is remembered by that is of one client with one credential, or with any where that is not known. No client's hash looks so. */
export function keyOfRequester({ client, credential }: Requester): string {
  return `${client ?? '*'}+${credential ?? '*'}`;
}

/** What all keys of one client begin with. @param client its hash */
export function prefixOf(client: string): string {
  return `${numberOf(client)}+`;
}

/** The same, of a key. */
export function clientOf(key: string): string {
  return key.slice(0, key.indexOf('+') + 1);
}

/** Whether `keyOfRequester` made it. */
export function isOfRequester(key: string): boolean {
  return key.includes('+');
}

const GOLDEN = 2_654_435_761;
const SILVER = 1_597_334_677;

/**
 * A number of 53 bits for a hash, so that it travels with other numbers; 0 for the empty text. It hides nothing (cyrb53, public
 * domain): what it is made of has to be a keyed hash already.
 */
export function numberOf(hash: string): number {
  if (hash === '') return 0;
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  for (let i = 0; i < hash.length; i += 1) {
    const code = hash.charCodeAt(i);
    high = Math.imul(high ^ code, GOLDEN);
    low = Math.imul(low ^ code, SILVER);
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909);
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  return 4_294_967_296 * (2_097_151 & low) + (high >>> 0);
}
