import type { ConnectionCounts } from '../../core/admission/connection-slots.ts';
import type { ProxyEvent } from '../../core/events/proxy-events.ts';
import type { Clock, Millis } from '../../core/scalars.ts';

/** An exchange whose client keeps an upstream connection busy by not reading its response or not sending its body, now or before. */
export interface StalledClient {
  readonly upstream: string;
  /** The client, or all clients of one address. */
  readonly addressGroup: string;
  /** Since when the client has read or sent nothing; Infinity while the proxy does not wait for it. */
  readonly stalledSince: Millis;
  /** When it counts as stalled for so long that it gives way to others; Infinity while the proxy does not wait for it. */
  readonly givesWayAt: Millis;
  /** Ends the exchange: others wait for its connection. */
  abort(): void;
}

export interface StalledClientsOptions {
  readonly clock: Clock;
  readonly connections: (upstream: string) => ConnectionCounts;
}

/** A client that has read or sent something within this time is not ended. */
export const GRACE_PERIOD: Millis = 1000;

/**
 * The stalled clients of each upstream. While requests wait for a connection there, stalled exchanges are ended: first, of the
 * client with the most of them, the one that has stalled for the longest time.
 */
export class StalledClients {
  readonly #options: StalledClientsOptions;
  readonly #clients = new Map<string, Set<StalledClient>>();
  /** Queued requests by upstream. */
  readonly #queuedRequests = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: StalledClientsOptions) {
    this.#options = options;
  }

  /** The connections of an upstream, as the gate counts them: of those that are busy, some become free when requests wait. */
  get(upstream: string): ConnectionCounts {
    return { ...this.#options.connections(upstream), stalled: () => this.#countStalled(upstream) };
  }

  add(client: StalledClient): void {
    const clients = this.#clients.get(client.upstream);
    if (clients === undefined) this.#clients.set(client.upstream, new Set([client]));
    else clients.add(client);
    if ((this.#queuedRequests.get(client.upstream) ?? 0) > 0) this.#checkIn(GRACE_PERIOD);
  }

  remove(client: StalledClient): void {
    const clients = this.#clients.get(client.upstream);
    if (clients?.delete(client) === true && clients.size === 0) this.#clients.delete(client.upstream);
  }

  /** Follows the queue by events of the gate. */
  readonly onEvent = (event: ProxyEvent): void => {
    if (event.type === 'decision' && event.decision === 'queued') this.#count(event.upstream, 1);
    else if (event.type === 'dequeued') this.#count(event.upstream, -1);
  };

  /** How many will have given way within the grace period, if they stay as they are. */
  #countStalled(upstream: string): number {
    const before = this.#options.clock.now() + GRACE_PERIOD;
    let count = 0;
    for (const { givesWayAt } of this.#clients.get(upstream) ?? []) if (givesWayAt <= before) count += 1;
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
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#check, delay).unref();
  }

  readonly #check = (): void => {
    let next = Number.POSITIVE_INFINITY;
    for (const [upstream, waiting] of this.#queuedRequests) {
      next = Math.min(next, this.#abortStalled(upstream, waiting));
    }
    if (next !== Number.POSITIVE_INFINITY) this.#checkIn(next);
  };

  /** @returns time until another exchange may be ended; Infinity if none need be */
  #abortStalled(upstream: string, waiting: number): Millis {
    const now = this.#options.clock.now();
    const clients = this.#clients.get(upstream) ?? new Set();
    if (clients.size === 0) return Number.POSITIVE_INFINITY;
    if (this.#options.connections(upstream).freeConnections() > 0) return GRACE_PERIOD; // requests wait for something else
    for (let missing = waiting; missing > 0; missing -= 1) {
      const client = mostStalled(clients, now);
      if (client === undefined) break;
      this.remove(client);
      client.abort();
    }
    // Any may stall from now on.
    const next = Math.min(now + GRACE_PERIOD, ...[...clients].map(({ givesWayAt }) => givesWayAt));
    return Math.max(1, next - now);
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
