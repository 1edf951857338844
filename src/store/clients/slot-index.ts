import type { ClientSlot } from '../../core/admission/client-allowance.ts';
import { hashKey, joinKey } from './key-hash.ts';
import type { SlotKeys } from './slot-keys.ts';

const INITIAL_BUCKETS = 64;
/** The maximum load factor. */
const MAX_LOAD_FACTOR = 3 / 4;

/**
 * Finds the slot of a key: a hash table with linear probing in a typed array (Knuth, TAOCP 6.4, algorithms L and R). A `Map`
 * would hold the keys as strings: a million objects for the garbage collector to visit.
 */
export class SlotIndex {
  readonly #keys: SlotKeys;
  /** Pairs of a hash and a slot + 1, which is 0 in a free bucket. */
  #buckets = new Int32Array(2 * INITIAL_BUCKETS);
  #mask = INITIAL_BUCKETS - 1;
  #size = 0;

  constructor(keys: SlotKeys) {
    this.#keys = keys;
  }

  get size(): number {
    return this.#size;
  }

  /** @param prefix precedes the key, with a NUL between. Joining them would cost more than the whole lookup. */
  get(key: string, prefix?: string): ClientSlot | undefined {
    const hash = hashKey(key, prefix);
    for (let bucket = hash & this.#mask; ; bucket = (bucket + 1) & this.#mask) {
      const slot = this.#slotAt(bucket);
      if (slot < 0) return undefined;
      if (this.#buckets[2 * bucket] === hash && this.#keys.matches(slot, key, prefix)) return slot;
    }
  }

  /** Assigns a slot without a key to a key without a slot. */
  set(slot: ClientSlot, key: string, prefix?: string): void {
    if (this.#size >= MAX_LOAD_FACTOR * (this.#mask + 1)) this.#grow();
    this.#keys.set(slot, joinKey(key, prefix));
    this.#put(hashKey(key, prefix), slot);
    this.#size += 1;
  }

  /** Removes the slot's key. */
  delete(slot: ClientSlot): void {
    const mask = this.#mask;
    let hole = hashKey(this.#keys.get(slot)) & mask;
    for (let at = this.#slotAt(hole); at !== slot; at = this.#slotAt(hole)) {
      if (at < 0) return;
      hole = (hole + 1) & mask;
    }
    // Entries that follow move up, unless that would put them before their own bucket.
    for (let next = (hole + 1) & mask; this.#slotAt(next) >= 0; next = (next + 1) & mask) {
      const away = (next - this.#hashAt(next)) & mask;
      if (away < ((next - hole) & mask)) continue;
      this.#buckets.copyWithin(2 * hole, 2 * next, 2 * next + 2);
      hole = next;
    }
    this.#buckets[2 * hole + 1] = 0;
    this.#size -= 1;
  }

  #put(hash: number, slot: ClientSlot): void {
    let bucket = hash & this.#mask;
    while (this.#slotAt(bucket) >= 0) bucket = (bucket + 1) & this.#mask;
    this.#buckets[2 * bucket] = hash;
    this.#buckets[2 * bucket + 1] = slot + 1;
  }

  #grow(): void {
    const buckets = this.#buckets;
    this.#buckets = new Int32Array(2 * buckets.length);
    this.#mask = buckets.length - 1;
    for (let i = 0; i < buckets.length; i += 2) {
      const slot = (buckets[i + 1] ?? 0) - 1;
      if (slot >= 0) this.#put(buckets[i] ?? 0, slot);
    }
  }

  #hashAt(bucket: number): number {
    return this.#buckets[2 * bucket] ?? 0;
  }

  /** −1 if the bucket is free. */
  #slotAt(bucket: number): ClientSlot {
    return (this.#buckets[2 * bucket + 1] ?? 0) - 1;
  }
}
