import type { AwaitedEnds } from '../../core/admission/awaited-ends.ts';
import type { ConnectionCounts } from '../../core/admission/connection-slots.ts';
import type { ProxyEvent } from '../../core/events/proxy-events.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { AwaitedConnections } from '../upstream/awaited-connections.ts';

/**
 * An exchange whose client keeps an upstream connection busy, and places in flight, by not reading its response or not sending
 * its body, now or before.
 */
export interface StalledClient {
  readonly upstream: string;
  /** The client, or all clients of one address. */
  readonly addressGroup: string;
  /** Of the exchange. */
  readonly ticket: unknown;
  /** Since when the client has read or sent nothing; Infinity while the proxy does not wait for it. */
  readonly stalledSince: Millis;
  /** When it counts as stalled for so long that it gives way to others; Infinity while the proxy does not wait for it. */
  readonly givesWayAt: Millis;
  /** Whether its request counts as in flight at this limit. */
  holdsPlaceOf(limit: Limit): boolean;
  /** Ends the exchange: others wait for its connection or a place. */
  abort(): void;
}

export interface StalledClientsOptions {
  readonly clock: Clock;
  readonly connections: (upstream: string) => ConnectionCounts;
  /** What queued requests wait for: see `findAwaitedEnds`. */
  readonly awaitedEnds: (upstream: string, now: Millis) => readonly AwaitedEnds[];
}

/** A client that has read or sent something within this time is not ended. */
export const GRACE_PERIOD: Millis = 1000;
/** How often to look what queued requests wait for: it may change from the rate to a connection. */
const CHECK_INTERVAL: Millis = 100;

/**
 * The stalled clients of each upstream. While requests wait for a connection there, or for a place of a limit on requests in
 * flight, stalled exchanges that have one are ended: first, of the client with the most of them, the one that has stalled for
 * the longest time.
 */
export class StalledClients {
  readonly #options: StalledClientsOptions;
  readonly #clients = new Map<string, Set<StalledClient>>();
  /** Queued requests by upstream. */
  readonly #queuedRequests = new Map<string, number>();
  /** Where requests wait outside the gate, by upstream. */
  readonly #awaitedConnections = new Map<string, Set<AwaitedConnections>>();
  #timer: NodeJS.Timeout | undefined;
  #timerAt: Millis = Number.POSITIVE_INFINITY;

  constructor(options: StalledClientsOptions) {
    this.#options = options;
  }

