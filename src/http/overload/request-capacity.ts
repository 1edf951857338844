import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Random } from '../../core/scalars.ts';
import type { OverloadMonitor } from './overload-monitor.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import type { Problem } from '../response/problem.ts';
import { overloadProblem } from '../response/problem-details.ts';

export interface RequestCapacityOptions {
  /** Maximum of concurrent requests. */
  readonly maxRequests: number;
  readonly overload: OverloadMonitor;
  readonly random: Random;
}

/** Whether this process has capacity for another request. */
export class RequestCapacity {
  readonly #options: RequestCapacityOptions;
  /** Rejected requests whose response is not complete. */
  #responding = 0;
  #rejections = 0;

  constructor(options: RequestCapacityOptions) {
    this.#options = options;
  }

  /** @param count requests that take memory, without the rejected ones */
  bound(count: number): ResourceBound {
    const { maxRequests } = this.#options;
    return { name: 'requests', used: (count + this.#responding) / maxRequests, reached: this.#rejections };
  }

  /** Why there is no room for a new request; undefined if there is. @param count see `bound` */
  problemIfFull(count: number): Problem | undefined {
    const { maxRequests, random } = this.#options;
    if (count + this.#responding < maxRequests) return undefined;
    this.#rejections += 1;
    return overloadProblem('too_many_requests', random);
  }

  /**
   * Why a request must not begin: this process is overloaded; undefined if it may.
   * @param address see `OverloadMonitor.shouldShed`
   */
  problemIfOverloaded(address: () => string | undefined): Problem | undefined {
    const { overload, random } = this.#options;
    return overload.shouldShed(address) ? overloadProblem('overloaded', random) : undefined;
  }

  /** A rejected request counts until its response is complete. */
  countRejected(response: HttpServerResponse): void {
    this.#responding += 1;
    response.on('close', this.#onClosed);
  }

  readonly #onClosed = (): void => {
    this.#responding -= 1;
  };
}
