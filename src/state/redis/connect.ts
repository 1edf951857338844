import { Cluster, Redis } from 'ioredis';
import type { ConnectionOptions } from 'node:tls';
import type { Millis, Random } from '../../policy/types.ts';

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

/** How long a connection may take to be made. */
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
          ...(tls === undefined ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true }),
          ...given({ sentinelUsername: place.sentinelUsername, sentinelPassword: place.sentinelPassword }),
        }),
      );
    case 'cluster': {
      const cluster = new Cluster([...nodes], {
        lazyConnect: true,
        enableOfflineQueue: false,
        clusterRetryStrategy: retryStrategy,
        redisOptions: { ...credentials, connectTimeout: CONNECT_TIMEOUT },
      });
      return revived(cluster);
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
 * ioredis 6.0: a Cluster that loses its last node while it connects stays `close` for ever, for its handler of that was
 * bound once and is spent. What is closed by us goes on to `end` or stays `disconnecting`.
 */
function revived(cluster: Cluster): Cluster {
  let timer: NodeJS.Timeout | undefined;
  cluster.on('close', () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      // What goes wrong with it, it emits as an error too.
      if (cluster.status === 'close') cluster.connect().catch(() => undefined);
    }, LONGEST_WAIT).unref();
  });
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
