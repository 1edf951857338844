import { isIP } from 'node:net';
import type { Listen } from '../policy/events.ts';
import type { OutlierSettings } from '../policy/rotation.ts';
import { judgeEndpoint, Rotation } from '../policy/rotation.ts';
import type { Clock, Millis, Outcome, Random } from '../policy/types.ts';
import type { Errand } from './connection.ts';
import { ConnectionPool } from './connection-pool.ts';
import type { Lookup } from './name.ts';
import { Name } from './name.ts';
import type { PoolOptions } from './pool.ts';
import { clientOptions, makeConnect } from './pool.ts';

export interface EndpointsOptions {
  /** As metrics and logs call it. */
  readonly upstream: string;
  /** Origins, at least one. */
  readonly urls: readonly string[];
  readonly pool: PoolOptions;
  readonly outliers: OutlierSettings;
  readonly lookup: Lookup;
  readonly refresh: Millis;
  readonly clock: Clock;
  readonly random: Random;
  readonly listen: Listen;
  /** A connection to this upstream is free again, or may be made. */
  readonly onFree: (upstream: string) => void;
}

/** Where an upstream can be reached. */
export interface Endpoint {
  readonly index: number;
  readonly origin: string;
  /** Sent as Host, unless the client's is preserved; and how metrics and logs call it. */
  readonly authority: string;
  /** What its certificate has to name. */
  readonly serverName: string;
  readonly connections: ConnectionPool;
  /** Undefined where it is an address. */
  readonly name: Name | undefined;
}

/** The endpoints of an upstream, with their connections. Which is sent to, and which are left out, `Rotation` says. */
export class Endpoints {
  readonly all: readonly Endpoint[];
  readonly #rotation: Rotation;
  readonly #clock: Clock;

  /** @throws an Error of node:fs, when a certificate cannot be read */
  constructor(options: EndpointsOptions) {
    const { upstream, urls, pool, outliers, clock, random, listen } = options;
    this.#clock = clock;
    this.all = urls.map((url, index) =>
      openEndpoint(url, index, options, () => {
        this.#rotation.end(index);
        options.onFree(upstream);
      }),
    );
    this.#rotation = new Rotation(urls.length, pool.connections, outliers, random, (change) => {
      const endpoint = this.at(change.index).authority;
      if (change.kind === 'ejected') listen({ type: 'endpoint-ejected', upstream, endpoint, time: change.time });
      else listen({ type: 'endpoint-returned', upstream, endpoint, cause: change.cause });
    });
  }

  at(index: number): Endpoint {
    const endpoint = this.all[index];
    if (endpoint === undefined) throw new RangeError(`there is no endpoint ${index}`);
    return endpoint;
  }

  /** Whether it is left out. */
  isEjected(index: number): boolean {
    return this.#rotation.isEjected(index);
  }

  /** Connections that are free, or may be made. */
  free(): number {
    return this.#rotation.free();
  }

  /** As `Rotation.choose`. */
  choose(failedAt: ReadonlySet<number> | undefined, isRepeatable: boolean, now: Millis): Endpoint {
    return this.at(this.#rotation.choose(failedAt, isRepeatable, now));
  }

  /** @param fresh on a new connection */
  send({ index, name, connections }: Endpoint, errand: Errand, fresh: boolean, now: Millis): void {
    this.#rotation.begin(index);
    name?.keepFresh(now);
    connections.send(errand, fresh);
  }

  /** What the attempt came to. Returns whether it failed because of its endpoint, while others work. */
  settle({ index }: Endpoint, outcome: Outcome, sentAt: Millis): 'works' | 'fails' | 'fails alone' | 'nothing' {
    const verdict = judgeEndpoint(outcome);
    const now = this.#clock.now();
    if (verdict === 'works') this.#rotation.succeeded(index, sentAt, now);
    else if (verdict === 'nothing') this.#rotation.abandoned(index, sentAt);
    else return this.#rotation.failed(index, sentAt, now) ? 'fails alone' : 'fails';
    return verdict;
  }

  /** Nobody wants to know what it comes to. */
  abandon({ index }: Endpoint, sentAt: Millis): void {
    this.#rotation.abandoned(index, sentAt);
  }

  /** The attempt is over, and needs its connection no more. */
  over({ connections }: Endpoint, errand: Errand): void {
    connections.over(errand);
  }

  async destroy(): Promise<void> {
    await Promise.all(this.all.map(({ connections }) => connections.destroy()));
  }
}

function openEndpoint(url: string, index: number, options: EndpointsOptions, onFree: () => void): Endpoint {
  const { pool, lookup, refresh, clock } = options;
  const { origin, host, hostname } = new URL(url);
  const bare = hostname.replace(/^\[|\]$/g, '');
  const name =
    isIP(bare) === 0
      ? new Name({ hostname: bare, lookup, refresh, clock, onChange: () => connections.leaveOld() })
      : undefined;
  const connections = new ConnectionPool({
    origin,
    most: pool.connections,
    client: clientOptions(),
    connect: makeConnect(pool, name),
    clock,
    onFree,
    leadsTo: (address) => name?.leadsTo(address) ?? false,
  });
  return { index, origin, authority: host, serverName: pool.tls.serverName ?? bare, connections, name };
}
