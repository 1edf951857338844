import type { Bound } from '../overload/resource-bound.ts';
import type { BackOff, Millis, Random } from '../exchange/attempt-outcome.ts';

/** Clients and resources that are remembered. One takes about 260 B (test/unit/polls.test.ts). */
const MOST = 10_000;
/** Who does not ask for so much longer than it was told to begins anew. */
const FORGOTTEN_AFTER: Millis = 300_000;

/** A client that has asked for a resource, and was told that it is not ready. */
interface Asked {
  /** How often it was asked for since the answer changed. */
  count: number;
  answer: string;
  at: Millis;
  /** What it was told to wait. */
  told: Millis;
  /** Of the back-off. */
  memory: number;
}

/** One more answer that says "not ready". */
export interface NotReady {
  /** Of its client and of what was asked for. */
  readonly key: string;
  /** The same as long as the answer is. */
  readonly answer: string;
  /** How often it was asked for to get it, ≥ 1. */
  readonly polls: number;
  readonly backOff: BackOff;
}

/** What a process remembers of polls: for whom it waits, and who asks again and again. */
export class Polls {
  readonly #most: number;
  /** The least recently asked first. */
  readonly #asked = new Map<string, Asked>();
  readonly #rooms = new Map<string, { waiting: number; most: number }>();
  #forgotten = 0;
  #turnedAway = 0;

  /** @param most clients and resources that are remembered */
  constructor(most = MOST) {
    this.#most = most;
  }

  /** One more is waited for on this route. False: as many are as may be. */
  enter(route: string, most: number): boolean {
    const room = this.#rooms.get(route) ?? { waiting: 0, most };
    room.most = most;
    this.#rooms.set(route, room);
    if (room.waiting >= most) {
      this.#turnedAway += 1;
      return false;
    }
    room.waiting += 1;
    return true;
  }

  leave(route: string): void {
    const room = this.#rooms.get(route);
    if (room !== undefined) room.waiting -= 1;
  }

  /**
   * When its client had better come back: later each time, as long as the answer stays the same. Who comes sooner than
   * it was told to is only told to wait for longer.
   */
  slow({ key, answer, polls, backOff }: NotReady, now: Millis, random: Random): Millis {
    const known = this.#asked.get(key);
    const goesOn = known !== undefined && known.answer === answer && now - known.at <= known.told + FORGOTTEN_AFTER;
    const before = goesOn ? known : { count: 0, told: 0, memory: 0 };
    const count = before.count + polls;
    const step = backOff.next(count - 1, before.memory, random);
    const told = step?.delay ?? before.told;
    this.#asked.delete(key);
    if (known === undefined && this.#asked.size >= this.#most) this.#forgetOldest();
    this.#asked.set(key, { count, answer, at: now, told, memory: step?.memory ?? before.memory });
    return told;
  }

  /** It is ready, or has failed. */
  forget(key: string): void {
    this.#asked.delete(key);
  }

  /** Nobody is remembered: there is nothing to forget. */
  get isEmpty(): boolean {
    return this.#asked.size === 0;
  }

  get bounds(): readonly Bound[] {
    const rooms = [...this.#rooms.values()].map(({ waiting, most }) => waiting / Math.max(1, most));
    return [
      { name: 'polls_waiting', used: Math.max(0, ...rooms), reached: this.#turnedAway },
      { name: 'polled_resources', used: this.#asked.size / this.#most, reached: this.#forgotten },
    ];
  }

  #forgetOldest(): void {
    const [oldest] = this.#asked.keys();
    if (oldest === undefined) return;
    this.#asked.delete(oldest);
    this.#forgotten += 1;
  }
}