  /** The connections of an upstream, as the gate counts them: of those that are busy, some become free when requests wait. */
  get(upstream: string): ConnectionCounts {
    return { ...this.#options.connections(upstream), stalled: (limit) => this.#countStalled(upstream, limit) };
  }

  add(client: StalledClient): void {
    const clients = this.#clients.get(client.upstream);
    if (clients === undefined) this.#clients.set(client.upstream, new Set([client]));
    else clients.add(client);
    if (this.#isAwaited(client.upstream)) this.#checkIn(GRACE_PERIOD);
  }

  remove(client: StalledClient): void {
    const clients = this.#clients.get(client.upstream);
    if (clients?.delete(client) === true && clients.size === 0) this.#clients.delete(client.upstream);
  }

  /** A request waits for one of these connections. */
  onAwaited(upstream: string, connections: AwaitedConnections): void {
    const all = this.#awaitedConnections.get(upstream);
    if (all === undefined) this.#awaitedConnections.set(upstream, new Set([connections]));
    else all.add(connections);
    if (this.#clients.has(upstream)) this.#checkIn(0);
  }

  /** Follows the queue by events of the gate. */
  readonly onEvent = (event: ProxyEvent): void => {
    if (event.type === 'decision' && event.decision === 'queued') this.#count(event.upstream, 1);
    else if (event.type === 'dequeued') this.#count(event.upstream, -1);
  };

  /** How many will have given way within the grace period, if they stay as they are. */
  #countStalled(upstream: string, limit: Limit | undefined): number {
    const before = this.#options.clock.now() + GRACE_PERIOD;
    let count = 0;
    for (const client of this.#clients.get(upstream) ?? []) {
      if (client.givesWayAt <= before && (limit === undefined || client.holdsPlaceOf(limit))) count += 1;
    }
    return count;
  }

  #count(upstream: string, change: 1 | -1): void {
    const count = (this.#queuedRequests.get(upstream) ?? 0) + change;
    if (count > 0) this.#queuedRequests.set(upstream, count);
    else this.#queuedRequests.delete(upstream);
    if (change > 0 && this.#clients.has(upstream)) this.#checkIn(0);
  }

  /** Asynchronous, because the gate must not be called while it emits an event. */
  #checkIn(delay: Millis): void {
    const at = this.#options.clock.now() + delay;
    if (at >= this.#timerAt) return;
    this.#timerAt = at;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#check, delay).unref();
  }

  readonly #check = (): void => {
    this.#timerAt = Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    const upstreams = new Set([...this.#queuedRequests.keys(), ...this.#awaitedConnections.keys()]);
    for (const upstream of upstreams) next = Math.min(next, this.#abortStalled(upstream));
    if (next !== Number.POSITIVE_INFINITY) this.#checkIn(next);
  };

  /** @returns time until the next check; Infinity if none is needed */
  #abortStalled(upstream: string): Millis {
    const awaited = this.#stillAwaited(upstream);
    const clients = this.#clients.get(upstream);
    if (clients === undefined || !this.#isAwaited(upstream)) return Number.POSITIVE_INFINITY;
    const now = this.#options.clock.now();
    if (this.#queuedRequests.has(upstream)) {
      for (const { limit, count } of this.#options.awaitedEnds(upstream, now)) {
        const holders = limit === undefined ? clients : [...clients].filter((each) => each.holdsPlaceOf(limit));
        this.#abort(holders, count, now);
      }
    }
    for (const connections of awaited) {
      const tickets = connections.holders();
      const holders = [...clients].filter(({ ticket }) => tickets.has(ticket));
      this.#abort(holders, connections.lacking, now);
    }
    let next = CHECK_INTERVAL;
    for (const { givesWayAt } of clients) if (givesWayAt > now) next = Math.min(next, givesWayAt - now);
    return clients.size === 0 ? Number.POSITIVE_INFINITY : Math.max(1, next);
  }

  /** Whether requests wait: not necessarily for the end of others. */
  #isAwaited(upstream: string): boolean {
    return this.#queuedRequests.has(upstream) || this.#awaitedConnections.has(upstream);
  }

  /** Where requests still wait outside the gate. The others are forgotten. */
  #stillAwaited(upstream: string): readonly AwaitedConnections[] {
    const all = this.#awaitedConnections.get(upstream);
    if (all === undefined) return [];
    for (const connections of all) if (connections.waiting === 0) all.delete(connections);
    if (all.size === 0) this.#awaitedConnections.delete(upstream);
    return [...all];
  }

  /** Ends as many stalled exchanges. @param candidates those that hold what is awaited */
  #abort(candidates: Iterable<StalledClient>, count: number, now: Millis): void {
    const holders = new Set(candidates);
    for (let missing = count; missing > 0; missing -= 1) {
      const client = mostStalled(holders, now);
      if (client === undefined) break;
      holders.delete(client);
      this.remove(client);
      client.abort();
    }
  }
}

/** The next to end of those that give way by now. */
function mostStalled(clients: Iterable<StalledClient>, now: Millis): StalledClient | undefined {
  const countByGroup = new Map<string, number>();
  for (const { addressGroup, stalledSince } of clients) {
    if (stalledSince !== Number.POSITIVE_INFINITY) {
      countByGroup.set(addressGroup, (countByGroup.get(addressGroup) ?? 0) + 1);
    }
  }
  let worst: StalledClient | undefined;
  for (const client of clients) {
    if (client.givesWayAt > now) continue;
    const more =
      (countByGroup.get(client.addressGroup) ?? 0) -
      (worst === undefined ? 0 : (countByGroup.get(worst.addressGroup) ?? 0));
    if (worst === undefined || more > 0 || (more === 0 && client.stalledSince < worst.stalledSince)) worst = client;
  }
  return worst;
}
