import { Cluster, Redis } from 'ioredis';
import type { ConnectionOptions } from 'node:tls';
import type { Millis, Random } from '../../core/exchange/attempt-outcome.ts';

/** Where a Redis is, or the many that are one. */
export interface RedisPlace {
  /** `sentinel`: the nodes know who is the master of this name. */
  readonly kind: 'single' | 'sentinel' | 'cluster';
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly name: string | undefined;
  readonly db: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly sentinelUsername: string | undefined;
  readonly sentinelPassword: string | undefined;
  /** Undefined where it is spoken to in the clear. */
  readonly tls: ConnectionOptions | undefined;
}

export type RedisClient = Redis | Cluster;

/** Those that are to be left. */
type ClusterStatus = 'connecting' | 'connect' | 'disconnecting' | 'close';

/** How long a connection may take to be made, and each first answer on it. */
const CONNECT_TIMEOUT: Millis = 1000;
const FIRST_WAIT: Millis = 50;
/** Replicas that find it at different times have more than their shares together until the last has. */
const LONGEST_WAIT: Millis = 1000;

/** A connection that is made again whenever it is lost; what is asked meanwhile fails at once. Not begun. */
export function makeClient(place: RedisPlace, random: Random): RedisClient {
  const { kind, nodes, name, db, tls } = place;
  const retryStrategy = (times: number): Millis => pause(times, random);
  const credentials = {
    ...given({ username: place.username, password: place.password }),
    ...(tls === undefined ? {} : { tls }),
  };
  const options = {
    ...credentials,
    lazyConnect: true,
    // A request must not wait for a store that is away.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // Who subscribes does so on each new connection. ioredis 6 tells nobody that it could not: the process would end by that.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_TIMEOUT,
    retryStrategy,
    // After a failover: who was the master is none any more, and another connection finds who is.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
    db,
  };
  switch (kind) {
    case 'single': {
      const [node] = nodes;
      return readyInTime(new Redis({ ...options, ...node }));
    }
    case 'sentinel':
      return readyInTime(
        new Redis({
          ...options,
          sentinels: [...nodes],
          name: name ?? '',
          sentinelRetryStrategy: retryStrategy,
          // One may take connections and answer nothing: then another is asked.
          sentinelCommandTimeout: CONNECT_TIMEOUT,
          ...(tls === undefined ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true }),
          ...given({ sentinelUsername: place.sentinelUsername, sentinelPassword: place.sentinelPassword }),
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
      return unstuck(cluster, nodes.length);
    }
  }
}

/** ioredis 6 bounds how long a connection takes, and waits for ever for the first answer on it. */
function readyInTime(client: Redis): Redis {
  let timer: NodeJS.Timeout | undefined;
  client.on('connect', () => {
    clearTimeout(timer);
    timer = setTimeout(() => client.disconnect(true), CONNECT_TIMEOUT).unref();
  });
  for (const end of ['ready', 'close']) client.on(end, () => clearTimeout(timer));
  return client;
}

/**
 * ioredis 6.0 leaves a Cluster for ever
 * - `close`, where it loses its last node while it connects: its handler of that was bound once and is spent;
 * - `connecting` or `disconnecting`, where a redirection that comes late adds a node to those that are ended: it waits until
 *   none is left;
 * - `connect`, where the node that it asks whether all is well takes the question and answers nothing.
 * What is closed by us for good still goes on to `end`.
 */
function unstuck(cluster: Cluster, nodes: number): Cluster {
  let timer: NodeJS.Timeout | undefined;
  const leave = (status: ClusterStatus, after: Millis, by: () => void): void => {
    cluster.on(status, () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        if (cluster.status === status) by();
      }, after).unref();
    });
  };
  const beginAgain = (): void => {
    if (cluster.nodes().length > 0) cluster.disconnect(true);
  };
  // What goes wrong with it, it emits as an error too.
  leave('close', LONGEST_WAIT, () => void cluster.connect().catch(() => undefined));
  leave('disconnecting', LONGEST_WAIT, beginAgain);
  leave('connect', CONNECT_TIMEOUT, beginAgain);
  // It asks one after the other where the slots are.
  leave('connecting', (nodes + 1) * CONNECT_TIMEOUT, beginAgain);
  return cluster;
}

/** Full jitter would come back at once now and then: half of it is fixed. */
function pause(times: number, random: Random): Millis {
  return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.min(times, 10)) * (0.5 + 0.5 * random());
}

/** Those that are known. */
function given<Key extends string>(settings: Readonly<Record<Key, string | undefined>>): Partial<Record<Key, string>> {
  const known: Partial<Record<Key, string>> = {};
  for (const key in settings) {
    const value = settings[key];
    if (value !== undefined) known[key] = value;
  }
  return known;
}
