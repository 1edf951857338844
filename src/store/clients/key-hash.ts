const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/**
 * A 32-bit hash of a key: FNV-1a over its UTF-16 units, mixed by the finalizer of MurmurHash3, because the low bits of FNV
 * are poor. It does not resist chosen collisions: clients are named by keyed hashes, which they cannot choose.
 * @param prefix precedes the key, with a NUL between, as if joined
 */
export function hashKey(key: string, prefix?: string): number {
  let hash = FNV_OFFSET;
  if (prefix !== undefined) {
    for (let i = 0; i < prefix.length; i += 1) hash = Math.imul(hash ^ prefix.charCodeAt(i), FNV_PRIME);
    hash = Math.imul(hash, FNV_PRIME);
  }
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), FNV_PRIME);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

/** The key that `hashKey` hashes. */
export function joinKey(key: string, prefix?: string): string {
  return prefix === undefined ? key : `${prefix}\0${key}`;
}
