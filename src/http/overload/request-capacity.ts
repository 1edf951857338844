import type { Bound } from '../../core/overload/resource-bound.ts';
import type { Random } from '../../core/exchange/attempt-outcome.ts';
import type { LoadWatch } from './overload-monitor.ts';
import type { Outbound } from '../server/server-response.ts';
import type { Problem } from '../response/problem-details.ts';
import { overload } from '../response/problem-details.ts';

export interface CapacityOptions {
  /** Requests at a time. */
  readonly requests: number;
  readonly load: LoadWatch;
  readonly random: Random;
}

/** What this process can take: of requests, and of work. */
export class Capacity {
  readonly #options: CapacityOptions;
  /** Turned away, and not rid of yet. */
  #leaving = 0;
  #refused = 0;

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  /** @param count requests that take memory, but for those turned away */
  bound(count: number): Bound {
    const { requests } = this.#options;
    return { name: 'requests', used: (count + this.#leaving) / requests, reached: this.#refused };
  }

  /** Why there is no room for a new request; undefined when there is. @param count as above */
  refuse(count: number): Problem | undefined {
    const { requests, random } = this.#options;
    if (count + this.#leaving < requests) return undefined;
    this.#refused += 1;
    return overload('too_many_requests', random);
  }

  /** Why a request that is about to begin is not to: this process has enough to do. */
  shed(): Problem | undefined {
    const { load, random } = this.#options;
    return load.sheds() ? overload('overloaded', random) : undefined;
  }

  /** One that is turned away takes its place until its answer is out of the way. */
  countLeaving(response: Outbound): void {
    this.#leaving += 1;
    response.on('close', this.#onLeft);
  }

  readonly #onLeft = (): void => {
    this.#leaving -= 1;
  };
}
