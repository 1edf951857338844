import type { DeliveryStore, TakenDeliveries } from '../../core/delivery/delivery-store.ts';
import type { Delivery } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';
import { WorkerWakes, type WorkerWakesParts } from './worker-wakes.ts';

export interface WorkerClaimsParts extends WorkerWakesParts {
  readonly store: DeliveryStore;
  /** Attempts of a route that may be in progress at a time, by the configuration in effect; 0 if the route does not deliver. */
  readonly concurrencyOf: (route: string) => number;
  readonly wallClock: () => Millis;
  /** Calls `run` after the present callback of the event loop, and what has been resolved by it. */
  readonly soon: (run: () => void) => void;
}

/**
 * A worker whose attempt has ended takes the next delivery itself, within this time. If it does not, or deliveries are left for others,
 * another one is woken.
 */
const OWN_TAKE_WITHIN: Millis = 2;

/** The longest timer of Node. An earlier look than necessary does no harm. */
const LONGEST_TIMER: Millis = 2 ** 31 - 1;

interface WorkerClaim {
  readonly route: string;
  /** When it is due if its worker ends. */
  readonly dueAt: Millis;
}

/** The deliveries that workers have taken, and what they may take: of each route as many as may be in progress in all workers. */
export class WorkerClaims {
  readonly #parts: WorkerClaimsParts;
  readonly #wakes: WorkerWakes;
  /** What each worker has taken, by id. */
  readonly #byWorker = new Map<number, Map<string, WorkerClaim>>();
  /** Attempts in progress, by route. */
  readonly #inProgress = new Map<string, number>();
  /** When the next delivery of each route is due, as the last take has found; -Infinity: not known since a change. */
  readonly #dueAt = new Map<string, Millis>();
  #cancelTimer: (() => void) | undefined;
  #isReviewScheduled = false;

  constructor(parts: WorkerClaimsParts) {
    this.#parts = parts;
    this.#wakes = new WorkerWakes(parts);
  }

  join(worker: number): void {
    this.#byWorker.set(worker, new Map());
  }

  has(worker: number): boolean {
    return this.#byWorker.has(worker);
  }

  /** The worker has ended. What it had taken is due again at once. How its attempts ended is unknown, so they are not counted. */
  leave(worker: number): void {
    const claims = this.#byWorker.get(worker);
    this.#byWorker.delete(worker);
    for (const [id, { route, dueAt }] of claims ?? []) {
      this.#count(route, -1);
      this.#parts.store.postpone(id, dueAt, undefined);
    }
    this.stopTaking(worker);
  }

  /** The worker takes no more. What it has taken ends, or is postponed. */
  stopTaking(worker: number): void {
    this.#wakes.remove(worker);
    this.#scheduleReview();
  }

  /** Messages of the worker have arrived. @param isLook it takes deliveries of each route for which it can send more */
  onMessage(worker: number, isLook: boolean): void {
    if (isLook) this.#wakes.onLook(worker);
    else this.#wakes.onMessage(worker);
  }

  /** A stored change may have made a delivery of the route due, now or later. */
  onDue(route: string): void {
    this.#dueAt.set(route, -Infinity);
    if (this.#freePlaces(route) > 0) this.#wakes.want();
  }

  /** Takes deliveries for a worker: at most an equal part of the places that are free, so that all workers send. */
  async take(worker: number, route: string, now: Millis, limit: number): Promise<TakenDeliveries> {
    const { store } = this.#parts;
    const free = this.#freePlaces(route);
    const part = Math.ceil(free / Math.max(1, this.#wakes.ready));
    const places = Math.max(0, Math.min(limit, part));
    this.#count(route, places);
    const taken = await store.takeDue(route, now, places, this.#parts.concurrencyOf(route));
    const claims = this.#byWorker.get(worker);
    this.#count(route, (claims === undefined ? 0 : taken.deliveries.length) - places);
    for (const { delivery } of taken.deliveries) {
      const dueAt = earlierDueAt(delivery);
      claims?.set(delivery.id, { route, dueAt });
      if (claims === undefined) store.postpone(delivery.id, dueAt, undefined); // it has ended meanwhile
    }
    if (taken.deliveries.length > 0) this.#wakes.onTaken(worker);
    if (taken.nextDueAt === undefined) this.#dueAt.delete(route);
    else this.#dueAt.set(route, taken.nextDueAt);
    this.#scheduleReview();
    return taken;
  }

  /** An attempt has ended. @returns whether the worker had taken the delivery */
  release(worker: number, id: string): boolean {
    const claims = this.#byWorker.get(worker);
    const claim = claims?.get(id);
    if (claim === undefined) return false;
    claims?.delete(id);
    this.#count(claim.route, -1);
    this.#scheduleReview();
    return true;
  }

  /** Wakes nobody any more. */
  stop(): void {
    this.#byWorker.clear();
    this.#dueAt.clear();
    this.#wakes.stop();
    this.#cancelTimer?.();
  }

  #freePlaces(route: string): number {
    return this.#parts.concurrencyOf(route) - (this.#inProgress.get(route) ?? 0);
  }

  #count(route: string, change: number): void {
    const count = (this.#inProgress.get(route) ?? 0) + change;
    if (count === 0) this.#inProgress.delete(route);
    else this.#inProgress.set(route, count);
  }

  /** Sets the timer once for all messages that have arrived together. */
  #scheduleReview(): void {
    if (this.#isReviewScheduled) return;
    this.#isReviewScheduled = true;
    this.#parts.soon(() => {
      this.#isReviewScheduled = false;
      this.#setTimer();
    });
  }

  /** A look at the time when the next delivery is due that can be sent then. */
  #setTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    let dueAt = Infinity;
    for (const [route, at] of this.#dueAt) if (this.#freePlaces(route) > 0) dueAt = Math.min(dueAt, at);
    if (dueAt === Infinity) return;
    const delay = Math.min(LONGEST_TIMER, Math.max(OWN_TAKE_WITHIN, Math.ceil(dueAt - this.#parts.wallClock())));
    this.#cancelTimer = this.#parts.after(delay, () => this.#wakes.want());
  }
}

/** Not later than it was due before it was taken: if its worker ends, it does not wait behind those that were due after it. */
function earlierDueAt({ acceptedAt, lastAttempt }: Delivery): Millis {
  return lastAttempt === undefined ? acceptedAt : lastAttempt.at + lastAttempt.took;
}
