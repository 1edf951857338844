import type { Limit } from '../limits/limit.ts';
import { Tally } from '../collections/counter-map.ts';
import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';

/** A weight of 1/8 for each new sample, as TCP smooths round trips (RFC 6298). */
const GAIN = 1 / 8;
/** Of the least that is to be expected: what is shorter counts at once, what is longer hardly. */
const GAIN_DOWN = 1 / 2;
const GAIN_UP = 1 / 32;
/** Times what is known. */
const LONGEST_SAMPLE = 2;
/** Answers of each connection until they are believed: the first one takes a handshake, in a process that is not warm yet. */
const LEARNED_AFTER = 2;

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
  /** How long an attempt has its connection: the mean, and the least to be expected; undefined where nothing is known yet. */
  #serviceTime: Millis | undefined;
  #leastTime: Millis = 0;
  /** Attempts that have ended. */
  #ended = 0;
  /** As many as there ever were at a time. */
  #connections = 0;
  /** When a request last got a connection. */
  #takenAt: Millis = Number.POSITIVE_INFINITY;

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
    this.#connections = Math.max(this.#connections, this.#underWay);
  }

  /** An attempt of this one needs its connection no more. @param took how long it had it */
  end(holder: string, took: Millis): void {
    this.#attempts.remove(holder);
    this.#underWay -= 1;
    this.#ended += 1;
    const known = this.#serviceTime ?? took;
    // One stream that goes on for an hour says little of how soon others end.
    const sample = Math.min(took, LONGEST_SAMPLE * known);
    const least = this.#serviceTime === undefined ? took : this.#leastTime;
    this.#serviceTime = known + GAIN * (sample - known);
    this.#leastTime = least + (sample < least ? GAIN_DOWN : GAIN_UP) * (sample - least);
  }

  /** Whether it has more than this part of all connections. */
  isBeyond(holder: string, part: number): boolean {
    return this.#attempts.of(holder) > part * this.connections;
  }

  /** All of them, busy or free. */
  get connections(): number {
    return this.#underWay + Math.max(0, this.#free());
  }

  /** Attempts that have or await a connection. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Who comes now has to wait. */
  get isAwaited(): boolean {
    return this.line.queue.size > 0 || this.isFull;
  }

  /**
   * How fast connections come free while all are busy: connections ÷ service time (Little's law), in whatever batches answers
   * come. Infinity where that is not known.
   */
  get rate(): PerSecond {
    return this.#serviceTime === undefined ? Number.POSITIVE_INFINITY : this.#perSecond(this.#serviceTime);
  }

  /** The same, at best: a process that has just started, or stands still for a moment, is faster soon. */
  get bestRate(): PerSecond {
    const isKnown = this.#serviceTime !== undefined && this.#ended >= LEARNED_AFTER * this.#connections;
    return isKnown ? this.#perSecond(this.#leastTime) : Number.POSITIVE_INFINITY;
  }

  #perSecond(serviceTime: Millis): PerSecond {
    this.#connections = Math.max(this.#connections, this.connections);
    return (1000 * this.#connections) / serviceTime;
  }

  /**
   * How long no request has got a connection while all are busy, else 0. The service time counts only attempts that have ended;
   * if the current ones hang, this is the only sign. The wait is expected to last as long again.
   */
  stalledFor(now: Millis): Millis {
    return this.isFull ? Math.max(0, now - this.#takenAt) : 0;
  }

  hold(now: Millis): void {
    this.#held += 1;
    this.#takenAt = now;
  }

  /** One that was admitted has been sent, or will not be. */
  giveBack(): void {
    this.#held -= 1;
  }
}
