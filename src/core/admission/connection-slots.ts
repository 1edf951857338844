import type { Limit } from '../limits/limit.ts';
import { CounterMap } from '../collections/counter-map.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { ActiveClients } from './active-clients.ts';
import { THRESHOLD_FACTOR } from './queue-occupancy.ts';
import { ServiceTimes, smoothed } from '../limits/service-times.ts';
import type { Ticket } from './ticket.ts';

/** Complete attempts per connection before their duration is used: the first includes a handshake, in a process that is still cold. */
const LEARNED_AFTER = 2;
/** Others that asked within this time may ask again at any moment: a client that holds most connections leaves them the free ones. */
const OTHERS_ACTIVE_FOR: Millis = 4000;

/** How many requests the connections to an upstream carry; over HTTP/2, each stream counts as a connection. */
export interface ConnectionCounts {
  /** At a time, at the endpoints in rotation. */
  readonly totalConnections: () => number;
  /** Besides those under way. */
  readonly freeConnections: () => number;
  /**
   * Connections whose clients have stalled: they give way to waiting requests. Zero when absent.
   * @param limit only those whose requests are in flight at this limit
   */
  readonly stalled?: (limit?: Limit) => number;
}

/**
 * The connections to one upstream. A request beyond them waits in the fair queue, where one client's flood does not delay
 * the others, and not in the connection pool.
 */
export class ConnectionSlots {
  /** Where tickets wait for a connection: the upstream's own limit at scope `upstream`, else a limit of no request. */
  queueLimit: Limit;
  readonly #counts: ConnectionCounts;
  readonly #activeClients: ActiveClients;
  /** Requests that are admitted and not sent yet. */
  #reserved = 0;
  readonly #reservedByKey = new CounterMap();
  /** Attempts under way, by fairness key. */
  readonly #activeByKey = new CounterMap();
  #active = 0;
  /** The service times of those with `THRESHOLD_FACTOR` attempts or more, until they have none. */
  readonly #ownServiceTimes = new ServiceTimes();
  /** The mean time that an attempt uses its connection, cut short or not; undefined before the first one ends. */
  #serviceTime: Millis | undefined;
  /** The least such time since a request waited in vain: see `onWaitTimeout`. */
  #leastServiceTime: Millis = Number.POSITIVE_INFINITY;
  /** Attempts that have ended by themselves: only these show how long the upstream takes. */
  #completed = 0;
  /** The most attempts at a time so far. */
  #peakActive = 0;
  /** When a connection was last reserved. */
  #takenAt: Millis = Number.POSITIVE_INFINITY;

  constructor(queueLimit: Limit, counts: ConnectionCounts, activeClients: ActiveClients) {
    this.queueLimit = queueLimit;
    this.#counts = counts;
    this.#activeClients = activeClients;
  }

  get isFull(): boolean {
    return this.available <= 0;
  }

  /** Connections that are neither used nor reserved. */
  get available(): number {
    return this.#counts.freeConnections() - this.#reserved;
  }

  /** Connections that become free for the next waiting requests, however long the usual service takes. */
  get yielding(): number {
    return this.#counts.stalled?.() ?? 0;
  }

  /** Places in flight at a limit that become free in the same way. */
  yieldingPlaces(limit: Limit): number {
    return this.#counts.stalled?.(limit) ?? 0;
  }

  /** Whether there are fewer free connections than waiting tickets. */
  get isScarce(): boolean {
    return this.available < this.queueLimit.queue.size;
  }

  /** An attempt begins; it has or awaits a connection. @param fairnessKey see `Ticket` */
  onAttemptStart(fairnessKey: string): void {
    this.#activeByKey.increment(fairnessKey);
    this.#active += 1;
    this.#peakActive = Math.max(this.#peakActive, this.#active);
  }

  /**
   * An attempt no longer needs its connection.
   * @param took how long it used the connection or waited for it
   * @param isCutShort its client ended it: the upstream would have taken longer, nobody knows how long
   */
  onAttemptEnd(fairnessKey: string, took: Millis, isCutShort: boolean): void {
    const left = this.#activeByKey.decrement(fairnessKey);
    this.#active -= 1;
    this.#serviceTime = smoothed(this.#serviceTime, took);
    if (left + 1 >= THRESHOLD_FACTOR) this.#ownServiceTimes.learn(fairnessKey, took);
    else if (left === 0) this.#ownServiceTimes.forget(fairnessKey);
    if (isCutShort) return;
    this.#completed += 1;
    this.#leastServiceTime = Math.min(this.#leastServiceTime, took);
  }

  /**
   * A request waited for a connection as long as it may. So the waiting requests take longer than the least service time: the
   * mean is expected, until a shorter one is seen.
   */
  onWaitTimeout(): void {
    this.#leastServiceTime = this.#serviceTime ?? this.#leastServiceTime;
  }

  /** Whether a client, or an address, has more than this share of the connections. */
  exceedsShare(fairnessKey: string, share: number): boolean {
    return this.#heldBy(fairnessKey) > share * this.connections;
  }

