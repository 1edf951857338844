import type { ClientSlot } from '../../core/admission/client-allowance.ts';
import type { Millis } from '../../core/scalars.ts';
import { SlotKeys } from './slot-keys.ts';
import { SlotList } from './slot-list.ts';

/** The size of one record: two cache lines. */
const RECORD_BYTES = 128;
const RECORD_WORDS = RECORD_BYTES / 4;
const RECORD_DOUBLES = RECORD_BYTES / 8;

/** The offsets of the first seven doubles of a record. */
const FIELD_OFFSETS = {
  arrivedAt: 0,
  previousAt: 1,
  demand: 2,
  cutTo: 3,
  refusedAt: 4,
  heldUntil: 5,
  promisedAt: 6,
} as const;
/** In place of an eighth double: a 32-bit word, two bytes and a 16-bit word. */
const OPEN_REQUESTS_WORD = 14;
const STATE_BYTE = 60;
const FLAGS_BYTE = 61;
const PROMISE_SPAN_HALF = 31;
const RECORD_HALVES = RECORD_BYTES / 2;
/** The bits of the flags. */
const STILL_REFUSED = 1;
const PROMISE_KEPT_BY_LIMIT = 2;
/** In milliseconds: as much as 16 bits hold. */
const MAX_PROMISE_SPAN: Millis = 0xffff;
/** The second cache line: the links of a list, and the key. */
const LINKS_WORD = 16;
const KEY_BYTE = 72;

/**
 * The record of each client, in one buffer. A decision reads most of a record, and with a million clients none of it is in a
 * cache: in an array for each field, each field would be a cache miss of its own.
 */
export class ClientRecords {
  readonly keys = new SlotKeys(RECORD_BYTES, KEY_BYTE);
  /** The links of the owner's list of evictable clients. */
  readonly evictionList = new SlotList(RECORD_WORDS, LINKS_WORD);
  #doubles = new Float64Array(0);
  #words = new Int32Array(0);
  #halves = new Uint16Array(0);
  #bytes = new Uint8Array(0);
  /** A copy of the states, close together, for scans of all clients. */
  #states = new Uint8Array(0);

  /** The number of slots that there is room for. */
  get length(): number {
    return this.#states.length;
  }

  /** Makes room for slots below `length`. */
  grow(length: number): void {
    const doubles = new Float64Array(RECORD_DOUBLES * length);
    doubles.set(this.#doubles);
    this.#doubles = doubles;
    this.#words = new Int32Array(doubles.buffer);
    this.#halves = new Uint16Array(doubles.buffer);
    this.#bytes = new Uint8Array(doubles.buffer);
    this.evictionList.grow(length, this.#words);
    this.keys.attach(this.#bytes);
    const states = new Uint8Array(length);
    states.set(this.#states);
    this.#states = states;
  }

  /** Resets the record of a new client, all but the key. */
  clear(slot: ClientSlot): void {
    const first = RECORD_DOUBLES * slot;
    this.#doubles.fill(Number.NEGATIVE_INFINITY, first, first + 7);
    this.#doubles[first + FIELD_OFFSETS.demand] = 0;
    this.#doubles[first + FIELD_OFFSETS.cutTo] = 1;
    this.setOpenRequests(slot, 0);
    this.setStillRefused(slot, false);
    this.setPromises(slot, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY);
    this.setState(slot, 0);
  }

  /** Resets hold, allowance and promised return to those of a client that was never refused. */
  clearRefusals(slot: ClientSlot): void {
    for (const name of ['refusedAt', 'heldUntil'] as const) {
      this.set(slot, name, Number.NEGATIVE_INFINITY);
    }
    this.set(slot, 'cutTo', 1);
    this.setStillRefused(slot, false);
    this.setPromises(slot, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY);
  }

  get(slot: ClientSlot, name: keyof typeof FIELD_OFFSETS): number {
    return this.#doubles[RECORD_DOUBLES * slot + FIELD_OFFSETS[name]] ?? 0;
  }

  set(slot: ClientSlot, name: keyof typeof FIELD_OFFSETS, value: number): void {
    this.#doubles[RECORD_DOUBLES * slot + FIELD_OFFSETS[name]] = value;
  }

  /** The client's requests in progress. */
  openRequests(slot: ClientSlot): number {
    return this.#words[RECORD_WORDS * slot + OPEN_REQUESTS_WORD] ?? 0;
  }

  setOpenRequests(slot: ClientSlot, count: number): void {
    this.#words[RECORD_WORDS * slot + OPEN_REQUESTS_WORD] = count;
  }

  /** The first return time that its client has not used; `promisedAt` is the last. */
  firstPromise(slot: ClientSlot): Millis {
    return this.get(slot, 'promisedAt') - (this.#halves[RECORD_HALVES * slot + PROMISE_SPAN_HALF] ?? 0);
  }

  /** @param first forgotten if it is too far from the last */
  setPromises(slot: ClientSlot, last: Millis, first: Millis, isKeptByLimit = false): void {
    this.set(slot, 'promisedAt', last);
    this.#setFlag(slot, PROMISE_KEPT_BY_LIMIT, isKeptByLimit);
    const span = last - first;
    this.#halves[RECORD_HALVES * slot + PROMISE_SPAN_HALF] = span > 0 && span <= MAX_PROMISE_SPAN ? span : 0;
  }

  /** The names of the upstream and of the client, from the key. */
  nameOf(slot: ClientSlot): readonly [upstream: string, client: string] {
    const [upstream = '', client = ''] = this.keys.get(slot).split('\0');
    return [upstream, client];
  }

  /** The number of the client's state, as in `ClientStates`. */
  state(slot: ClientSlot): number {
    return this.#bytes[RECORD_BYTES * slot + STATE_BYTE] ?? 0;
  }

  setState(slot: ClientSlot, state: number): void {
    this.#bytes[RECORD_BYTES * slot + STATE_BYTE] = state;
    this.#states[slot] = state;
  }

  /** As `state`, faster for scans of all clients. */
  cachedState(slot: ClientSlot): number {
    return this.#states[slot] ?? 0;
  }

  isStillRefused(slot: ClientSlot): boolean {
    return this.#hasFlag(slot, STILL_REFUSED);
  }

  setStillRefused(slot: ClientSlot, is: boolean): void {
    this.#setFlag(slot, STILL_REFUSED, is);
  }

  /** See `ClientStore`. */
  isPromiseKeptByLimit(slot: ClientSlot): boolean {
    return this.#hasFlag(slot, PROMISE_KEPT_BY_LIMIT);
  }

  #hasFlag(slot: ClientSlot, flag: number): boolean {
    return ((this.#bytes[RECORD_BYTES * slot + FLAGS_BYTE] ?? 0) & flag) !== 0;
  }

  #setFlag(slot: ClientSlot, flag: number, is: boolean): void {
    const at = RECORD_BYTES * slot + FLAGS_BYTE;
    const others = (this.#bytes[at] ?? 0) & ~flag;
    this.#bytes[at] = is ? others | flag : others;
  }
}
