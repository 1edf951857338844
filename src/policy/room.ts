import type { Limit } from './limit.ts';
import { Tally } from './tally.ts';
import type { Millis, PerSecond } from './types.ts';

/** A weight of 1/8 for each new interval, as TCP smooths round trips (RFC 6298). */
const SMOOTHING = 1 / 8;

/**
 * The connections to an upstream, as the gate sees them. A request beyond them waits in the fair queue, where the flood
 * of one client does not stand before the others, and not where connections are made.
 */
export class Room {
  /** Who waits for room. Under scope upstream it is the limit itself; else no limit of any request. */
  line: Limit;
  readonly #free: () => number;
  /** Admitted, and not sent yet. */
  #held = 0;
  /** Attempts under way, by who makes them. */
  readonly #attempts = new Tally();
  #underWay = 0;
  /** Between two places that came free while somebody waited; 0 where that is not known yet. */
  #interval: Millis = 0;
  #vacatedAt: Millis | undefined;

  /** @param free how many connections nobody uses */
  constructor(line: Limit, free: () => number) {
    this.line = line;
    this.#free = free;
  }

  get isFull(): boolean {
    return this.left <= 0;
  }

  /** Connections that nobody uses and nobody was promised. */
  get left(): number {
    return this.#free() - this.#held;
  }

  /** Somebody of those who wait has to go on waiting. */
  get isShort(): boolean {
    return this.left < this.line.queue.size;
  }

  /** An attempt of this one begins; it has or awaits a connection. @param holder a client, or those of one address */
  begin(holder: string): void {
    this.#attempts.add(holder);
    this.#underWay += 1;
  }

  /** An attempt of this one needs its connection no more. */
  end(holder: string): void {
    this.#attempts.remove(holder);
    this.#underWay -= 1;
  }

  /** Whether it has more than this part of all connections. */
  isBeyond(holder: string, part: number): boolean {
    return this.#attempts.of(holder) > part * (this.#underWay + Math.max(0, this.#free()));
  }

  /** Attempts that have or await a connection. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Who comes now has to wait. */
  get isAwaited(): boolean {
    return this.line.queue.size > 0 || this.isFull;
  }

  /** How fast places come free while they are waited for; Infinity where that is not known. */
  get rate(): PerSecond {
    return this.#interval === 0 ? Number.POSITIVE_INFINITY : 1000 / this.#interval;
  }

  hold(): void {
    this.#held += 1;
  }

  /** One that was admitted has been sent, or will not be. */
  giveBack(): void {
    this.#held -= 1;
  }

  /** A connection is free again. Returns whether somebody waits for one. */
  vacated(now: Millis): boolean {
    if (this.line.queue.size === 0) {
      this.#vacatedAt = undefined;
      this.#interval = 0;
      return false;
    }
    if (this.#vacatedAt !== undefined) {
      const sample = now - this.#vacatedAt;
      this.#interval += this.#interval === 0 ? sample : SMOOTHING * (sample - this.#interval);
    }
    this.#vacatedAt = now;
    return true;
  }
}
