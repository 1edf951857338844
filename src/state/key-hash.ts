/**
 * 32 bits of a key: FNV-1a over its UTF-16 units, mixed by the finalizer of MurmurHash3, for FNV's lowest bits are poor.
 * It resists nobody who chooses keys to collide: clients are told apart by keyed hashes, which nobody chooses.
 */
export function hashKey(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
