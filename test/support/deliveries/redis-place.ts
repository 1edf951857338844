import { setImmediate } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { RedisDeliveryStore } from '../../../src/sharing/redis/deliveries/redis-delivery-store.ts';
import { type RedisOptions, type RedisServer, startRedis } from '../redis/redis-server.ts';
import { testConnection } from '../redis/test-connection.ts';
import type { DeliveryPlace, StoreProcess, StoreSettings } from './delivery-place.ts';

interface RedisStoreProcess extends StoreProcess {
  readonly store: RedisDeliveryStore;
  readonly problems: readonly unknown[];
  readonly client: Redis;
  /** The deliveries that have waited too long. */
  readonly expired: readonly string[];
  /** Runs the steps that wait for a time. @returns their delays */
  readonly runLater: () => readonly number[];
}

interface RedisStoreSettings extends StoreSettings {
  /** The maximum time for a response, in milliseconds; more than any takes by default. */
  readonly timeout?: number;
}

interface RedisPlace extends DeliveryPlace {
  readonly redis: () => Promise<RedisServer>;
  /** The longest time that a delivery waits. */
  readonly maxAge: { value: number };
  /** The key of this name. */
  readonly keyOf: (name: string) => string;
  readonly start: (settings?: RedisStoreSettings) => Promise<RedisStoreProcess>;
  /** Begins another process beside those that run. */
  readonly join: (settings?: RedisStoreSettings) => Promise<RedisStoreProcess>;
  /** The leases of all claims end. */
  readonly endLeases: () => Promise<void>;
}

/** Each has keys of its own. */
let places = 0;
/** Beyond what any reply takes. */
const TIMEOUT = 60_000;
/** What is sent once the turn ends. */
const DEFERRED = ['tidegateAddDelivery', 'tidegateChangeDelivery'];

/**
 * A Redis of a test, or a part of one. Additions and the ends of claims arrive there with `settle`.
 */
export function redisPlace(options: RedisOptions | Promise<RedisServer> = {}): RedisPlace {
  const clock = { time: 1000 };
  const maxAge = { value: Infinity };
  const keptFor = { delivered: 5000, dead: 9000, canceled: 5000, unknown: 9000 };
  const prefix = `place-${(places += 1)}`;
  let server = options instanceof Promise ? options : undefined;
  const redis = (): Promise<RedisServer> => (server ??= startRedis(options instanceof Promise ? {} : options));
  let kill = (): void => undefined;
  let processes = 0;

  const join = async ({
    secret = 'a secret',
    timeout = TIMEOUT,
    ...bounds
  }: RedisStoreSettings = {}): Promise<RedisStoreProcess> => {
    const client = (await redis()).client({ maxRetriesPerRequest: 0 });
    await client.ping();
    const { connection, problems } = testConnection(client, { channel: 'unused', timeout });
    let later: (readonly [delay: number, run: () => void])[] = [];
    const [unreadable, expired, reported]: [string[], string[], Set<string>] = [[], [], new Set()];
    const callbacks: (readonly [route: string, isStored: boolean])[] = [];
    const store = new RedisDeliveryStore({
      ...{ connection, secret, prefix, timeout, owner: `process-${(processes += 1)}` },
      ...{ maxCount: 1e6, maxBytes: 1e9, maxEvents: 1e6, ...bounds },
      wallClock: () => clock.time,
      schedule: (delay, run) => {
        const entry = [delay, run] as const;
        later.push(entry);
        return () => void (later = later.filter((each) => each !== entry));
      },
      keepFor: (_route, end) => keptFor[end],
      maxAge: () => maxAge.value,
      onExpired: (deliveries) => expired.push(...deliveries.map((each) => each.id)),
      onDue: (route) => route !== undefined && reported.add(route),
      onUnreadable: ({ id }) => unreadable.push(id),
      onCallback: (route, isStored) => callbacks.push([route, isStored]),
    });
    const { settle, end } = deferCommands(client);
    kill = () => {
      end();
      client.disconnect();
    };
    await store.poll();
    return {
      ...{ store, client, unreadable, callbacks, expired, problems, isChangedAtOnce: true },
      runLater: () => {
        const now = later;
        later = [];
        for (const [, run] of now) run();
        return now.map(([delay]) => delay);
      },
      settle: async () => {
        await settle();
        await store.poll();
      },
      reportedDue: () => {
        const routes = [...reported];
        reported.clear();
        return routes;
      },
    };
  };
  const endLeases = async (): Promise<void> => {
    const client = (await redis()).client();
    const claimed = `${prefix}:{deliveries}:d2:claimed`;
    for (const id of await client.zrange(claimed, '0', '-1')) await client.call('ZADD', claimed, 'XX', '0', id);
    client.disconnect();
  };
  const start = async (settings?: RedisStoreSettings): Promise<RedisStoreProcess> => {
    kill();
    await endLeases();
    return join(settings);
  };
  return {
    clock,
    keptFor,
    maxAge,
    start,
    join,
    endLeases,
    redis,
    keyOf: (name) => `${prefix}:{deliveries}:d2:${name}`,
  };
}

/** Keeps commands of a client back until `settle`, which resolves once they have replies. After `end`, they are never sent. */
function deferCommands(client: object) {
  let deferred: (() => void)[] = [];
  let isOpen = false;
  const pending = new Set<Promise<unknown>>();
  for (const name of DEFERRED) {
    const command = Reflect.get(client, name) as (...args: unknown[]) => Promise<unknown>;
    Reflect.set(client, name, (...args: unknown[]) => {
      const reply = new Promise<unknown>((resolve, reject) => {
        const send = (): void => void command.apply(client, args).then(resolve, reject);
        if (isOpen) send();
        else deferred.push(send);
      });
      pending.add(reply);
      const onReply = (): void => void pending.delete(reply);
      void reply.then(onReply, onReply);
      return reply;
    });
  }
  const settle = async (): Promise<void> => {
    isOpen = true;
    while (deferred.length > 0 || pending.size > 0) {
      const now = deferred;
      deferred = [];
      for (const send of now) send();
      await Promise.allSettled(pending);
      await setImmediate(); // what the replies have called may send more
    }
    isOpen = false;
  };
  const end = (): void => {
    deferred = [];
    isOpen = false;
  };
  return { settle, end };
}
