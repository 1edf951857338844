/** Faults of Redis. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis } from '../../../src/core/scalars.ts';
import { pickOf } from '../../support/oracle/topology.ts';
import type { RedisSentinel } from '../../support/redis/redis-sentinel.ts';
import type { RedisServer } from '../../support/redis/redis-server.ts';
import type { Relay } from '../../support/relay/relay.ts';
import type { Fault } from '../fault-injector.ts';
import type { FaultLog } from '../fault-record.ts';
import { until } from '../gate-process.ts';

/** It has everything that it acknowledged in its log. */
export function redisKilled(redis: RedisServer): Fault {
  return {
    name: 'Redis killed',
    inject: async (random) => {
      await redis.kill();
      await sleep(1000 * random());
      await redis.restart();
    },
  };
}

export function redisStopped(redis: RedisServer): Fault {
  return {
    name: 'Redis stopped',
    inject: async (random) => {
      redis.freeze();
      await sleep(500 + 2500 * random());
      redis.thaw();
    },
  };
}

/** In seconds. */
const CLOCK_STEPS = [5, 60, 3600];

/** Its clock is set ahead and back, to any time from a day before to a day after the true one. */
export function redisClockSet(redis: RedisServer): readonly Fault[] {
  let ahead = 0;
  const set = (name: string, sign: 1 | -1): Fault => ({
    name,
    inject: async (random) => {
      const step = sign * pickOf(CLOCK_STEPS, random);
      if (Math.abs(ahead + step) < DAY) ahead += step;
      redis.shiftClock(1000 * ahead);
      await sleep(1000);
    },
  });
  return [set('clock of Redis set ahead', 1), set('clock of Redis set back', -1)];
}

const DAY = 86_400;

/** @param relay between one replica and Redis */
export function redisUnreachable(name: string, relay: Relay, lasts: readonly [Millis, Millis], isLong = false): Fault {
  const [shortest, longest] = lasts;
  return {
    name,
    isLong,
    inject: async (random) => {
      await relay.partition();
      await sleep(shortest + (longest - shortest) * random());
      await relay.rejoin();
    },
  };
}

/** A port on which nothing listens. */
const NOWHERE = 1;

/**
 * The master is killed while its replica is behind, and Sentinel makes the replica the master: what the old one acknowledged
 * meanwhile is lost. The old one comes back empty, as the replica of the other.
 */
export function failover(sentinel: RedisSentinel, faults: FaultLog): Fault {
  const servers = [sentinel.master, sentinel.replica];
  let last: { readonly epoch: number; readonly at: Millis } | undefined;
  return {
    name: 'failover with lost writes',
    inject: async (random) => {
      const port = await sentinel.masterPort();
      const master = servers.find((each) => each.port === port);
      const replica = servers.find((each) => each.port !== port);
      if (master === undefined || replica === undefined) throw new Error(`Sentinel names port ${port}`);
      // On a slow machine, Sentinel may fail over by itself, also during this fault: then more is lost. After two, the master is the same.
      const hasChanged = last !== undefined && last.epoch !== (await sentinel.epoch());
      const part = { from: hasChanged ? (last?.at ?? 0) : performance.now(), to: Number.POSITIVE_INFINITY };
      faults.lostParts.push(part);
      await follow(replica, NOWHERE);
      await sleep(200 + 1000 * random());
      await master.kill();
      await until(async () => (await sentinel.masterPort()) === replica.port, 'the failover');
      await until(async () => (await infoOf(replica)).includes('role:master'), 'the new master');
      await master.restart();
      await follow(master, replica.port);
      const isFollowing = async (server: RedisServer): Promise<boolean> =>
        (await infoOf(server)).includes('master_link_status:up');
      await until(async () => (await isFollowing(master)) || (await isFollowing(replica)), 'the replication');
      last = { epoch: await sentinel.epoch(), at: performance.now() };
      part.to = last.at;
      // Sentinel needs to know the replica before the next failover.
      await sleep(2500);
    },
  };
}

async function follow(server: RedisServer, port: number): Promise<void> {
  const client = server.client();
  await client.replicaof('127.0.0.1', port);
  client.disconnect();
}

async function infoOf(server: RedisServer): Promise<string> {
  const client = server.client();
  const info = await client.info('replication');
  client.disconnect();
  return info;
}
