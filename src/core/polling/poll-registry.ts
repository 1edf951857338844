import { QueueOccupancy, type QueueOccupant } from '../admission/queue-occupancy.ts';
import type { ResourceBound } from '../overload/resource-bound.ts';
import type { BackOff } from '../backoff/back-off.ts';
import { RecencyMap } from '../collections/recency-map.ts';
import type { Millis, Random } from '../scalars.ts';

/** Pairs of a client and a resource that are remembered. Each takes about 260 B (test/unit/exchange/poll-schedules.test.ts). */
const MAX_HISTORIES = 10_000;
/** A history ends if the client does not poll for this long after its Retry-After. */
const FORGOTTEN_AFTER: Millis = 300_000;

/** The polls of one client for one resource that is not ready. */
interface PollHistory {
  /** Polls since the response changed. */
  count: number;
  answer: string;
  at: Millis;
  /** The last Retry-After. */
  retryAfterMs: Millis;
  /** Of the back-off. */
  memory: number;
}

/** One more response that says "not ready". */
export interface NotReadyResponse {
  /** Identifies the client and the resource. */
  readonly key: string;
  /** Equal as long as the response does not change. */
  readonly answer: string;
  /** Polls that it took to get it, ≥ 1. */
  readonly polls: number;
  readonly backOff: BackOff;
}

/** The polls of a process: how many clients it polls for, and which clients poll again and again. */
export class PollRegistry {
  readonly #maxHistories: number;
  /** The least recently polled first. */
  readonly #histories = new RecencyMap<string, PollHistory>();
  readonly #waiters = new Map<string, { readonly occupancy: QueueOccupancy; max: number }>();
  #forgotten = 0;
  #rejected = 0;

  constructor(maxHistories = MAX_HISTORIES) {
    this.#maxHistories = maxHistories;
  }

  /**
   * Counts one more waiting request on this route.
   * @returns false if `maxWaiting` are waiting already, or the address has 8/9 of the places
   */
  tryAddWaiter(route: string, waiter: QueueOccupant, maxWaiting: number): boolean {
    const waiters = this.#waiters.get(route) ?? { occupancy: new QueueOccupancy(), max: maxWaiting };
    waiters.max = maxWaiting;
    this.#waiters.set(route, waiters);
    if (waiters.occupancy.isFull(waiter.fairnessKey, maxWaiting)) {
      this.#rejected += 1;
      return false;
    }
    waiters.occupancy.add(waiter);
    return true;
  }

  /** @param waiter as it was added */
  removeWaiter(route: string, waiter: QueueOccupant): void {
    this.#waiters.get(route)?.occupancy.remove(waiter);
  }

  /**
   * The Retry-After for a client that polls by itself: longer each time, as long as the response stays the same. A client that
   * comes too soon only gets a longer one.
   */
  nextRetryAfter({ key, answer, polls, backOff }: NotReadyResponse, now: Millis, random: Random): Millis {
    const history = this.#histories.get(key);
    const isUnchanged =
      history !== undefined && history.answer === answer && now - history.at <= history.retryAfterMs + FORGOTTEN_AFTER;
    const before = isUnchanged ? history : { count: 0, retryAfterMs: 0, memory: 0 };
    const count = before.count + polls;
    const step = backOff.next(count - 1, before.memory, random);
    const retryAfterMs = step?.delay ?? before.retryAfterMs;
    if (history === undefined && this.#histories.size >= this.#maxHistories) this.#forgetOldest();
    this.#histories.set(key, { count, answer, at: now, retryAfterMs, memory: step?.memory ?? before.memory });
    return retryAfterMs;
  }

  /** The result is ready, or has failed. */
  forget(key: string): void {
    this.#histories.delete(key);
  }

  get isEmpty(): boolean {
    return this.#histories.size === 0;
  }

  get bounds(): readonly ResourceBound[] {
    const used = [...this.#waiters.values()].map(({ occupancy, max }) => occupancy.size / Math.max(1, max));
    return [
      { name: 'polls_waiting', used: Math.max(0, ...used), reached: this.#rejected },
      { name: 'polled_resources', used: this.#histories.size / this.#maxHistories, reached: this.#forgotten },
    ];
  }

  #forgetOldest(): void {
    if (this.#histories.deleteOldest() !== undefined) this.#forgotten += 1;
  }
}
