import type { LinkedItem } from '../../../core/collections/linked-queue.ts';
import { LinkedQueue } from '../../../core/collections/linked-queue.ts';
import { RecencyMap } from '../../../core/collections/recency-map.ts';
import type { AwaitedConnections } from '../awaited-connections.ts';
import type { PooledSend, Sender } from '../pooled-send.ts';
import { countFree } from './count-connections.ts';
import type { Http2Connection } from './http2-connection.ts';
import type { Http2ConnectionPoolOptions } from './http2-options.ts';
import { UnsharedShares } from './unshared-shares.ts';

/** A request that waits. */
interface Waiter<W> extends LinkedItem<W> {
  readonly sender: Sender | undefined;
  /** Its ordinal among all that have waited. Written by the queue. */
  arrival: number;
  /** It could do without such a connection if another one were known to be alive. */
  isDisplaced: boolean;
  /** See `PooledSend`. */
  waitedForConnection: boolean;
}

type Connection = Pick<Http2Connection, 'sender' | 'isConnecting'>;

/** The waiting requests of each client of an address, or of a client by itself: first the client whose turn was longest ago. */
type Group<W extends Waiter<W>> = RecencyMap<string, LinkedQueue<W>>;

/** The maximum number of addresses, and of clients of one, among which the next is chosen: those whose turn was longest ago. */
const MAX_SCANNED = 1000;

const keyOf = (sender: Sender | undefined): string => sender?.fairnessKey ?? '';
const clientOf = (sender: Sender | undefined): string => sender?.client ?? '';

/**
 * Requests that wait for a connection without other requests. The next is of the client that has the fewest of these connections
 * for its weight; of equal ones, the one whose turn was longest ago. The clients of one address count as one, and share in the same
 * way among themselves. Each gets its own in order of arrival. Clients that leave the free connections to others wait until they may
 * take one: see `UnsharedShares`.
 */
export class UnsharedQueue<W extends Waiter<W>> implements AwaitedConnections {
  length = 0;
  /** How many of the requests are displaced. */
  displaced = 0;
  readonly #connections: Iterable<Connection>;
  readonly #shares: UnsharedShares;
  /** First the one whose turn was longest ago. */
  readonly #groups = new RecencyMap<string, Group<W>>();
  #arrivals = 0;
  /** Of those served, the arrival of the last one. */
  #lastServed = 0;

  constructor(connections: Iterable<Connection>, shares: UnsharedShares) {
    this.#connections = connections;
    this.#shares = shares;
  }

  get waiting(): number {
    return this.length;
  }

  get lacking(): number {
    let lacking = this.length;
    for (const { isConnecting } of this.#connections) if (isConnecting) lacking -= 1;
    return lacking;
  }

  holders(): ReadonlySet<unknown> {
    const holders = new Set<unknown>();
    for (const { sender } of this.#connections) if (sender !== undefined) holders.add(sender);
    return holders;
  }

  /** The next request; undefined if all clients that wait leave the free connections to others. */
  get head(): W | undefined {
    const yields = (key: string, held: number): boolean => this.#shares.yields(key, held);
    const group = this.#fewest(this.#groups, (some) => firstOf(some)?.head, keyOf, yields);
    return group === undefined ? undefined : this.#fewest(group, (queue) => queue.head, clientOf)?.head;
  }

  /** A request needs a connection. Returns whether it may take a free one. */
  onAsked(sender: Sender | undefined): boolean {
    this.#shares.onAsked(keyOf(sender));
    return !this.#yields(sender);
  }

  #yields(sender: Sender | undefined): boolean {
    const key = keyOf(sender);
    return this.#shares.yields(key, this.#countBy(keyOf).get(key) ?? 0);
  }

  push(waiter: W): void {
    const [key, client] = [keyOf(waiter.sender), clientOf(waiter.sender)];
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new RecencyMap();
      this.#groups.set(key, group);
    }
    let queue = group.get(client);
    if (queue === undefined) {
      queue = new LinkedQueue();
      group.set(client, queue);
    }
    queue.push(waiter);
    this.#arrivals += 1;
    waiter.arrival = this.#arrivals;
    this.length += 1;
    if (waiter.isDisplaced) this.displaced += 1;
  }

