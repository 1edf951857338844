import type { ClientSlot } from '../../core/admission/client-allowance.ts';
import { joinKey } from './key-hash.ts';

/** The bytes for one key: its length, and up to 55 characters. */
const CELL_BYTES = 56;
/** In place of a length: the key is kept as a string. */
const LONG_KEY = 255;

/**
 * The key of each slot, as bytes in the owner's records: a million strings would be a million objects for the garbage
 * collector to visit. Longer keys, and those that are not Latin-1, are kept as strings.
 */
export class SlotKeys {
  readonly #recordBytes: number;
  readonly #offset: number;
  readonly #long = new Map<ClientSlot, string>();
  #bytes = new Uint8Array(0);

  /** @param recordBytes the size of a record, of which 56 bytes from `offset` on are for the key */
  constructor(recordBytes: number, offset: number) {
    this.#recordBytes = recordBytes;
    this.#offset = offset;
  }

  /** Sets the buffer of the records, after it has grown. */
  attach(bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes = bytes;
  }

  set(slot: ClientSlot, key: string): void {
    const cell = this.#cellOffset(slot);
    if (this.#bytes[cell] === LONG_KEY) this.#long.delete(slot);
    if (this.#write(cell, key)) return;
    this.#bytes[cell] = LONG_KEY;
    this.#long.set(slot, key);
  }

  get(slot: ClientSlot): string {
    const cell = this.#cellOffset(slot);
    const length = this.#bytes[cell] ?? 0;
    if (length === LONG_KEY) return this.#long.get(slot) ?? '';
    return String.fromCharCode(...this.#bytes.subarray(cell + 1, cell + 1 + length));
  }

  /** Whether a slot has this key, with this prefix and a NUL before it; compares without joining them. */
  matches(slot: ClientSlot, key: string, prefix?: string): boolean {
    const bytes = this.#bytes;
    const cell = this.#cellOffset(slot);
    const length = bytes[cell];
    if (length === LONG_KEY) return this.#long.get(slot) === joinKey(key, prefix);
    if (prefix === undefined) return length === key.length && bytesMatch(bytes, cell + 1, key);
    const middle = cell + 1 + prefix.length;
    return (
      length === prefix.length + 1 + key.length &&
      bytesMatch(bytes, middle + 1, key) && // first, because keys rarely share it
      bytes[middle] === 0 &&
      bytesMatch(bytes, cell + 1, prefix)
    );
  }

  #cellOffset(slot: ClientSlot): number {
    return this.#recordBytes * slot + this.#offset;
  }

  /** Returns whether it fits. */
  #write(cell: number, key: string): boolean {
    if (key.length >= CELL_BYTES) return false;
    this.#bytes[cell] = key.length;
    for (let i = 0; i < key.length; i += 1) {
      const unit = key.charCodeAt(i);
      if (unit > 0xff) return false;
      this.#bytes[cell + 1 + i] = unit;
    }
    return true;
  }
}

function bytesMatch(bytes: Uint8Array, from: number, text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (bytes[from + i] !== text.charCodeAt(i)) return false;
  return true;
}
