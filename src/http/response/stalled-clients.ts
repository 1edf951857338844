import type { TideEvent } from '../../core/events/proxy-events.ts';
import type { Clock, Millis } from '../../core/exchange/attempt-outcome.ts';

/** A client that keeps a connection to the upstream: it leaves an answer unread, or sends nothing of its body, or has done so before. */
export interface StalledReader {
  readonly upstream: string;
  /** Its client, or all clients of one address. */
  readonly holder: string;
  /** Since when it has read or sent nothing; Infinity while it does, or need not. */
  readonly since: Millis;
  /** Its exchange is broken off: others wait for the connection. */
  giveWay(): void;
}

export interface StalledReadersOptions {
  readonly clock: Clock;
  /** Connections to an upstream that nobody uses. */
  readonly free: (upstream: string) => number;
}

/** Who has read something within this time does not give way. */
const GRACE: Millis = 1000;

/**
 * Clients that leave answers unread or send nothing of their bodies, by upstream. While others wait for a connection there, those give way: first of the client
 * that keeps the most of them, the one that has read nothing for the longest time.
 */
export class StalledReaders {
  readonly #options: StalledReadersOptions;
  readonly #readers = new Map<string, Set<StalledReader>>();
  /** Requests that wait, by upstream. */
  readonly #waiting = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: StalledReadersOptions) {
    this.#options = options;
  }

  add(reader: StalledReader): void {
    const readers = this.#readers.get(reader.upstream);
    if (readers === undefined) this.#readers.set(reader.upstream, new Set([reader]));
    else readers.add(reader);
    if ((this.#waiting.get(reader.upstream) ?? 0) > 0) this.#lookIn(GRACE);
  }

  remove(reader: StalledReader): void {
    const readers = this.#readers.get(reader.upstream);
    if (readers?.delete(reader) === true && readers.size === 0) this.#readers.delete(reader.upstream);
  }

  /** Of the gate. */
  readonly listen = (event: TideEvent): void => {
    if (event.type === 'decision' && event.decision === 'queued') this.#count(event.upstream, 1);
    else if (event.type === 'dequeued') this.#count(event.upstream, -1);
  };

  #count(upstream: string, change: 1 | -1): void {
    const count = (this.#waiting.get(upstream) ?? 0) + change;
    if (count > 0) this.#waiting.set(upstream, count);
    else this.#waiting.delete(upstream);
    if (change > 0 && this.#readers.has(upstream)) this.#lookIn(0);
  }

  /** Never within the call of who tells: the gate is at work then. */
  #lookIn(delay: Millis): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#look, delay).unref();
  }

  readonly #look = (): void => {
    let next = Number.POSITIVE_INFINITY;
    for (const [upstream, waiting] of this.#waiting) next = Math.min(next, this.#makeRoom(upstream, waiting));
    if (next !== Number.POSITIVE_INFINITY) this.#lookIn(next);
  };

  /** @returns how long until another may give way; Infinity where none is needed */
  #makeRoom(upstream: string, waiting: number): Millis {
    const now = this.#options.clock.now();
    const readers = this.#readers.get(upstream) ?? new Set();
    if (readers.size === 0) return Number.POSITIVE_INFINITY;
    if (this.#options.free(upstream) > 0) return GRACE; // who waits waits for something else
    for (let lacking = waiting; lacking > 0; lacking -= 1) {
      const reader = worstOf(readers, now - GRACE);
      if (reader === undefined) break;
      this.remove(reader);
      reader.giveWay();
    }
    const oldest = Math.min(now, ...[...readers].map(({ since }) => since)); // one that reads may stall right after
    return Math.max(1, oldest + GRACE - now);
  }
}

/** Of those that have read nothing since `before`. */
function worstOf(readers: Iterable<StalledReader>, before: Millis): StalledReader | undefined {
  const held = new Map<string, number>();
  for (const { holder, since } of readers) {
    if (since !== Number.POSITIVE_INFINITY) held.set(holder, (held.get(holder) ?? 0) + 1);
  }
  let worst: StalledReader | undefined;
  for (const reader of readers) {
    if (reader.since > before) continue;
    const more = (held.get(reader.holder) ?? 0) - (worst === undefined ? 0 : (held.get(worst.holder) ?? 0));
    if (worst === undefined || more > 0 || (more === 0 && reader.since < worst.since)) worst = reader;
  }
  return worst;
}
