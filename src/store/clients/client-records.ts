import type { ClientSlot } from '../../core/admission/client-allowance.ts';
import { SlotKeys } from './slot-keys.ts';
import { SlotList } from './slot-list.ts';

/** Of one record: two lines of the processor's cache. */
const BYTES = 128;
const WORDS = BYTES / 4;
const DOUBLES = BYTES / 8;

/** Where each number stands among the first seven doubles of a record. */
const PLACES = {
  arrivedAt: 0,
  previousAt: 1,
  demand: 2,
  cutTo: 3,
  refusedAt: 4,
  heldUntil: 5,
  promisedAt: 6,
} as const;
/** In place of an eighth: a word, and two bytes. */
const USERS = 14;
const STATE = 60;
const STILL_REFUSED = 61;
/** The second line: the links of a list, and the key. */
const LINKS = 16;
const KEY = 72;

/**
 * What is remembered of each client, side by side in one buffer: a decision looks at all of it, and with a million
 * clients none of it is in a cache. In a column for each number, each would be fetched from memory on its own.
 */
export class ClientRecords {
  readonly keys = new SlotKeys(BYTES, KEY);
  /** Of those who may be forgotten, as the owner has it. */
  readonly list = new SlotList(WORDS, LINKS);
  #doubles = new Float64Array(0);
  #words = new Int32Array(0);
  #bytes = new Uint8Array(0);
  /** Once more, close together: for who goes through all. */
  #states = new Uint8Array(0);

  /** Slots that there is room for. */
  get length(): number {
    return this.#states.length;
  }

  /** Makes room for slots below `length`. */
  grow(length: number): void {
    const doubles = new Float64Array(DOUBLES * length);
    doubles.set(this.#doubles);
    this.#doubles = doubles;
    this.#words = new Int32Array(doubles.buffer);
    this.#bytes = new Uint8Array(doubles.buffer);
    this.list.grow(length, this.#words);
    this.keys.move(this.#bytes);
    const states = new Uint8Array(length);
    states.set(this.#states);
    this.#states = states;
  }

  /** Of one of whom nothing is known yet but the key. */
  clear(slot: ClientSlot): void {
    const first = DOUBLES * slot;
    this.#doubles.fill(Number.NEGATIVE_INFINITY, first, first + 7);
    this.#doubles[first + PLACES.demand] = 0;
    this.#doubles[first + PLACES.cutTo] = 1;
    this.setUsers(slot, 0);
    this.setStillRefused(slot, false);
    this.setState(slot, 0);
  }

  get(slot: ClientSlot, name: keyof typeof PLACES): number {
    return this.#doubles[DOUBLES * slot + PLACES[name]] ?? 0;
  }

  set(slot: ClientSlot, name: keyof typeof PLACES, value: number): void {
    this.#doubles[DOUBLES * slot + PLACES[name]] = value;
  }

  /** Requests of it that are not over. */
  users(slot: ClientSlot): number {
    return this.#words[WORDS * slot + USERS] ?? 0;
  }

  setUsers(slot: ClientSlot, users: number): void {
    this.#words[WORDS * slot + USERS] = users;
  }

  /** The number of its state. */
  state(slot: ClientSlot): number {
    return this.#bytes[BYTES * slot + STATE] ?? 0;
  }

  setState(slot: ClientSlot, state: number): void {
    this.#bytes[BYTES * slot + STATE] = state;
    this.#states[slot] = state;
  }

  /** As `state`, for who asks it of one after another. */
  listedState(slot: ClientSlot): number {
    return this.#states[slot] ?? 0;
  }

  isStillRefused(slot: ClientSlot): boolean {
    return this.#bytes[BYTES * slot + STILL_REFUSED] === 1;
  }

  setStillRefused(slot: ClientSlot, is: boolean): void {
    this.#bytes[BYTES * slot + STILL_REFUSED] = is ? 1 : 0;
  }
}
