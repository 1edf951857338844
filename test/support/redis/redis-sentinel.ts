/** Starts a master, its replica, and a Sentinel that fails over after the master has not responded for 500 ms. */
import type { Redis } from 'ioredis';
import { connect } from './connect.ts';
import { makeFolder, startRedisProcess } from './redis-process.ts';
import type { RedisOptions, RedisServer } from './redis-server.ts';
import { startRedis } from './redis-server.ts';
import { eventually } from '../proxy/tidegate.ts';

export interface RedisSentinel {
  /** `redis+sentinel://127.0.0.1:26379/mymaster` */
  readonly url: string;
  readonly port: number;
  readonly name: string;
  /** The initial roles. */
  readonly master: RedisServer;
  readonly replica: RedisServer;
  /** Opens a connection to the current master, closed when the test ends. */
  readonly client: () => Redis;
  /** Returns the port of the master according to Sentinel. */
  readonly masterPort: () => Promise<number>;
  /** Returns the number of the last failover: Sentinel's `config-epoch`. */
  readonly epoch: () => Promise<number>;
}

const NAME = 'mymaster';

/** Resolves when Sentinel is ready to fail over. @param options of both servers */
export async function startSentinel(options: RedisOptions = {}): Promise<RedisSentinel> {
  const master = await startRedis(options);
  const replica = await startRedis({ ...options, replicaOf: master });
  const { password } = options;
  const sentinel = await startRedisProcess({
    folder: makeFolder(),
    settings: {
      'sentinel monitor': [NAME, '127.0.0.1', String(master.port), '1'],
      'sentinel down-after-milliseconds': [NAME, '500'],
      'sentinel failover-timeout': [NAME, '2000'],
      ...(password === undefined ? {} : { 'sentinel auth-pass': [NAME, password] }),
    },
    password: undefined,
    flags: ['--sentinel'],
  });
  const asked = connect({ host: '127.0.0.1', port: sentinel.port, enableReadyCheck: false });
  await eventually(
    async () => [await asked.call('SENTINEL', 'REPLICAS', NAME)].flat(2).map(String),
    (seen) => seen.includes('slave') && seen.includes('ok') && seen.includes(String(replica.port)),
  );
  const credentials = password === undefined ? '' : `:${encodeURIComponent(password)}@`;
  return {
    url: `redis+sentinel://${credentials}127.0.0.1:${sentinel.port}/${NAME}`,
    port: sentinel.port,
    name: NAME,
    master,
    replica,
    client: () =>
      connect({
        sentinels: [{ host: '127.0.0.1', port: sentinel.port }],
        name: NAME,
        ...(password === undefined ? {} : { password }),
        sentinelRetryStrategy: () => 20,
      }),
    masterPort: async () => {
      const address = await asked.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME);
      return Number([address].flat()[1]);
    },
    epoch: async () => {
      const fields = [await asked.call('SENTINEL', 'MASTER', NAME)].flat().map(String);
      return Number(fields[fields.indexOf('config-epoch') + 1]);
    },
  };
}
