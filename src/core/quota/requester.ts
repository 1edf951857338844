/** Who sent a request, as far as a quota may distinguish requests. Each part is undefined if unknown. */
export interface Requester {
  /** The credential it authenticates with; 0 for none. */
  readonly credential: number | undefined;
  readonly client: number | undefined;
  /** The address of the client. */
  readonly address?: number | undefined;
}

/** Stands for all requesters. */
export const ANY_REQUESTER: Requester = { credential: undefined, client: undefined };

/** The requester that a quota in force covers. */
export interface QuotaOwner extends Requester {
  /** Whether other clients of the credential were reported the same quota, so that it covers all of them. */
  readonly isCommon: boolean;
  /** The quota is spent until then; −Infinity if some of it is left. */
  readonly until: number;
  /** Whether the upstream reported it as spent. Else it counts as used up by requests sent since, of any requester. */
  readonly isSpent: boolean;
}

/** Whether both are known and differ. */
export function areKnownDifferent(one: number | undefined, other: number | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

/** Whether the quota covers this requester. It covers another client only if it was reported to several. */
export function quotaCovers(owner: QuotaOwner, { credential, client }: Requester): boolean {
  return (
    !areKnownDifferent(owner.credential, credential) && (owner.isCommon || !areKnownDifferent(owner.client, client))
  );
}

/** The key of a hold of one client with one credential, or with any if that is unknown. It differs from every client hash. */
export function requesterKey({ client, credential }: Requester): string {
  return `${client ?? '*'}+${credential ?? '*'}`;
}

/** The prefix of all requester keys of one client. @param client its hash */
export function requesterKeyPrefix(client: string): string {
  return `${hashToNumber(client)}+`;
}

/** Returns the client prefix of a requester key. */
export function clientPrefixOfKey(key: string): string {
  return key.slice(0, key.indexOf('+') + 1);
}

/** Whether the key was made by `requesterKey`. */
export function isRequesterKey(key: string): boolean {
  return key.includes('+');
}

const MULTIPLIER_1 = 2_654_435_761;
const MULTIPLIER_2 = 1_597_334_677;

/**
 * Maps a hash to a number of 53 bits (cyrb53, public domain), so that it can be stored among numbers; 0 for the empty
 * string. It hides nothing: the input must be a keyed hash already.
 */
export function hashToNumber(hash: string): number {
  if (hash === '') return 0;
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  for (let i = 0; i < hash.length; i += 1) {
    const code = hash.charCodeAt(i);
    high = Math.imul(high ^ code, MULTIPLIER_1);
    low = Math.imul(low ^ code, MULTIPLIER_2);
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909);
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  return 4_294_967_296 * (2_097_151 & low) + (high >>> 0);
}
