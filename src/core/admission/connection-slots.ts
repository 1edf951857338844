import type { Limit } from '../limits/limit.ts';
import { CounterMap } from '../collections/counter-map.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { Ticket } from './ticket.ts';

/** A weight of 1/8 for each new sample, as TCP smooths round trips (RFC 6298). */
const GAIN = 1 / 8;
/** A sample counts as at most this many times the mean. */
const LONGEST_SAMPLE = 2;
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
export class ConnectionSlots {
  /** Where tickets wait for a connection: the upstream's own limit at scope `upstream`, else a limit of no request. */
  queueLimit: Limit;
  readonly #counts: ConnectionCounts;
  /** Requests that are admitted and not sent yet. */
  #reserved = 0;
  /** Attempts under way, by fairness key. */
  readonly #activeByKey = new CounterMap();
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

  constructor(queueLimit: Limit, counts: ConnectionCounts) {
    this.queueLimit = queueLimit;
    this.#counts = counts;
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
    this.#activeByKey.decrement(fairnessKey);
    this.#active -= 1;
    const known = this.#serviceTime ?? took;
    // One stream of an hour says little about how soon others end.
    const sample = Math.min(took, LONGEST_SAMPLE * known);
    this.#serviceTime = known + GAIN * (sample - known);
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
    return this.#activeByKey.count(fairnessKey) > share * this.connections;
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
  get mustWait(): boolean {
    return this.queueLimit.queue.size > 0 || this.isFull;
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
    return (1000 * Math.max(1, this.connections)) / serviceTime;
  }

  /**
   * How long no request has got a connection, while all are busy; else 0. The service time includes only attempts that have
   * ended: if the current ones hang, this is the only sign. The stall is expected to last as long again.
   */
  stalledFor(now: Millis): Millis {
    return this.isFull ? Math.max(0, now - this.#takenAt) : 0;
  }

  reserve(now: Millis): void {
    this.#reserved += 1;
    this.#takenAt = now;
  }

  /** An admitted request has been sent, or will not be. */
  release(): void {
    this.#reserved -= 1;
  }
}

/** The connections to a ticket's upstream; undefined if it needs none or they are not bounded here. */
export function connectionSlotsFor(
  { isSentExternally }: Ticket,
  { connectionSlots }: { readonly connectionSlots?: ConnectionSlots | undefined },
): ConnectionSlots | undefined {
  return isSentExternally ? undefined : connectionSlots;
}
