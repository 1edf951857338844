import type { Bound } from '../../core/overload/resource-bound.ts';
import type { Listen } from '../../core/events/proxy-events.ts';
import type { OverloadSettings } from '../../core/overload/load-shedding.ts';
import { Shedding } from '../../core/overload/load-shedding.ts';
import type { Clock, Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import { heapLimit, heapUsed } from './v8-heap.ts';

const SAMPLE_EVERY: Millis = 100;

/** Watches how late this process's event loop is and how full its heap, and says which requests it had better not take. */
export class LoadWatch {
  readonly #settings: OverloadSettings;
  readonly #shedding: Shedding;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #listen: Listen;
  readonly #heapLimit = heapLimit();
  #timer: NodeJS.Timeout | undefined;
  #sampledAt: Millis;
  #isOverloaded = false;
  /** Shed in this episode, and in all. */
  #shed = 0;
  readonly #shedBy = { event_loop: 0, heap: 0 };

  constructor(settings: OverloadSettings, { clock, random, listen }: { clock: Clock; random: Random; listen: Listen }) {
    this.#settings = settings;
    this.#shedding = new Shedding(settings);
    this.#clock = clock;
    this.#random = random;
    this.#listen = listen;
    this.#sampledAt = clock.now();
    this.#schedule();
  }

  get shedding(): Shedding {
    return this.#shedding;
  }

  get bounds(): readonly Bound[] {
    const { delay, heapUsed: used } = this.#shedding;
    const { eventLoopDelay, heapUsed: share } = this.#settings;
    return [
      { name: 'event_loop', used: delay / eventLoopDelay, reached: this.#shedBy.event_loop },
      { name: 'heap', used: used / share, reached: this.#shedBy.heap },
    ];
  }

  /** Whether to turn this request away. */
  sheds(): boolean {
    const { share } = this.#shedding;
    if (share === 0 || this.#random() >= share) return false;
    this.#shed += 1;
    this.#shedBy[this.#shedding.cause] += 1;
    return true;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    this.#timer = setTimeout(this.#sample, SAMPLE_EVERY).unref();
  }

  readonly #sample = (): void => {
    const now = this.#clock.now();
    const elapsed = now - this.#sampledAt;
    this.#sampledAt = now;
    const shedding = this.#shedding;
    shedding.note(Math.max(0, elapsed - SAMPLE_EVERY), elapsed, heapUsed() / this.#heapLimit);
    if (shedding.isOverloaded !== this.#isOverloaded) this.#tell();
    this.#schedule();
  };

  #tell(): void {
    const { isOverloaded, cause, delay, heapUsed: used } = this.#shedding;
    this.#isOverloaded = isOverloaded;
    if (isOverloaded) this.#shed = 0;
    this.#listen({ type: 'overload', began: isOverloaded, cause, delay, heapUsed: used, shed: this.#shed });
  }
}