  /** Connections that a client, or an address, uses or has reserved. */
  #heldBy(fairnessKey: string): number {
    return this.#activeByKey.count(fairnessKey) + this.#reservedByKey.count(fairnessKey);
  }

  /** Whether anybody may hold `THRESHOLD_FACTOR` times the free connections. */
  get isNearlyFull(): boolean {
    return this.#isNearlyFull(this.available);
  }

  #isNearlyFull(available: number): boolean {
    return this.#active + this.#reserved >= THRESHOLD_FACTOR * available;
  }

  /**
   * How long this request leaves the free connections to others, unless one is released before; 0 if it need not. A client, or an
   * address, that has more than its share takes none while it holds `THRESHOLD_FACTOR` times the free ones and others were active in
   * the last seconds (dynamic thresholds, Choudhury and Hahne 1998): it may keep one for long, and they may need one the next moment.
   */
  yieldDelay({ fairnessKey, classWeight, isSentExternally }: Ticket, now: Millis): Millis {
    const { available } = this;
    if (!this.#isNearlyFull(available) || isSentExternally) return 0;
    if (this.#heldBy(fairnessKey) < THRESHOLD_FACTOR * available) return 0;
    const delay = this.#activeClients.lastArrivalOfOthers(fairnessKey) + OTHERS_ACTIVE_FOR - now;
    if (delay <= 0) return 0;
    // If the others asked in another window of `ActiveClients` than this client, its share is not known.
    const share = this.shareOf(classWeight, now);
    return this.exceedsShare(fairnessKey, share < 1 ? share : 1 / 2) ? delay : 0;
  }

  /** The part of the connections that is the share of a client of this weight among the active ones, in (0, 1]. */
  shareOf(classWeight: number, now: Millis): number {
    const active = Math.max(this.#activeClients.totalWeight(now, classWeight), this.queueLimit.queue.activeWeight);
    return classWeight / active;
  }

  /** Whether a connection is free that this request may take. */
  hasFreeFor(ticket: Ticket, now: Millis): boolean {
    const { available } = this;
    return available > 0 && (!this.#isNearlyFull(available) || this.yieldDelay(ticket, now) === 0);
  }

  /** One of the waiting tickets; while connections are free, only one that may take them. */
  frontWaiter(now: Millis): Ticket | undefined {
    const { queue } = this.queueLimit;
    if (queue.size === 0 || this.isFull || !this.isNearlyFull) return queue.front;
    const next = queue.peek((ticket) => this.yieldDelay(ticket, now) > 0);
    return next === undefined || this.yieldDelay(next, now) > 0 ? undefined : next;
  }

  /** The number of connections, busy or free. */
  get connections(): number {
    return this.#counts.totalConnections();
  }

  /** Attempts that have or await a connection. */
  get active(): number {
    return this.#active;
  }

  /** Whether a request arriving now has to wait for a connection. */
  mustWait(ticket: Ticket, now: Millis): boolean {
    return !this.hasFreeFor(ticket, now) || this.frontWaiter(now) !== undefined;
  }

  /**
   * How many connections become free each second while all are busy: connections ÷ service time (Little's law). Infinity
   * if unknown.
   */
  get turnoverRate(): PerSecond {
    return this.#serviceTime === undefined ? Number.POSITIVE_INFINITY : this.#perSecond(this.#serviceTime);
  }

  /**
   * As `turnoverRate`, of the connections that one client or address holds. Infinity if unknown: it has too few of them, or its
   * requests have not shown yet how long they take.
   */
  turnoverRateOf(fairnessKey: string): PerSecond {
    const mean = this.#ownServiceTimes.mean(fairnessKey, THRESHOLD_FACTOR);
    return mean === undefined ? Number.POSITIVE_INFINITY : (1000 * this.#activeByKey.count(fairnessKey)) / mean;
  }

  /**
   * The turnover at the least service time. What the waiting requests will take is not known: most of those before them may have
   * been slow ones of other clients, or a process that has just started becomes faster.
   */
  get bestTurnoverRate(): PerSecond {
    const isKnown = this.#serviceTime !== undefined && this.#completed >= LEARNED_AFTER * this.#peakActive;
    return isKnown ? this.#perSecond(this.#leastServiceTime) : Number.POSITIVE_INFINITY;
  }

  #perSecond(serviceTime: Millis): PerSecond {
    return (1000 * Math.max(1, this.connections)) / serviceTime;
  }

  /**
   * How long no request has got a connection, while all are busy; else 0. The service time includes only attempts that have
   * ended: if the current ones hang, this is the only sign. The stall is expected to last as long again.
   */
  stalledFor(now: Millis): Millis {
    return this.isFull ? Math.max(0, now - this.#takenAt) : 0;
  }

  reserve(fairnessKey: string, now: Millis): void {
    this.#reserved += 1;
    this.#reservedByKey.increment(fairnessKey);
    this.#takenAt = now;
  }

  /** An admitted request has been sent, or will not be. */
  release(fairnessKey: string): void {
    this.#reserved -= 1;
    this.#reservedByKey.decrement(fairnessKey);
  }
}

/** The connections to a ticket's upstream; undefined if it needs none or they are not bounded here. */
export function connectionSlotsFor(
  { isSentExternally }: Ticket,
  { connectionSlots }: { readonly connectionSlots?: ConnectionSlots | undefined },
): ConnectionSlots | undefined {
  return isSentExternally ? undefined : connectionSlots;
}
