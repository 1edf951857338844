import type { LookupAddress } from 'node:dns';
import dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Clock, Millis } from '../../core/exchange/attempt-outcome.ts';

/** Finds the addresses of a name: all there are, in the order to try them. */
export type Lookup = (hostname: string, done: Found) => void;
type Found = (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void;

/** As everything on this system does: /etc/hosts, search domains and caches included. It tells no time to live. */
export const systemLookup: Lookup = (hostname, done) => {
  dns.lookup(hostname, { all: true, hints: dns.ADDRCONFIG }, done);
};

/** An address is given up when it has not been named for so many refresh times: balancers name a few of their many in turn. */
const MISSED = 3;

export interface NameOptions {
  readonly hostname: string;
  readonly lookup: Lookup;
  /** How long what was found is good for. */
  readonly refresh: Millis;
  readonly clock: Clock;
  /** Some address is given up: a connection to it is not to be used for another request. */
  readonly onChange: () => void;
}

/**
 * The name of an endpoint, and its addresses. Each new connection looks it up, several at a time together; while it is
 * sent to, it is looked up again in the background, so that kept connections follow a change. While it cannot be found
 * no address is given up: new connections fail, the old ones go on.
 */
export class Name {
  readonly #options: NameOptions;
  /** When each was named last. */
  readonly #addresses = new Map<string, Millis>();
  #waiting: Found[] | undefined;
  #dueAt: Millis = Number.NEGATIVE_INFINITY;
  #turn = 0;

  constructor(options: NameOptions) {
    this.#options = options;
  }

  /** For `net.connect`. Of several addresses of a family, each connection begins with another. */
  readonly lookup: LookupFunction = (_, { all }, done) => {
    this.#find((error, found) => {
      if (error !== null) return done(error, []);
      const addresses = this.#rotate(found);
      const [first] = addresses;
      if (first === undefined) return done(notFound(this.#options.hostname), []);
      if (all === true) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };

  /** To be called with each request: when it is time, looks the name up without anybody waiting for it. */
  keepFresh(now: Millis): void {
    if (now < this.#dueAt || this.#waiting !== undefined) return;
    this.#find(() => undefined);
  }

  /** Whether it is one of its addresses, and not given up. */
  leadsTo(address: string): boolean {
    return this.#addresses.has(address);
  }

  #find(found: Found): void {
    if (this.#waiting !== undefined) {
      this.#waiting.push(found);
      return;
    }
    this.#waiting = [found];
    const { hostname, lookup, refresh, clock } = this.#options;
    lookup(hostname, (error, addresses) => {
      const waiting = this.#waiting ?? [];
      this.#waiting = undefined;
      const now = clock.now();
      this.#dueAt = now + refresh;
      if (error === null) this.#note(addresses, now);
      for (const each of waiting) each(error, addresses);
    });
  }

  #note(named: readonly LookupAddress[], now: Millis): void {
    for (const { address } of named) this.#addresses.set(address, now);
    const before = this.#addresses.size;
    for (const [address, namedAt] of this.#addresses) {
      if (now - namedAt >= MISSED * this.#options.refresh && now > namedAt) this.#addresses.delete(address);
    }
    if (this.#addresses.size < before) this.#options.onChange();
  }

  #rotate(addresses: readonly LookupAddress[]): LookupAddress[] {
    this.#turn += 1;
    return [...Map.groupBy(addresses, ({ family }) => family).values()].flatMap((each) => {
      const from = this.#turn % each.length;
      return [...each.slice(from), ...each.slice(0, from)];
    });
  }
}

function notFound(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' });
}
