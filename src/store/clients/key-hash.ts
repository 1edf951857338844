const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;

/**
 * 32 bits of a key: FNV-1a over its UTF-16 units, mixed by the finalizer of MurmurHash3, for FNV's lowest bits are poor.
 * It resists nobody who chooses keys to collide: clients are told apart by keyed hashes, which nobody chooses.
 * @param prefix what stands before the key, and a NUL between: as if they had been joined
 */
export function hashKey(key: string, prefix?: string): number {
  let hash = OFFSET;
  if (prefix !== undefined) {
    for (let i = 0; i < prefix.length; i += 1) hash = Math.imul(hash ^ prefix.charCodeAt(i), PRIME);
    hash = Math.imul(hash, PRIME);
  }
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), PRIME);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

/** What `hashKey` hashes. */
export function joinKey(key: string, prefix?: string): string {
  return prefix === undefined ? key : `${prefix}\0${key}`;
}
