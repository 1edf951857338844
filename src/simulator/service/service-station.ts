/**
 * A service that queues: workers that serve requests in the order of arrival (`fifo`), or all of them at once, each at a part of
 * the speed (`sharing`). Exact, in virtual time.
 *
 * All jobs in service progress at the same speed, so each ends in the order of the work that was done when it began, plus its own.
 * One heap by this sum serves both disciplines, and a change of the speed moves no entry.
 * Virtual time of processor sharing: Parekh and Gallager, IEEE/ACM Transactions on Networking 1 (1993).
 */
import type { Discipline } from '../../config/schema/service-schema.ts';
import type { Millis } from '../../core/scalars.ts';
import { EventQueue } from '../engine/event-queue.ts';
import { requireAtLeast } from '../limit-models/check-range.ts';
import type { Slowdown } from './slowdown.ts';
import { Slowness } from './slowdown.ts';

export interface StationSpec {
  /** ≥ 1. */
  readonly workers: number;
  /** `fifo` when absent. */
  readonly discipline?: Discipline;
  /** Each request at the service beyond `above` makes all of them slower by `slowdown`: 0.01 is one percent. */
  readonly thrashing?: { readonly above: number; readonly slowdown: number };
  readonly slowdowns?: readonly Slowdown[];
  /** Connections to a store behind the service. A request that waits for one keeps its worker. */
  readonly pool?: { readonly connections: number };
}

/** A request at the station. */
export interface Job {
  /** The time of a worker that it takes when the station is not slowed down, in ms. */
  readonly work: Millis;
  /** Then, the time of a connection of the pool. */
  readonly poolWork: Millis;
  /** Called once, at the end of both. */
  onServed(at: Millis): void;
}

export class ServiceStation {
  readonly #isSharing: boolean;
  readonly #thrashing: Required<StationSpec>['thrashing'];
  readonly #slowness: Slowness;
  readonly #pool: ServiceStation | undefined;
  /** By the work done at which they end. */
  readonly #inService = new EventQueue<Job>();
  /** All at time 0: in the order of arrival. */
  readonly #waiting = new EventQueue<Job>();
  #workers: number;
  /** Jobs that keep a worker while they are at the pool. */
  #atPool = 0;
  /** Work done for each job that was in service all the time, up to `#updatedAt`. */
  #workDone: Millis = 0;
  #updatedAt: Millis = 0;

  /** @throws RangeError when a number of the spec is out of its range */
  constructor({ workers, discipline = 'fifo', thrashing, slowdowns = [], pool }: StationSpec) {
    this.#workers = Math.floor(requireAtLeast(1, workers, 'workers'));
    this.#isSharing = discipline === 'sharing';
    this.#thrashing = thrashing ?? { above: Number.POSITIVE_INFINITY, slowdown: 0 };
    this.#slowness = new Slowness(slowdowns);
    this.#pool = pool === undefined ? undefined : new ServiceStation({ workers: pool.connections });
  }

  get workers(): number {
    return this.#workers;
  }

  /** Requests in service, at the pool or waiting. */
  get inFlight(): number {
    return this.#inService.size + this.#atPool + this.#waiting.size;
  }

  /** @param now must not decrease, over all calls */
  arrive(job: Job, now: Millis): void {
    this.advance(now);
    if (this.#hasFreeWorker()) this.#begin(job);
    else this.#waiting.push(0, job);
  }

  /** Jobs in service beyond a lowered number end. */
  setWorkers(workers: number, now: Millis): void {
    this.advance(now);
    this.#workers = Math.floor(requireAtLeast(1, workers, 'workers'));
    this.#beginWaiting();
  }

  /** When `advance` has something to do; Infinity when nothing is in service. */
  nextEventAt(): Millis {
    return Math.min(this.#nextOwnEventAt(), this.#pool?.nextEventAt() ?? Number.POSITIVE_INFINITY);
  }

  /** Ends every job that is due by then. */
  advance(now: Millis): void {
    for (;;) {
      const ownAt = this.#nextOwnEventAt();
      const poolAt = this.#pool?.nextEventAt() ?? Number.POSITIVE_INFINITY;
      const at = Math.min(ownAt, poolAt);
      if (at > now) break;
      this.#moveTo(at);
      if (poolAt <= ownAt) this.#pool?.advance(at);
      else if (this.#inService.nextAt <= this.#workDone + PRECISION) this.#endWork(at);
    }
    this.#moveTo(now);
  }

  /** The next end of work, or a change of the speed before it. */
  #nextOwnEventAt(): Millis {
    if (this.#inService.size === 0) return Number.POSITIVE_INFINITY;
    const endsAt = this.#updatedAt + Math.max(0, this.#inService.nextAt - this.#workDone) / this.#speed();
    return Math.min(endsAt, this.#slowness.nextChange(this.#updatedAt));
  }

  #moveTo(at: Millis): void {
    if (this.#inService.size > 0) this.#workDone += (at - this.#updatedAt) * this.#speed();
    this.#updatedAt = at;
  }

  /** Work done for each job in service in a millisecond. */
  #speed(): number {
    const { above, slowdown } = this.#thrashing;
    const share = this.#isSharing ? Math.min(1, this.#workers / this.#inService.size) : 1;
    return share / (this.#slowness.at(this.#updatedAt) * (1 + slowdown * Math.max(0, this.inFlight - above)));
  }

  #hasFreeWorker(): boolean {
    return this.#isSharing || this.#inService.size + this.#atPool < this.#workers;
  }

  #begin(job: Job): void {
    this.#inService.push(this.#workDone + job.work, job);
  }

  #beginWaiting(): void {
    while (this.#waiting.size > 0 && this.#hasFreeWorker()) {
      const next = this.#waiting.pop();
      if (next !== undefined) this.#begin(next);
    }
  }

  #endWork(at: Millis): void {
    const job = this.#inService.pop();
    if (job === undefined) return;
    if (this.#pool === undefined || job.poolWork <= 0) return this.#end(job, at);
    this.#atPool += 1;
    const onServed = (servedAt: Millis): void => {
      this.#atPool -= 1;
      this.#end(job, servedAt);
    };
    this.#pool.arrive({ work: job.poolWork, poolWork: 0, onServed }, at);
  }

  #end(job: Job, at: Millis): void {
    this.#beginWaiting();
    job.onServed(at);
  }
}

/** In milliseconds of work. Sums of fractional times are off by less. */
const PRECISION: Millis = 1e-6;
