import type { Random } from '../../core/scalars.ts';
import type { Retransmission } from './retransmission.ts';

export interface SlottedChannelSettings {
  /** N, ≥ 1. */
  readonly users: number;
  /** Packets a slot when nobody is backlogged. Within [0, N]. */
  readonly load: number;
  readonly retransmission: Retransmission;
  readonly random: Random;
}

/** The result of a run of slots. */
export interface ChannelFigures {
  readonly slots: number;
  /** Successful packets a slot. */
  readonly throughput: number;
  /** Mean number of backlogged users at the start of a slot. */
  readonly backlog: number;
  /** Slots from a packet's first sending to the end of the slot in which it succeeded, mean; `Infinity` if none did. */
  readonly delay: number;
  /** Packets that were given up. */
  readonly dropped: number;
}

const NOBODY = -1;
/** Slots of the timing wheel. A packet due further ahead is skipped once a turn. */
const WHEEL_SLOTS = 4096;

/**
 * Users of one slotted channel, each with at most one packet: packets in the same slot collide. Backlogged users are kept in a
 * timing wheel, so that the cost of a slot does not depend on the number of users.
 */
export class SlottedChannel {
  readonly #retransmission: Retransmission;
  readonly #random: Random;
  /** By the number of idle users: the probability that none of them sends. */
  readonly #noArrivalProbability: Float64Array;
  readonly #arrival: number;
  readonly #odds: number;
  readonly #first = new Int32Array(WHEEL_SLOTS).fill(NOBODY);
  readonly #next: Int32Array;
  readonly #due: Float64Array;
  readonly #since: Float64Array;
  readonly #collisions: Int32Array;
  readonly #memory: Float64Array;
  /** Users without a packet, as a stack. */
  readonly #idle: Int32Array;
  #idleCount: number;
  /** The users that send in this slot. */
  readonly #senders: Int32Array;
  #slot = 0;
  #countedSlots = 0;
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
    this.#noArrivalProbability = Float64Array.from({ length: users + 1 }, (_, idle) => (1 - arrival) ** idle);
    this.#next = new Int32Array(users);
    this.#due = new Float64Array(users);
    this.#since = new Float64Array(users);
    this.#collisions = new Int32Array(users);
    this.#memory = new Float64Array(users);
    this.#idle = Int32Array.from({ length: users }, (_, user) => user);
    this.#idleCount = users;
    this.#senders = new Int32Array(users);
  }

  /** Resets the counts, so that the warm-up is not counted. */
  reset(): void {
    [this.#countedSlots, this.#successes, this.#backlog, this.#delay, this.#dropped] = [0, 0, 0, 0, 0];
  }

  run(slots: number): void {
    const users = this.#next.length;
    for (let i = 0; i < slots; i += 1) {
      this.#backlog += users - this.#idleCount;
      const senders = this.#addNewSenders(this.#takeDueSenders());
      if (senders === 1) this.#succeed(this.#senders[0] ?? 0);
      else if (senders > 1) for (let each = 0; each < senders; each += 1) this.#collide(this.#senders[each] ?? 0);
      this.#slot += 1;
    }
    this.#countedSlots += slots;
  }

  figures(): ChannelFigures {
    const slots = Math.max(1, this.#countedSlots);
    const delay = this.#successes === 0 ? Number.POSITIVE_INFINITY : this.#delay / this.#successes;
    return {
      slots: this.#countedSlots,
      throughput: this.#successes / slots,
      backlog: this.#backlog / slots,
      delay,
      dropped: this.#dropped,
    };
  }

  /** Takes the users due now from the wheel. @returns their number */
  #takeDueSenders(): number {
    const spoke = this.#slot % WHEEL_SLOTS;
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

  /** Adds users with a new packet. @returns the number of senders */
  #addNewSenders(senders: number): number {
    const begun = this.#drawArrivals();
    for (let k = 0; k < begun; k += 1) {
      this.#idleCount -= 1;
      const user = this.#idle[this.#idleCount] ?? 0;
      this.#since[user] = this.#slot;
      this.#collisions[user] = 0;
      this.#memory[user] = 0;
      this.#senders[senders + k] = user;
    }
    return senders + begun;
  }

  /** The number of new packets: binomial, by inversion from 0. */
  #drawArrivals(): number {
    const idles = this.#idleCount;
    let chance = this.#noArrivalProbability[idles] ?? 1;
    // The probability of zero underflows: draws for each user.
    if (chance === 0) return this.#drawArrivalsEach();
    let u = this.#random();
    let begun = 0;
    while (begun < idles && u >= chance) {
      u -= chance;
      begun += 1;
      chance *= (this.#odds * (idles - begun + 1)) / begun;
    }
    return begun;
  }

  #drawArrivalsEach(): number {
    let begun = 0;
    for (let each = 0; each < this.#idleCount; each += 1) if (this.#random() < this.#arrival) begun += 1;
    return begun;
  }

  #succeed(user: number): void {
    this.#successes += 1;
    this.#delay += this.#slot - (this.#since[user] ?? 0) + 1;
    this.#makeIdle(user);
  }

  #collide(user: number): void {
    const collisions = this.#collisions[user] ?? 0;
    const step = this.#retransmission.next(collisions, this.#memory[user] ?? 0, this.#random);
    if (step === undefined) {
      this.#dropped += 1;
      return this.#makeIdle(user);
    }
    const due = this.#slot + step.slots;
    this.#collisions[user] = collisions + 1;
    this.#memory[user] = step.memory;
    this.#due[user] = due;
    this.#next[user] = this.#first[due % WHEEL_SLOTS] ?? NOBODY;
    this.#first[due % WHEEL_SLOTS] = user;
  }

  #makeIdle(user: number): void {
    this.#idle[this.#idleCount] = user;
    this.#idleCount += 1;
  }
}
