import type { ResponseStore } from '../../core/idempotency/response-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Clock, Millis } from '../../core/scalars.ts';

/** For all kept responses together. */
const MAX_BYTES = 32 * 1024 * 1024;
/** What an entry takes besides its bytes, about. */
const ENTRY_BYTES = 256;

interface Entry {
  readonly bytes: Buffer;
  readonly until: Millis;
}

/** Kept responses in the memory of this process. New ones evict the oldest. */
export class MemoryResponseStore implements ResponseStore {
  readonly #clock: Clock;
  readonly #maxBytes: number;
  /** Oldest first. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #evicted = 0;

  constructor(clock: Clock, maxBytes = MAX_BYTES) {
    this.#clock = clock;
    this.#maxBytes = maxBytes;
  }

  get bounds(): readonly ResourceBound[] {
    return [{ name: 'kept_responses', used: this.#bytes / this.#maxBytes, reached: this.#evicted }];
  }

  read(id: string, onRead: (bytes: Buffer | undefined) => void): void {
    const entry = this.#entries.get(id);
    onRead(entry === undefined || entry.until <= this.#clock.now() ? undefined : entry.bytes);
  }

  keep(id: string, bytes: Buffer, lifetime: Millis, onKept: () => void): void {
    const now = this.#clock.now();
    this.remove(id);
    this.#entries.set(id, { bytes, until: now + lifetime });
    this.#bytes += ENTRY_BYTES + bytes.length;
    for (const [oldest, { until }] of this.#entries) {
      if (until > now && this.#bytes <= this.#maxBytes) break;
      if (until > now) this.#evicted += 1;
      this.remove(oldest);
    }
    onKept();
  }

  remove(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#bytes -= ENTRY_BYTES + entry.bytes.length;
  }
}
