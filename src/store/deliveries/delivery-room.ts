import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';
import { type DeliveryCounters, EVICTED_CODES } from './delivery-counters.ts';
import type { DeliveryRows } from './delivery-rows.ts';
import { ALL_CODES } from './delivery-tables.ts';
import type { RowCounter } from './sender-totals.ts';

export interface DeliveryRoomOptions {
  readonly rows: DeliveryRows;
  readonly counters: DeliveryCounters;
  readonly maxCount: number;
  readonly maxBytes: number;
}

/** A sender has at most this many times what is free: one leaves a ninth to others, two leave a seventeenth. */
const MAX_PER_FREE = 8;

/** More than these would be removed to make room for one delivery: it is refused. */
const MAX_EVICTED = 1000;

/**
 * Bounds the number of rows and their bytes, and removes those whose time is over. Rows that are delivered or canceled are also removed
 * before, if there is no room for new ones else: first those of the sender with the most of them. Others never. Times are as they are
 * stored.
 */
export class DeliveryRoom {
  readonly #options: DeliveryRoomOptions;
  /** All rows that are over are kept until then. */
  #nextRemoval: Millis;
  /** Within the present transaction. */
  #appliedNextRemoval: Millis;
  #refused = 0;
  #refusedBytes = 0;

  constructor(options: DeliveryRoomOptions) {
    this.#options = options;
    this.#nextRemoval = this.#appliedNextRemoval = options.rows.nextRemoval();
  }

  get bounds(): readonly ResourceBound[] {
    const { counters, maxCount, maxBytes } = this.#options;
    const { count, bytes } = counters.lasting;
    return [
      { name: 'deliveries', used: count / maxCount, reached: this.#refused },
      { name: 'delivery_bytes', used: bytes / maxBytes, reached: this.#refusedBytes },
    ];
  }

  get nextRemoval(): Millis {
    return this.#nextRemoval;
  }

  /** A transaction begins. */
  begin(): void {
    this.#appliedNextRemoval = this.#nextRemoval;
  }

  /** It is stored. */
  commit(): void {
    this.#nextRemoval = this.#appliedNextRemoval;
  }

  /** A row that is over is kept until then. */
  onKept(until: Millis): void {
    this.#appliedNextRemoval = Math.min(this.#appliedNextRemoval, until);
  }

  /** Returns whether there is room for a message of so many bytes of this sender. */
  make(size: number, sender: string): boolean {
    const { counters } = this.#options;
    let full = this.#fullBy(counters.appliedLasting, size) ?? this.#fullFor(sender);
    for (let evicted = 0; full === undefined; evicted += 1) {
      const surplus = this.#fullBy(counters.applied, size);
      if (surplus === undefined) return true;
      if (evicted === MAX_EVICTED || !this.#evict()) full = surplus;
    }
    if (full === 'count') this.#refused += 1;
    else this.#refusedBytes += 1;
    return false;
  }

  /** Removes up to `limit` rows whose time is over. */
  removeOver(now: Millis, limit: number): void {
    const { rows } = this.#options;
    let left = limit;
    for (const code of ALL_CODES) {
      const numbers = left === 0 ? [] : rows.over(code, now, left);
      left -= numbers.length;
      for (const number of numbers) this.#remove(number);
    }
    this.#appliedNextRemoval = rows.nextRemoval();
  }

  #fullBy({ count, bytes }: RowCounter, size: number): 'count' | 'bytes' | undefined {
    const { maxCount, maxBytes } = this.#options;
    if (count >= maxCount) return 'count';
    return bytes + size > maxBytes ? 'bytes' : undefined;
  }

  /** The sender has so much that what is free is left to others. */
  #fullFor(sender: string): 'count' | 'bytes' | undefined {
    const { counters, maxCount, maxBytes } = this.#options;
    const [all, own] = [counters.appliedLasting, counters.appliedLastingOf(sender)];
    if (own.count >= MAX_PER_FREE * (maxCount - all.count)) return 'count';
    return own.bytes >= MAX_PER_FREE * (maxBytes - all.bytes) ? 'bytes' : undefined;
  }

  #evict(): boolean {
    const { rows, counters } = this.#options;
    const largest = counters.largestEvictable();
    for (const code of EVICTED_CODES) {
      const ofLargest = largest === undefined ? undefined : rows.firstOverOf(code, largest);
      const number = ofLargest ?? rows.over(code, Infinity, 1)[0];
      if (number === undefined) continue;
      this.#remove(number);
      return true;
    }
    return false;
  }

  #remove(number: number): void {
    const { rows, counters } = this.#options;
    const removed = rows.remove(number);
    if (removed !== undefined) counters.subtract(removed.code, removed.size, removed.sender);
  }
}
