/** Clients that are to wait, as replicas tell each other and those that come later by Redis. */
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import type { Hold } from '../../src/sharing/workers/worker-protocol.ts';
import { Holds } from '../../src/sharing/redis/client-hold-channel.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startRedis } from '../support/redis-server.ts';
import { eventually } from '../support/tidegate.ts';

const KEY = 'p:{holds}';

interface Replica {
  readonly holds: Holds;
  readonly heard: Hold[];
}

async function startReplica({ port }: RedisServer): Promise<Replica> {
  const heard: Hold[] = [];
  const client = new Redis(port, '127.0.0.1');
  const ears = new Redis(port, '127.0.0.1');
  let isClosed = false;
  const holds = new Holds(client, {
    prefix: 'p',
    channel: 'p:holds',
    clock: performance,
    onRequest: () => undefined,
    onHold: (hold) => void heard.push(hold),
    onProblem: (error) => {
      // What is told is heard before it is kept: a test may end between the two.
      if (!isClosed) throw error;
    },
  });
  ears.on('message', (_channel: string, message: string) => holds.hear(message));
  await ears.subscribe('p:holds');
  onTestFinished(() => {
    isClosed = true;
    holds.close();
    for (const each of [client, ears]) each.disconnect();
  });
  return { holds, heard };
}

const inTime = (ms: number): number => performance.now() + ms;

test('what a client may have less of is told to those that are there, as how long it is to wait', async () => {
  const redis = await startRedis();
  const [one, other] = [await startReplica(redis), await startReplica(redis)];
  one.holds.tell({ client: 'up\0hasty', until: inTime(5000) });
  one.holds.tell({ client: 'up\0flood', until: Number.NEGATIVE_INFINITY, allowance: 0.25 });
  await eventually(
    () => other.heard,
    ({ length }) => length === 2,
  );
  const [hasty, flood] = other.heard;
  expect(hasty?.client).toBe('up\0hasty');
  expect(hasty?.allowance).toBeUndefined();
  expect(Math.abs((hasty?.until ?? 0) - inTime(5000))).toBeLessThan(1000);
  expect(flood).toEqual({ client: 'up\0flood', until: Number.NEGATIVE_INFINITY, allowance: 0.25 });
});

// Seen: with ten minutes between the clocks of two machines, five seconds were ten minutes to the one that started later.
test('who comes later knows by the clock of Redis how long is left, whatever the wall says', async () => {
  const redis = await startRedis({ clock: true });
  redis.shiftClock(600_000);
  const one = await startReplica(redis);
  one.holds.tell({ client: 'up\0hasty', until: inTime(5000) });
  const client = redis.client();
  await eventually(
    () => client.zcard(KEY),
    (count) => count === 1,
  );
  const late = await startReplica(redis);
  await late.holds.learn();
  expect(late.heard.map(({ client: name }) => name)).toEqual(['up\0hasty']);
  const left = (late.heard[0]?.until ?? 0) - performance.now();
  expect(left).toBeGreaterThan(1000);
  expect(left).toBeLessThanOrEqual(5001);
  redis.shiftClock(610_000);
  const later = await startReplica(redis);
  await later.holds.learn();
  expect(later.heard).toEqual([]);
});

test('no more than ten thousand are kept, the longest, and none for ever', async () => {
  const redis = await startRedis();
  const one = await startReplica(redis);
  for (let i = 0; i < 10_050; i += 1) one.holds.tell({ client: `up\0${i}`, until: inTime(60_000 + i) });
  const client = redis.client();
  await eventually(
    () => client.pttl(KEY),
    (ttl) => ttl > 0,
  );
  expect(await client.zcard(KEY)).toBe(10_000);
  expect(await client.zscore(KEY, 'up\x0010049')).not.toBeNull();
  expect(await client.zscore(KEY, 'up\x0049')).toBeNull();
  expect(await client.pttl(KEY)).toBeLessThanOrEqual(86_400_000);
});
