import { CounterMap } from '../collections/counter-map.ts';
import type { Limit } from './limit.ts';
import { ServiceTimes } from './service-times.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import { ACTIVITY_WINDOW, type ActiveClients } from '../admission/active-clients.ts';
import type { Ticket } from '../admission/ticket.ts';

/** Others that asked within this time may ask again at any moment: a client that holds most places leaves them the free ones. */
export const OTHERS_ACTIVE_FOR: Millis = 4000;
/** The same for a client that releases its places slowly, or never, as with event streams: nobody else would get one until then. */
export const OTHERS_EXPECTED_FOR: Millis = 60_000;
/** With fewer, others wait for a place longer than most of them may. */
export const MIN_RELEASE_RATE: PerSecond = 1;

/**
 * A number of places, each of which a request holds for a time: connections, or places in flight at a limit. Clients and addresses
 * (fairness keys) share the places themselves, not only the turns to take one: a client whose requests take long by themselves would
 * otherwise hold most of them.
 */
export abstract class SharedPlaces {
  /** Where tickets wait for a place. */
  queueLimit: Limit;
  readonly #activeClients: ActiveClients;
  readonly #heldByKey = new CounterMap();
  /** The service times of those that hold `#tracksFrom` places or more, until they hold none. */
  readonly #ownServiceTimes = new ServiceTimes();
  readonly #tracksFrom: number;
  readonly #othersExpectedFor: Millis;

  /**
   * @param tracksFrom service times are known of those that hold so many places or more, after as many samples
   * @param othersExpectedFor after their last request, how long a client that releases its places slowly leaves one to others
   */
  constructor(queueLimit: Limit, activeClients: ActiveClients, tracksFrom: number, othersExpectedFor: Millis) {
    this.queueLimit = queueLimit;
    this.#othersExpectedFor = othersExpectedFor;
    this.#activeClients = activeClients;
    this.#tracksFrom = tracksFrom;
  }

  /** The number of places, held or free. */
  abstract get size(): number;

  /** Whether a client, or an address, with more than its share leaves the free places to others that are active. */
  protected abstract leavesFreePlaces(fairnessKey: string, now: Millis): boolean;

  protected addHeld(fairnessKey: string): void {
    this.#heldByKey.increment(fairnessKey);
  }

  /** @param took how long the place was held; undefined if that says nothing of the next one */
  protected removeHeld(fairnessKey: string, took?: Millis): void {
    const left = this.#heldByKey.decrement(fairnessKey);
    if (left === 0) this.#ownServiceTimes.forget(fairnessKey);
    else if (took !== undefined && left + 1 >= this.#tracksFrom) this.#ownServiceTimes.learn(fairnessKey, took);
  }

  /** Places that a client, or an address, uses or has reserved. */
  protected heldBy(fairnessKey: string): number {
    return this.#heldByKey.count(fairnessKey);
  }

  /** Whether a client, or an address, has more than this share of the places. */
  exceedsShare(fairnessKey: string, share: number): boolean {
    return this.heldBy(fairnessKey) > share * this.size;
  }

  /** The part of the places that is the share of a client of this weight among the active ones, in (0, 1]. */
  shareOf(classWeight: number, now: Millis): number {
    const active = Math.max(this.#activeClients.totalWeight(now, classWeight), this.queueLimit.queue.activeWeight);
    return classWeight / active;
  }

  /**
   * How long this request leaves the free places to others at least, unless one is released before; 0 if it need not. A client, or an
   * address, that has more than its share takes none while few are free and others may ask for one (dynamic
   * thresholds, Choudhury and Hahne 1998): it may keep one for long, and they may need one the next moment.
   */
  yieldDelay({ fairnessKey, classWeight, isSentExternally }: Ticket, now: Millis): Millis {
    if (isSentExternally || !this.leavesFreePlaces(fairnessKey, now)) return 0;
    const releaseRate = this.turnoverRateOf(fairnessKey);
    const isSlow = releaseRate === Number.POSITIVE_INFINITY || releaseRate < MIN_RELEASE_RATE;
    const expectedFor = isSlow ? this.#othersExpectedFor : OTHERS_ACTIVE_FOR;
    const delay = this.#activeClients.lastArrivalOfOthers(fairnessKey) + expectedFor - now;
    if (delay <= 0) return 0;
    // If the others asked in another window of `ActiveClients` than this client, its share is not known.
    const share = this.shareOf(classWeight, now);
    if (!this.exceedsShare(fairnessKey, share < 1 ? share : 1 / 2)) return 0;
    return Math.min(delay, ACTIVITY_WINDOW - (now % ACTIVITY_WINDOW));
  }

  /**
   * How many places of one client or address become free each second: places ÷ service time (Little's law). Infinity if unknown: it
   * has too few of them, or its requests have not shown yet how long they take.
   */
  turnoverRateOf(fairnessKey: string): PerSecond {
    const mean = this.#ownServiceTimes.mean(fairnessKey, this.#tracksFrom);
    return mean === undefined ? Number.POSITIVE_INFINITY : (1000 * this.heldBy(fairnessKey)) / mean;
  }

  /**
   * Time until a client or address that leaves the free places to others has released this many of its own.
   * @param maxRate how fast any places become free
   */
  timeToRelease(fairnessKey: string, count: number, maxRate: PerSecond = Number.POSITIVE_INFINITY): Millis {
    return count > 0 ? (1000 * count) / Math.min(maxRate, this.turnoverRateOf(fairnessKey)) : 0;
  }
}
