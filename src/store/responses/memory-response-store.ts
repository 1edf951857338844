import { RecencyMap } from '../../core/collections/recency-map.ts';
import {
  MAX_EXPIRED,
  MAX_PER_WRITE,
  MAX_RESPONSES,
  type ResponseBounds,
  type ResponseStore,
  usedOfBounds,
  writeOfResponse,
} from '../../core/idempotency/response-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Clock, Millis } from '../../core/scalars.ts';

/** The bytes of all kept responses together. */
const MAX_BYTES = 32 * 1024 * 1024;
/** What an entry takes besides its bytes, about. */
const ENTRY_BYTES = 512;

interface Entry {
  readonly bytes: Buffer;
  readonly until: Millis;
}

/** Kept responses in the memory of this process. New ones evict the oldest. */
export class MemoryResponseStore implements ResponseStore {
  readonly #clock: Clock;
  readonly #max: ResponseBounds;
  readonly #entries = new RecencyMap<string, Entry>();
  /** The ids of the entries of each write. */
  readonly #ids = new Map<string, Set<string>>();
  #bytes = 0;
  #evicted = 0;

  constructor(clock: Clock, { maxCount = MAX_RESPONSES, maxBytes = MAX_BYTES }: Partial<ResponseBounds> = {}) {
    this.#clock = clock;
    this.#max = { maxCount, maxBytes };
  }

  get bounds(): readonly ResourceBound[] {
    return [{ name: 'kept_responses', used: this.#used, reached: this.#evicted }];
  }

  read(id: string, onRead: (bytes: Buffer | undefined, keptFor: Millis) => void): void {
    const entry = this.#entries.get(id);
    const keptFor = entry === undefined ? 0 : entry.until - this.#clock.now();
    onRead(keptFor > 0 ? entry?.bytes : undefined, keptFor);
  }

  keep(id: string, bytes: Buffer, lifetime: Millis, onKept: () => void): void {
    const now = this.#clock.now();
    this.#delete(id);
    const ids = this.#ids.get(writeOfResponse(id));
    if ((ids?.size ?? 0) < MAX_PER_WRITE) this.#add(id, bytes, now + lifetime);
    this.#removeOldest(now);
    onKept();
  }

  remove(write: string): void {
    for (const id of this.#ids.get(write) ?? []) this.#delete(id);
  }

  get #used(): number {
    return usedOfBounds(this.#max, this.#entries.size, this.#bytes);
  }

  #add(id: string, bytes: Buffer, until: Millis): void {
    this.#entries.set(id, { bytes, until });
    const write = writeOfResponse(id);
    const ids = this.#ids.get(write);
    if (ids === undefined) this.#ids.set(write, new Set([id]));
    else ids.add(id);
    this.#bytes += ENTRY_BYTES + bytes.length;
  }

  #delete(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#bytes -= ENTRY_BYTES + entry.bytes.length;
    const write = writeOfResponse(id);
    const ids = this.#ids.get(write);
    ids?.delete(id);
    if (ids?.size === 0) this.#ids.delete(write);
  }

  /** Removes the oldest while there are too many, and some of those whose time is over. */
  #removeOldest(now: Millis): void {
    let expired = 0;
    for (const [id, { until }] of this.#entries) {
      const isOver = until <= now;
      if (this.#used <= 1 && (!isOver || expired === MAX_EXPIRED)) break;
      if (isOver) expired += 1;
      else this.#evicted += 1;
      this.#delete(id);
    }
  }
}
