import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { OverloadSettings } from '../../core/overload/load-shedding.ts';
import { FairShedding } from '../../core/overload/fair-shedding.ts';
import { LoadShedder } from '../../core/overload/load-shedding.ts';
import type { Clock, Millis, Random } from '../../core/scalars.ts';
import { oldSpaceLimit, oldSpaceUsed } from './v8-heap.ts';

const SAMPLE_INTERVAL: Millis = 100;

/** Measures the delay of the event loop and the use of the heap, and decides which requests to shed. */
export class OverloadMonitor {
  readonly #settings: OverloadSettings;
  readonly #loadShedding: LoadShedder;
  readonly #fairShedding = new FairShedding();
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #listen: EventSink;
  readonly #heapLimit = oldSpaceLimit();
  #timer: NodeJS.Timeout | undefined;
  #sampledAt: Millis;
  #isOverloaded = false;
  /** Requests shed in this episode, and in total by cause. */
  #shedInEpisode = 0;
  readonly #shedBy = { event_loop: 0, heap: 0 };

  constructor(
    settings: OverloadSettings,
    { clock, random, listen }: { clock: Clock; random: Random; listen: EventSink },
  ) {
    this.#settings = settings;
    this.#loadShedding = new LoadShedder(settings);
    this.#clock = clock;
    this.#random = random;
    this.#listen = listen;
    this.#sampledAt = clock.now();
    this.#schedule();
  }

  get loadShedding(): LoadShedder {
    return this.#loadShedding;
  }

  get bounds(): readonly ResourceBound[] {
    const { delay, heapUsed: used } = this.#loadShedding;
    const { eventLoopDelay, heapUsed: share } = this.#settings;
    return [
      { name: 'event_loop', used: delay / eventLoopDelay, reached: this.#shedBy.event_loop },
      { name: 'heap', used: used / share, reached: this.#shedBy.heap },
    ];
  }

  /**
   * Whether to reject this request. The addresses with the most requests are shed first.
   * @param address returns the address that sent it, undefined if it is unknown; called only while requests are shed
   */
  shouldShed(address: () => string | undefined): boolean {
    const { shedShare } = this.#loadShedding;
    if (shedShare === 0 || this.#random() >= this.#shedProbability(shedShare, address())) return false;
    this.#shedInEpisode += 1;
    this.#shedBy[this.#loadShedding.cause] += 1;
    return true;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #shedProbability(shedShare: number, address: string | undefined): number {
    if (address === undefined) return shedShare;
    return this.#fairShedding.onArrival(address, shedShare, this.#clock.now());
  }

  #schedule(): void {
    this.#timer = setTimeout(this.#sample, SAMPLE_INTERVAL).unref();
  }

  readonly #sample = (): void => {
    const now = this.#clock.now();
    const elapsed = now - this.#sampledAt;
    this.#sampledAt = now;
    const shedding = this.#loadShedding;
    shedding.onSample(Math.max(0, elapsed - SAMPLE_INTERVAL), elapsed, oldSpaceUsed() / this.#heapLimit);
    if (shedding.isOverloaded !== this.#isOverloaded) this.#emitOverload();
    this.#schedule();
  };

  #emitOverload(): void {
    const { isOverloaded, cause, delay, heapUsed: used } = this.#loadShedding;
    this.#isOverloaded = isOverloaded;
    if (isOverloaded) this.#shedInEpisode = 0;
    this.#listen({ type: 'overload', began: isOverloaded, cause, delay, heapUsed: used, shed: this.#shedInEpisode });
  }
}
