import type { ClientSlot } from '../../core/admission/client-allowance.ts';
import { hashKey, joinKey } from './key-hash.ts';
import type { SlotKeys } from './slot-keys.ts';

const FIRST_PLACES = 64;
/** The share of places that may be taken. */
const FULL = 3 / 4;

/**
 * Which slot a key has: a hash table in a typed array, open to the next place (Knuth, TAOCP 6.4, algorithms L and R). A
 * `Map` would hold the keys as strings: a million objects for a collector to visit.
 */
export class SlotIndex {
  readonly #keys: SlotKeys;
  /** By twos: a hash, and a slot plus one; 0 where the place is free. */
  #places = new Int32Array(2 * FIRST_PLACES);
  #mask = FIRST_PLACES - 1;
  #size = 0;

  constructor(keys: SlotKeys) {
    this.#keys = keys;
  }

  get size(): number {
    return this.#size;
  }

  /** @param prefix what stands before the key, and a NUL between. Joining them costs more than all of this. */
  get(key: string, prefix?: string): ClientSlot | undefined {
    const hash = hashKey(key, prefix);
    for (let place = hash & this.#mask; ; place = (place + 1) & this.#mask) {
      const slot = this.#slotAt(place);
      if (slot < 0) return undefined;
      if (this.#places[2 * place] === hash && this.#keys.is(slot, key, prefix)) return slot;
    }
  }

  /** For a key that has no slot, and a slot that has no key. */
  set(slot: ClientSlot, key: string, prefix?: string): void {
    if (this.#size >= FULL * (this.#mask + 1)) this.#widen();
    this.#keys.set(slot, joinKey(key, prefix));
    this.#put(hashKey(key, prefix), slot);
    this.#size += 1;
  }

  /** Takes the slot's key away. */
  delete(slot: ClientSlot): void {
    const mask = this.#mask;
    let hole = hashKey(this.#keys.get(slot)) & mask;
    for (let at = this.#slotAt(hole); at !== slot; at = this.#slotAt(hole)) {
      if (at < 0) return;
      hole = (hole + 1) & mask;
    }
    // What follows moves up, unless it would then stand before its own place.
    for (let next = (hole + 1) & mask; this.#slotAt(next) >= 0; next = (next + 1) & mask) {
      const away = (next - this.#hashAt(next)) & mask;
      if (away < ((next - hole) & mask)) continue;
      this.#places.copyWithin(2 * hole, 2 * next, 2 * next + 2);
      hole = next;
    }
    this.#places[2 * hole + 1] = 0;
    this.#size -= 1;
  }

  #put(hash: number, slot: ClientSlot): void {
    let place = hash & this.#mask;
    while (this.#slotAt(place) >= 0) place = (place + 1) & this.#mask;
    this.#places[2 * place] = hash;
    this.#places[2 * place + 1] = slot + 1;
  }

  #widen(): void {
    const places = this.#places;
    this.#places = new Int32Array(2 * places.length);
    this.#mask = places.length - 1;
    for (let i = 0; i < places.length; i += 2) {
      const slot = (places[i + 1] ?? 0) - 1;
      if (slot >= 0) this.#put(places[i] ?? 0, slot);
    }
  }

  #hashAt(place: number): number {
    return this.#places[2 * place] ?? 0;
  }

  /** Below 0 where the place is free. */
  #slotAt(place: number): ClientSlot {
    return (this.#places[2 * place + 1] ?? 0) - 1;
  }
}
