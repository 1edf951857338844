import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import { MAX_STREAMS } from '../../config/schema/listen-schema.ts';
import { socketOf } from '../../config/values/upstream-url.ts';
import type { Bound } from '../../core/overload/resource-bound.ts';
import type { Listen } from '../../core/events/proxy-events.ts';
import type { OutlierSettings } from '../../core/endpoints/outlier-detection.ts';
import { judgeEndpoint, Rotation } from '../../core/endpoints/outlier-detection.ts';
import type { Clock, Millis, Outcome, Random } from '../../core/exchange/attempt-outcome.ts';
import { readClientTls } from '../tls/client-tls.ts';
import type { Errand } from './http1-connection.ts';
import { ConnectionPool } from './http1-connection-pool.ts';
import type { Lookup } from './dns-resolver.ts';
import { Name } from './dns-resolver.ts';
import type { PoolOptions } from './connector.ts';
import { clientOptions, KEEP_ALIVE, makeConnect } from './connector.ts';
import { SharedConnections } from './http2-connection-pool.ts';

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

/** The connections to one endpoint. */
export interface Connections {
  /** @param fresh on one that nothing has been sent on */
  send(errand: Errand, fresh: boolean): void;
  /** The attempt is over: its connection serves another, or is no more. */
  over(errand: Errand): void;
  /** Some address is given up: a connection to it is not to be used for another request. */
  leaveOld(): void;
  destroy(): Promise<void>;
}

/** Where an upstream can be reached. */
export interface Endpoint {
  readonly index: number;
  readonly origin: string;
  /** Sent as Host, unless the client's is preserved. */
  readonly authority: string;
  /** How metrics and logs call it. */
  readonly label: string;
  /** What its certificate has to name. */
  readonly serverName: string;
  readonly connections: Connections;
  /** For requests to change to another protocol: always HTTP/1.1. */
  readonly upgrades: Connections;
  /** Undefined where it is an address. */
  readonly name: Name | undefined;
}

/** The endpoints of an upstream, with their connections. Which is sent to, and which are left out, `Rotation` says. */
export class Endpoints {
  readonly all: readonly Endpoint[];
  readonly #rotation: Rotation;
  readonly #clock: Clock;
  /** Requests for which no connection was free. */
  #waited = 0;
  readonly #made: string;

  /** @throws an Error of node:fs, when a certificate cannot be read */
  constructor(options: EndpointsOptions) {
    const { upstream, urls, pool, outliers, clock, random, listen } = options;
    this.#clock = clock;
    this.#made = digest(options);
    this.all = urls.map((url, index) =>
      openEndpoint(url, index, options, () => {
        this.#rotation.end(index);
        options.onFree(upstream);
      }),
    );
    const places = pool.connections * (pool.http2 ? MAX_STREAMS : 1);
    this.#rotation = new Rotation(urls.length, places, outliers, random, (change) => {
      const endpoint = this.at(change.index).label;
      if (change.kind === 'ejected') listen({ type: 'endpoint-ejected', upstream, endpoint, time: change.time });
      else listen({ type: 'endpoint-returned', upstream, endpoint, cause: change.cause });
    });
  }

  /**
   * Whether others made so would be the same, down to what their certificates' files hold.
   * @throws an Error of node:fs, when one cannot be read
   */
  isAs(options: EndpointsOptions): boolean {
    return this.#made === digest(options);
  }

  /** Nothing is on its way. */
  get isAtRest(): boolean {
    return this.#rotation.fullness === 0;
  }

  at(index: number): Endpoint {
    const endpoint = this.all[index];
    if (endpoint === undefined) throw new RangeError(`there is no endpoint ${index}`);
    return endpoint;
  }

  get bound(): Bound {
    return { name: 'upstream_connections', used: this.#rotation.fullness, reached: this.#waited };
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
  send(endpoint: Endpoint, errand: Errand, fresh: boolean, now: Millis): void {
    this.#rotation.begin(endpoint.index);
    endpoint.name?.keepFresh(now);
    connectionsFor(endpoint, errand).send(errand, fresh);
    if (errand.hadToWait) this.#waited += 1;
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
  over(endpoint: Endpoint, errand: Errand): void {
    connectionsFor(endpoint, errand).over(errand);
  }

  async destroy(): Promise<void> {
    const all = new Set(this.all.flatMap(({ connections, upgrades }) => [connections, upgrades]));
    await Promise.all([...all].map((connections) => connections.destroy()));
  }
}

/** A digest, so that keys are not kept for longer than they are needed. */
function digest({ urls, pool, outliers, refresh }: EndpointsOptions): string {
  const { connections, connectTimeout, http2, tls } = pool;
  const told = [urls, connections, connectTimeout, http2, readClientTls(tls), outliers, refresh];
  return createHash('sha256').update(JSON.stringify(told)).digest('base64');
}

function connectionsFor({ connections, upgrades }: Endpoint, { options }: Errand): Connections {
  return typeof options.upgrade === 'string' ? upgrades : connections;
}

function openEndpoint(url: string, index: number, options: EndpointsOptions, onFree: () => void): Endpoint {
  const { pool, lookup, refresh, clock } = options;
  const socketPath = socketOf(url);
  // On a Unix socket there is no host to name: `localhost`, as curl has it.
  const { origin, host, hostname } = new URL(socketPath === undefined ? url : 'http://localhost');
  const bare = hostname.replace(/^\[|\]$/g, '');
  const name =
    isIP(bare) === 0 && socketPath === undefined
      ? new Name({ hostname: bare, lookup, refresh, clock, onChange: () => all.forEach((each) => each.leaveOld()) })
      : undefined;
  const common = { origin, most: pool.connections, onFree, leadsTo: (at: string) => name?.leadsTo(at) ?? false };
  const upgrades = new ConnectionPool({
    ...common,
    client: clientOptions(),
    connect: makeConnect(pool, { name, socketPath, http2: false }),
    clock,
  });
  const connections = pool.http2
    ? new SharedConnections({
        ...common,
        connect: makeConnect(pool, { name, socketPath, http2: true }),
        connectTimeout: pool.connectTimeout,
        idle: KEEP_ALIVE,
        http1: upgrades,
      })
    : upgrades;
  const all = new Set<Connections>([connections, upgrades]);
  const label = socketPath === undefined ? host : url;
  return {
    index,
    origin,
    authority: host,
    label,
    serverName: pool.tls.serverName ?? bare,
    connections,
    upgrades,
    name,
  };
}
