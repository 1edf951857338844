import type { Random } from '../../core/exchange/attempt-outcome.ts';
import type { Retransmission } from './retransmission.ts';

export interface SlottedChannelSettings {
  /** N, ≥ 1. */
  readonly users: number;
  /** Packets a slot when nobody is backlogged. Within [0, N]. */
  readonly load: number;
  readonly retransmission: Retransmission;
  readonly random: Random;
}

/** What a number of slots came to. */
export interface ChannelFigures {
  readonly slots: number;
  /** Packets a slot that came through. */
  readonly throughput: number;
  /** Users with a packet that has collided, at the beginning of a slot, on average. */
  readonly backlog: number;
  /** Slots from a packet's first sending to the end of the slot in which it came through, on average; `Infinity` when none did. */
  readonly delay: number;
  /** Packets that were given up. */
  readonly dropped: number;
}

const NOBODY = -1;
/** Slots of the wheel: who is due further ahead is passed by, once a turn. */
const WHEEL = 4096;

/**
 * Users of one slotted channel, each with one packet at most: two packets in a slot destroy each other. Those who wait hang in a
 * wheel of slots, so that a slot costs what happens in it, however many users there are.
 */
export class SlottedChannel {
  readonly #retransmission: Retransmission;
  readonly #random: Random;
  /** By the number of users without a packet: the chance that none of them begins. */
  readonly #silence: Float64Array;
  readonly #arrival: number;
  readonly #odds: number;
  readonly #first = new Int32Array(WHEEL).fill(NOBODY);
  readonly #next: Int32Array;
  readonly #due: Float64Array;
  readonly #since: Float64Array;
  readonly #collisions: Int32Array;
  readonly #memory: Float64Array;
  /** Users without a packet, as a stack. */
  readonly #idle: Int32Array;
  #idles: number;
  /** Who sends in this slot. */
  readonly #senders: Int32Array;
  #slot = 0;
  #counted = 0;
  #successes = 0;
  #backlog = 0;
  #delay = 0;
  #dropped = 0;

  constructor({ users, load, retransmission, random }: SlottedChannelSettings) {
    this.#retransmission = retransmission;
    this.#random = random;
    const arrival = Math.min(1, load / users);
    this.#arrival = arrival;
    this.#odds = arrival / (1 - arrival);
    this.#silence = Float64Array.from({ length: users + 1 }, (_, idle) => (1 - arrival) ** idle);
    this.#next = new Int32Array(users);
    this.#due = new Float64Array(users);
    this.#since = new Float64Array(users);
    this.#collisions = new Int32Array(users);
    this.#memory = new Float64Array(users);
    this.#idle = Int32Array.from({ length: users }, (_, user) => user);
    this.#idles = users;
    this.#senders = new Int32Array(users);
  }

  /** Forgets what has been counted: what follows is judged without how it began. */
  reset(): void {
    [this.#counted, this.#successes, this.#backlog, this.#delay, this.#dropped] = [0, 0, 0, 0, 0];
  }

  run(slots: number): void {
    const users = this.#next.length;
    for (let i = 0; i < slots; i += 1) {
      this.#backlog += users - this.#idles;
      const senders = this.#callBegins(this.#callDue());
      if (senders === 1) this.#succeed(this.#senders[0] ?? 0);
      else if (senders > 1) for (let each = 0; each < senders; each += 1) this.#collide(this.#senders[each] ?? 0);
      this.#slot += 1;
    }
    this.#counted += slots;
  }

  figures(): ChannelFigures {
    const slots = Math.max(1, this.#counted);
    const delay = this.#successes === 0 ? Number.POSITIVE_INFINITY : this.#delay / this.#successes;
    return {
      slots: this.#counted,
      throughput: this.#successes / slots,
      backlog: this.#backlog / slots,
      delay,
      dropped: this.#dropped,
    };
  }

  /** Takes from the wheel who sends now. @returns how many */
  #callDue(): number {
    const spoke = this.#slot % WHEEL;
    let user = this.#first[spoke] ?? NOBODY;
    if (user === NOBODY) return 0;
    let senders = 0;
    let kept = NOBODY;
    while (user !== NOBODY) {
      const after = this.#next[user] ?? NOBODY;
      if (this.#due[user] === this.#slot) {
        this.#senders[senders] = user;
        senders += 1;
      } else {
        this.#next[user] = kept;
        kept = user;
      }
      user = after;
    }
    this.#first[spoke] = kept;
    return senders;
  }

  /** Adds who begins. @returns how many send in all */
  #callBegins(senders: number): number {
    const begun = this.#drawBegun();
    for (let k = 0; k < begun; k += 1) {
      this.#idles -= 1;
      const user = this.#idle[this.#idles] ?? 0;
      this.#since[user] = this.#slot;
      this.#collisions[user] = 0;
      this.#memory[user] = 0;
      this.#senders[senders + k] = user;
    }
    return senders + begun;
  }

  /** How many begin: binomial, by inversion from none on. */
  #drawBegun(): number {
    const idles = this.#idles;
    let chance = this.#silence[idles] ?? 1;
    // The chance of none is too small for a double: each is asked.
    if (chance === 0) return this.#askEach();
    let u = this.#random();
    let begun = 0;
    while (begun < idles && u >= chance) {
      u -= chance;
      begun += 1;
      chance *= (this.#odds * (idles - begun + 1)) / begun;
    }
    return begun;
  }

  #askEach(): number {
    let begun = 0;
    for (let each = 0; each < this.#idles; each += 1) if (this.#random() < this.#arrival) begun += 1;
    return begun;
  }

  #succeed(user: number): void {
    this.#successes += 1;
    this.#delay += this.#slot - (this.#since[user] ?? 0) + 1;
    this.#rest(user);
  }

  #collide(user: number): void {
    const collisions = this.#collisions[user] ?? 0;
    const step = this.#retransmission.next(collisions, this.#memory[user] ?? 0, this.#random);
    if (step === undefined) {
      this.#dropped += 1;
      return this.#rest(user);
    }
    const due = this.#slot + step.slots;
    this.#collisions[user] = collisions + 1;
    this.#memory[user] = step.memory;
    this.#due[user] = due;
    this.#next[user] = this.#first[due % WHEEL] ?? NOBODY;
    this.#first[due % WHEEL] = user;
  }

  #rest(user: number): void {
    this.#idle[this.#idles] = user;
    this.#idles += 1;
  }
}
