import type { LookupAddress } from 'node:dns';
import dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Clock, Millis } from '../../core/scalars.ts';

/** Resolves a host name to all its addresses, in the order in which to try them. */
export type DnsLookup = (hostname: string, done: DnsLookupCallback) => void;
type DnsLookupCallback = (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void;

/** The system's resolver: /etc/hosts, search domains and caches included. It reports no TTL. */
export const systemLookup: DnsLookup = (hostname, done) => {
  dns.lookup(hostname, { all: true, hints: dns.ADDRCONFIG }, done);
};

/** A new connection waits so long for a look-up. Then it uses the addresses that are known, if there are any. */
const LOOKUP_PATIENCE: Millis = 500;

/** An address is dropped after this many refreshes without it: load balancers return a few of their addresses in turn. */
const MAX_MISSED_REFRESHES = 3;

export interface DnsResolverOptions {
  readonly hostname: string;
  readonly lookup: DnsLookup;
  /** How long a result is valid. */
  readonly refreshInterval: Millis;
  readonly clock: Clock;
  /** An address was dropped: its connections must not take another request. */
  readonly onAddressRemoved: () => void;
}

/**
 * Resolves the host name of an endpoint. Each new connection looks it up; concurrent look-ups are merged. While requests are sent
 * to the endpoint, the name is refreshed in the background, so that kept connections follow a change. While resolution fails,
 * no address is dropped: new connections fail, existing ones stay in use. While a look-up gets no answer, new connections use the
 * known addresses: the name server may be at fault, or look-ups of other names occupy the threads that resolve names.
 */
export class DnsResolver {
  readonly #options: DnsResolverOptions;
  /** By address; and when each was last returned. */
  readonly #addresses = new Map<string, { readonly entry: LookupAddress; readonly returnedAt: Millis }>();
  #waiting: DnsLookupCallback[] | undefined;
  #dueAt: Millis = Number.NEGATIVE_INFINITY;
  #rotation = 0;

  constructor(options: DnsResolverOptions) {
    this.#options = options;
  }

  /** For `net.connect`. Each connection starts with the next address of a family. */
  readonly lookup: LookupFunction = (_, { all }, done) => {
    this.#resolveInTime((error, found) => {
      if (error !== null) return done(error, []);
      const addresses = this.#rotate(found);
      const [first] = addresses;
      if (first === undefined) return done(notFound(this.#options.hostname), []);
      if (all === true) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };

  /** Refreshes the addresses in the background if their time is over. To be called with each request. */
  refreshIfDue(now: Millis): void {
    if (now < this.#dueAt || this.#waiting !== undefined) return;
    this.#resolve(() => undefined);
  }

  /** Whether the name resolves to this address, and it has not been dropped. */
  isCurrentAddress(address: string): boolean {
    return this.#addresses.has(address);
  }

  #resolveInTime(found: DnsLookupCallback): void {
    if (this.#addresses.size === 0) return this.#resolve(found);
    const timer = setTimeout(() => {
      isAnswered = true;
      found(
        null,
        [...this.#addresses.values()].map(({ entry }) => entry),
      );
    }, LOOKUP_PATIENCE);
    let isAnswered = false;
    this.#resolve((error, addresses) => {
      clearTimeout(timer);
      if (!isAnswered) found(error, addresses);
    });
  }

  #resolve(found: DnsLookupCallback): void {
    if (this.#waiting !== undefined) {
      this.#waiting.push(found);
      return;
    }
    this.#waiting = [found];
    const { hostname, lookup, refreshInterval, clock } = this.#options;
    lookup(hostname, (error, addresses) => {
      const waiting = this.#waiting ?? [];
      this.#waiting = undefined;
      const now = clock.now();
      this.#dueAt = now + refreshInterval;
      if (error === null) this.#recordAddresses(addresses, now);
      for (const each of waiting) each(error, addresses);
    });
  }

  #recordAddresses(addresses: readonly LookupAddress[], now: Millis): void {
    for (const entry of addresses) this.#addresses.set(entry.address, { entry, returnedAt: now });
    const before = this.#addresses.size;
    for (const [address, { returnedAt }] of this.#addresses) {
      if (now - returnedAt >= MAX_MISSED_REFRESHES * this.#options.refreshInterval && now > returnedAt) {
        this.#addresses.delete(address);
      }
    }
    if (this.#addresses.size < before) this.#options.onAddressRemoved();
  }

  #rotate(addresses: readonly LookupAddress[]): LookupAddress[] {
    this.#rotation += 1;
    return [...Map.groupBy(addresses, ({ family }) => family).values()].flatMap((each) => {
      const from = this.#rotation % each.length;
      return [...each.slice(from), ...each.slice(0, from)];
    });
  }
}

function notFound(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' });
}
