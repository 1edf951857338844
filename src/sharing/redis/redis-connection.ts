import { Cluster, Redis } from 'ioredis';
import type { ConnectionOptions } from 'node:tls';
import type { Millis, Random } from '../../core/scalars.ts';

/** Where Redis is: one server, a master found by Sentinel, or a cluster. */
export interface RedisLocation {
  /** `sentinel`: the nodes are Sentinels, which know the master called `name`. */
  readonly kind: 'single' | 'sentinel' | 'cluster';
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly name: string | undefined;
  readonly db: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly sentinelUsername: string | undefined;
  readonly sentinelPassword: string | undefined;
  /** Undefined for connections without TLS. */
  readonly tls: ConnectionOptions | undefined;
}

export type RedisClient = Redis | Cluster;

/** States in which a cluster client can get stuck. */
type ClusterStatus = 'connecting' | 'connect' | 'disconnecting' | 'close';

/** The maximum time to connect, and from there to the first response. */
const CONNECT_TIMEOUT: Millis = 1000;
const FIRST_RECONNECT: Millis = 50;
/** Kept short: replicas that reconnect at different times exceed the limit together until the last has reconnected. */
const MAX_RECONNECT: Millis = 1000;

/** A client that reconnects whenever the connection is lost; commands fail at once meanwhile. It is not connected yet. */
export function createRedisClient(location: RedisLocation, random: Random): RedisClient {
  const { kind, nodes, name, db, tls } = location;
  const retryStrategy = (times: number): Millis => reconnectDelay(times, random);
  const credentials = {
    ...definedOnly({ username: location.username, password: location.password }),
    ...(tls === undefined ? {} : { tls }),
  };
  const options = {
    ...credentials,
    lazyConnect: true,
    // A request must not wait for an unavailable store.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // `RedisSubscriber` subscribes on each new connection. A failed resubscription of ioredis 6 is an unhandled rejection.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_TIMEOUT,
    retryStrategy,
    // After a failover, the former master is read-only: a new connection finds the new one.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
    db,
  };
  switch (kind) {
    case 'single': {
      const [node] = nodes;
      return enforceReadyTimeout(new Redis({ ...options, ...node }));
    }
    case 'sentinel':
      return enforceReadyTimeout(
        new Redis({
          ...options,
          sentinels: [...nodes],
          name: name ?? '',
          sentinelRetryStrategy: retryStrategy,
          // A Sentinel may accept connections without responding: then another one is queried.
          sentinelCommandTimeout: CONNECT_TIMEOUT,
          ...(tls === undefined ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true }),
          ...definedOnly({ sentinelUsername: location.sentinelUsername, sentinelPassword: location.sentinelPassword }),
        }),
      );
    case 'cluster': {
      const cluster = new Cluster([...nodes], {
        lazyConnect: true,
        enableOfflineQueue: false,
        clusterRetryStrategy: retryStrategy,
        slotsRefreshTimeout: CONNECT_TIMEOUT,
        redisOptions: { ...credentials, connectTimeout: CONNECT_TIMEOUT },
      });
      return recoverStuckCluster(cluster, nodes.length);
    }
  }
}

/** ioredis 6 bounds the time to connect, but waits for the first response without a bound. */
function enforceReadyTimeout(client: Redis): Redis {
  let timer: NodeJS.Timeout | undefined;
  client.on('connect', () => {
    clearTimeout(timer);
    timer = setTimeout(() => client.disconnect(true), CONNECT_TIMEOUT).unref();
  });
  for (const end of ['ready', 'close']) client.on(end, () => clearTimeout(timer));
  return client;
}

/**
 * ioredis 6.0 can leave a Cluster in one of these states forever:
 * - `close`, when it loses its last node while it connects: its handler, bound with `once`, has run already;
 * - `connecting` or `disconnecting`, when a late redirection adds a node while the nodes are being closed: it waits until none
 *   is left;
 * - `connect`, when the node that it sends its readiness check accepts the connection and does not answer.
 * A Cluster that is closed deliberately still reaches `end`.
 */
function recoverStuckCluster(cluster: Cluster, nodes: number): Cluster {
  let timer: NodeJS.Timeout | undefined;
  const reconnectIfStuck = (status: ClusterStatus, after: Millis, reconnect: () => void): void => {
    cluster.on(status, () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        if (cluster.status === status) reconnect();
      }, after).unref();
    });
  };
  const restart = (): void => {
    if (cluster.nodes().length > 0) cluster.disconnect(true);
  };
  // The error of a failed connect is emitted as an 'error' event too.
  reconnectIfStuck('close', MAX_RECONNECT, () => void cluster.connect().catch(() => undefined));
  reconnectIfStuck('disconnecting', MAX_RECONNECT, restart);
  reconnectIfStuck('connect', CONNECT_TIMEOUT, restart);
  // It asks the nodes for the slots one after the other.
  reconnectIfStuck('connecting', (nodes + 1) * CONNECT_TIMEOUT, restart);
  return cluster;
}

/** Half of the delay is fixed: with full jitter, it would sometimes reconnect at once. */
function reconnectDelay(times: number, random: Random): Millis {
  return Math.min(MAX_RECONNECT, FIRST_RECONNECT * 2 ** Math.min(times, 10)) * (0.5 + 0.5 * random());
}

function definedOnly<Key extends string>(
  settings: Readonly<Record<Key, string | undefined>>,
): Partial<Record<Key, string>> {
  const known: Partial<Record<Key, string>> = {};
  for (const key in settings) {
    const value = settings[key];
    if (value !== undefined) known[key] = value;
  }
  return known;
}
