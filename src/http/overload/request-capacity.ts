import { THRESHOLD_FACTOR } from '../../core/admission/queue-occupancy.ts';
import { CounterMap } from '../../core/collections/counter-map.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Random } from '../../core/scalars.ts';
import type { OverloadMonitor } from './overload-monitor.ts';
import type { Problem } from '../response/problem.ts';
import { overloadProblem } from '../response/problem-details.ts';

export interface RequestCapacityOptions {
  /** Maximum of concurrent requests. */
  readonly maxRequests: number;
  readonly overload: OverloadMonitor;
  readonly random: Random;
}

/**
 * Counts the requests that take memory, by address, and decides whether there is room for another. One address gets 8/9 of the room at
 * most (dynamic thresholds, Choudhury and Hahne 1998).
 */
export class RequestCapacity {
  readonly #options: RequestCapacityOptions;
  #size = 0;
  readonly #sizeBy = new CounterMap();
  /** Requests that were refused for lack of room, and whose response is not complete. */
  #refused = 0;
  #rejections = 0;

  constructor(options: RequestCapacityOptions) {
    this.#options = options;
  }

  get bound(): ResourceBound {
    const { maxRequests } = this.#options;
    return { name: 'requests', used: (this.#size + this.#refused) / maxRequests, reached: this.#rejections };
  }

  /** A request takes room, until `leave`. @param address see `senderAddress` */
  enter(address: string | undefined): void {
    this.#size += 1;
    if (address !== undefined) this.#sizeBy.increment(address);
  }

  leave(address: string | undefined): void {
    this.#size -= 1;
    if (address !== undefined) this.#sizeBy.decrement(address);
  }

  /**
   * Counts a request that was refused for lack of room, until the returned function is called: its response is complete. It takes no
   * room: otherwise, the refusals of an address that exceeds its part would take the room of others.
   */
  enterRefused(): () => void {
    this.#refused += 1;
    return this.#leaveRefused;
  }

  readonly #leaveRefused = (): void => {
    this.#refused -= 1;
  };

  /**
   * Why there is no room for a new request; undefined if there is.
   * @param address see `senderAddress`; called only while one address may have more than its part
   */
  problemIfFull(address: () => string | undefined): Problem | undefined {
    const left = this.#options.maxRequests - this.#size;
    if (left > 0 && !this.#exceedsPart(address, left)) return undefined;
    this.#rejections += 1;
    return overloadProblem('too_many_requests', this.#options.random);
  }

  #exceedsPart(address: () => string | undefined, left: number): boolean {
    const most = THRESHOLD_FACTOR * left;
    if (this.#size < most) return false;
    const sender = address();
    return sender !== undefined && this.#sizeBy.count(sender) >= most;
  }

  /**
   * Why a request must not begin: this process is overloaded; undefined if it may.
   * @param address see `OverloadMonitor.shouldShed`
   */
  problemIfOverloaded(address: () => string | undefined): Problem | undefined {
    const { overload, random } = this.#options;
    return overload.shouldShed(address) ? overloadProblem('overloaded', random) : undefined;
  }
}
