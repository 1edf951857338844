import { setImmediate } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { RedisDeliveryStore } from '../../../src/sharing/redis/deliveries/redis-delivery-store.ts';
import { startRedis, type RedisServer } from '../redis/redis-server.ts';
import { testConnection } from '../redis/test-connection.ts';
import type { DeliveryPlace, StoreProcess, StoreSettings } from './delivery-place.ts';

interface RedisStoreProcess extends StoreProcess {
  readonly store: RedisDeliveryStore;
}

interface RedisPlace extends DeliveryPlace {
  readonly redis: () => Promise<RedisServer>;
  readonly start: (settings?: StoreSettings) => Promise<RedisStoreProcess>;
  /** Begins another process beside those that run. */
  readonly join: (settings?: StoreSettings) => Promise<RedisStoreProcess>;
  /** The leases of all claims end. */
  readonly endLeases: () => Promise<void>;
}

const PREFIX = 'test';
/** Beyond what any reply takes. */
const TIMEOUT = 60_000;
/** What is sent once the turn ends. */
const DEFERRED = ['tidegateAddDelivery', 'tidegateChangeDelivery'];

/** A Redis of a test. Additions and the ends of claims arrive there with `settle`. */
export function redisPlace(): RedisPlace {
  const clock = { time: 1000 };
  const keptFor = { delivered: 5000, dead: 9000, canceled: 5000, unknown: 9000 };
  let server: Promise<RedisServer> | undefined;
  const redis = (): Promise<RedisServer> => (server ??= startRedis());
  let kill = (): void => undefined;
  let processes = 0;

  const join = async ({ secret = 'a secret', ...bounds }: StoreSettings = {}): Promise<RedisStoreProcess> => {
    const client = (await redis()).client({ maxRetriesPerRequest: 0 });
    await client.ping();
    const { connection, problems } = testConnection(client, { channel: 'unused', timeout: TIMEOUT });
    const [unreadable, reported]: [string[], Set<string>] = [[], new Set()];
    const store = new RedisDeliveryStore({
      ...{ connection, secret, prefix: PREFIX, timeout: TIMEOUT, owner: `process-${(processes += 1)}` },
      ...{ maxCount: 1e6, maxBytes: 1e9, maxEvents: 1e6, ...bounds },
      wallClock: () => clock.time,
      schedule: () => () => undefined,
      keepFor: (_route, end) => keptFor[end],
      onDue: (route) => route !== undefined && reported.add(route),
      onUnreadable: ({ id }) => unreadable.push(id),
    });
    const { settle, end } = deferCommands(client);
    kill = () => {
      end();
      client.disconnect();
    };
    onTestFinished(() => {
      if (problems.length > 0 && client.status === 'ready') throw problems[0];
    });
    await store.poll();
    return {
      ...{ store, unreadable, isChangedAtOnce: true },
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
    const claimed = `${PREFIX}:{deliveries}:d1:claimed`;
    for (const id of await client.zrange(claimed, '0', '-1')) await client.call('ZADD', claimed, 'XX', '0', id);
    client.disconnect();
  };
  const start = async (settings?: StoreSettings): Promise<RedisStoreProcess> => {
    kill();
    await endLeases();
    return join(settings);
  };
  return { clock, keptFor, start, join, endLeases, redis };
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