  /** @returns whether it waited */
  remove(waiter: W): boolean {
    const [key, client] = [keyOf(waiter.sender), clientOf(waiter.sender)];
    const group = this.#groups.get(key);
    const queue = group?.get(client);
    if (group === undefined || queue?.remove(waiter) !== true) return false;
    this.length -= 1;
    if (waiter.isDisplaced) this.displaced -= 1;
    // One that came later has got the connection that this one may have expected, or that connection is left to others.
    if (waiter.arrival < this.#lastServed || this.#yields(waiter.sender)) waiter.waitedForConnection = true;
    waiter.isDisplaced = false;
    if (queue.length === 0) group.delete(client);
    if (group.size === 0) this.#groups.delete(key);
    return true;
  }

  /** A request gets a connection, so it is the turn of others. */
  onServed(waiter: W, connection: Pick<Connection, 'sender'>): void {
    const { sender, arrival } = waiter;
    waiter.isDisplaced = false;
    connection.sender = sender;
    this.#shares.onTaken(connection);
    this.#lastServed = Math.max(this.#lastServed, arrival);
    this.#groups.use(keyOf(sender))?.use(clientOf(sender));
  }

  /** Its request is over, and the connection has no sender. */
  onReleased({ sender }: Pick<W, 'sender'>, connection: Pick<Connection, 'sender'>): void {
    const key = keyOf(sender);
    this.#shares.onReleased(key, connection, this.#countBy(keyOf).get(key) ?? 0);
  }

  clear(): W[] {
    const all = [...this.#all()];
    for (const waiter of all) this.remove(waiter);
    return all;
  }

  /** Removes the displaced requests. */
  takeDisplaced(): W[] {
    const all = [...this.#all()].filter(({ isDisplaced }) => isDisplaced);
    for (const waiter of all) this.remove(waiter);
    return all;
  }

  *#all(): Iterable<W> {
    for (const group of this.#groups.values()) {
      for (const { head } of group.values()) {
        for (let waiter = head; waiter !== undefined; waiter = waiter.next) {
          yield waiter;
        }
      }
    }
  }

  /**
   * Chooses the one that has the fewest connections for its weight, with the one that the next request would get.
   * @param isSkipped whether one with so many connections gets none
   */
  #fewest<T>(
    all: RecencyMap<string, T>,
    nextOf: (one: T) => W | undefined,
    ownerOf: (sender: Sender | undefined) => string,
    isSkipped?: (key: string, held: number) => boolean,
  ): T | undefined {
    if (all.size === 0 || (all.size === 1 && isSkipped === undefined)) return firstOf(all);
    const counts = this.#countBy(ownerOf);
    let chosen: T | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    let scanned = 0;
    for (const [key, one] of all) {
      const held = counts.get(key) ?? 0;
      const connections = (held + 1) / (nextOf(one)?.sender?.classWeight ?? 1);
      if (connections < fewest && isSkipped?.(key, held) !== true) [chosen, fewest] = [one, connections];
      scanned += 1;
      if (scanned === MAX_SCANNED) break;
    }
    return chosen;
  }

  #countBy(ownerOf: (sender: Sender) => string): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { sender } of this.#connections) {
      if (sender === undefined) continue;
      const owner = ownerOf(sender);
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
    return counts;
  }
}

/** @param onYieldEnd a request that left the free connections to others may take one now */
export function createUnsharedQueue(
  all: ReadonlySet<Http2Connection>,
  { clock, maxConnections }: Pick<Http2ConnectionPoolOptions, 'clock' | 'maxConnections'>,
  onYieldEnd: () => void,
): UnsharedQueue<PooledSend> {
  return new UnsharedQueue(
    all,
    new UnsharedShares({ clock, countFree: () => countFree(all, maxConnections), onYieldEnd }),
  );
}

function firstOf<T>(all: RecencyMap<string, T>): T | undefined {
  const [first] = all.values();
  return first;
}
