import type { ClientSlot } from '../../core/admission/client-allowance.ts';
import { joinKey } from './key-hash.ts';

/** Bytes for one key: its length, and as many characters at most. */
const CELL = 56;
/** In place of a length: the key is kept as a string. */
const LONG = 255;

/**
 * The key of each slot, as bytes in the records of others: what a collector does not look at. A million strings are a
 * million objects for it to visit. Keys that are longer, or not of Latin-1, are kept as strings.
 */
export class SlotKeys {
  readonly #record: number;
  readonly #offset: number;
  readonly #long = new Map<ClientSlot, string>();
  #bytes = new Uint8Array(0);

  /** @param record bytes of one; 56 of them, from `offset` on, are for the key */
  constructor(record: number, offset: number) {
    this.#record = record;
    this.#offset = offset;
  }

  /** The records are elsewhere now. */
  move(bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes = bytes;
  }

  set(slot: ClientSlot, key: string): void {
    const cell = this.#cellOf(slot);
    if (this.#bytes[cell] === LONG) this.#long.delete(slot);
    if (this.#write(cell, key)) return;
    this.#bytes[cell] = LONG;
    this.#long.set(slot, key);
  }

  get(slot: ClientSlot): string {
    const cell = this.#cellOf(slot);
    const length = this.#bytes[cell] ?? 0;
    if (length === LONG) return this.#long.get(slot) ?? '';
    return String.fromCharCode(...this.#bytes.subarray(cell + 1, cell + 1 + length));
  }

  /** Whether it is the key of that slot: joined to what stands before it, without being joined. */
  is(slot: ClientSlot, key: string, prefix?: string): boolean {
    const bytes = this.#bytes;
    const cell = this.#cellOf(slot);
    const length = bytes[cell];
    if (length === LONG) return this.#long.get(slot) === joinKey(key, prefix);
    if (prefix === undefined) return length === key.length && holds(bytes, cell + 1, key);
    const middle = cell + 1 + prefix.length;
    return (
      length === prefix.length + 1 + key.length &&
      holds(bytes, middle + 1, key) && // first: here keys differ
      bytes[middle] === 0 &&
      holds(bytes, cell + 1, prefix)
    );
  }

  #cellOf(slot: ClientSlot): number {
    return this.#record * slot + this.#offset;
  }

  /** Returns whether it fits. */
  #write(cell: number, key: string): boolean {
    if (key.length >= CELL) return false;
    this.#bytes[cell] = key.length;
    for (let i = 0; i < key.length; i += 1) {
      const unit = key.charCodeAt(i);
      if (unit > 0xff) return false;
      this.#bytes[cell + 1 + i] = unit;
    }
    return true;
  }
}

function holds(bytes: Uint8Array, from: number, text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (bytes[from + i] !== text.charCodeAt(i)) return false;
  return true;
}
