import type { Limit } from '../limits/limit.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { ActiveClients } from './active-clients.ts';
import { OTHERS_ACTIVE_FOR, SharedPlaces } from '../limits/shared-places.ts';
import { THRESHOLD_FACTOR } from './queue-occupancy.ts';
import { smoothed } from '../limits/service-times.ts';
import type { Ticket } from './ticket.ts';

/** Complete attempts per connection before their duration is used: the first includes a handshake, in a process that is still cold. */
const LEARNED_AFTER = 2;

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
export class ConnectionSlots extends SharedPlaces {
  readonly #counts: ConnectionCounts;
  /** Requests that are admitted and not sent yet. */
  #reserved = 0;
  #active = 0;
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
  /** Where tickets waited for a connection before: see `moveQueue`. */
  readonly #formerQueues: Limit[] = [];

  /** @param queueLimit the upstream's own limit at scope `upstream`, else a limit of no request */
  constructor(queueLimit: Limit, counts: ConnectionCounts, activeClients: ActiveClients) {
    super(queueLimit, activeClients, THRESHOLD_FACTOR, OTHERS_ACTIVE_FOR);
    this.#counts = counts;
  }

  /**
   * The scope of the upstream's limit has changed: from now on, tickets wait for a connection at this limit. Those that wait already
   * move when the queues are evaluated again.
   */
  moveQueue(queueLimit: Limit): void {
    if (queueLimit === this.queueLimit) return;
    this.#formerQueues.push(this.queueLimit);
    this.queueLimit = queueLimit;
  }

  /** Returns each former queue once. */
  takeFormerQueues(): readonly Limit[] {
    return this.#formerQueues.splice(0);
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
    this.addHeld(fairnessKey);
    this.#active += 1;
    this.#peakActive = Math.max(this.#peakActive, this.#active);
  }

  /**
   * An attempt no longer needs its connection.
   * @param took how long it used the connection or waited for it
   * @param isCutShort its client ended it: the upstream would have taken longer, nobody knows how long
   */
  onAttemptEnd(fairnessKey: string, took: Millis, isCutShort: boolean): void {
    this.removeHeld(fairnessKey, took);
    this.#active -= 1;
    this.#serviceTime = smoothed(this.#serviceTime, took);
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

  /** Whether anybody may hold `THRESHOLD_FACTOR` times the free connections. */
  get isNearlyFull(): boolean {
    return this.#isNearlyFull(this.available);
  }

  #isNearlyFull(available: number): boolean {
    return this.#active + this.#reserved >= THRESHOLD_FACTOR * available;
  }

  /** While it holds `THRESHOLD_FACTOR` times the free ones. */
  protected leavesFreePlaces(fairnessKey: string): boolean {
    const { available } = this;
    return this.#isNearlyFull(available) && this.heldBy(fairnessKey) >= THRESHOLD_FACTOR * available;
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
  get size(): number {
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
   * The turnover at the least service time. What the waiting requests will take is not known: most of those before them may have
   * been slow ones of other clients, or a process that has just started becomes faster.
   */
  get bestTurnoverRate(): PerSecond {
    const isKnown = this.#serviceTime !== undefined && this.#completed >= LEARNED_AFTER * this.#peakActive;
    return isKnown ? this.#perSecond(this.#leastServiceTime) : Number.POSITIVE_INFINITY;
  }

  #perSecond(serviceTime: Millis): PerSecond {
    return (1000 * Math.max(1, this.size)) / serviceTime;
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
    this.addHeld(fairnessKey);
    this.#takenAt = now;
  }

  /** An admitted request has been sent, or will not be. */
  release(fairnessKey: string): void {
    this.#reserved -= 1;
    this.removeHeld(fairnessKey);
  }
}

/** The connections to a ticket's upstream; undefined if it needs none or they are not bounded here. */
export function connectionSlotsFor(
  { isSentExternally }: Ticket,
  { connectionSlots }: { readonly connectionSlots?: ConnectionSlots | undefined },
): ConnectionSlots | undefined {
  return isSentExternally ? undefined : connectionSlots;
}
