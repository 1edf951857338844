import type { ClientHold } from '../../../src/core/limits/client-holds.ts';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { ClientHoldChannel } from '../../../src/sharing/redis/client-hold-channel.ts';
import type { RedisServer } from '../../support/redis/redis-server.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const KEY = 'p:{holds}';

interface Replica {
  readonly holds: ClientHoldChannel;
  readonly received: ClientHold[];
}

async function startReplica({ port }: RedisServer): Promise<Replica> {
  const received: ClientHold[] = [];
  const client = new Redis(port, '127.0.0.1');
  const subscriber = new Redis(port, '127.0.0.1');
  let isClosed = false;
  const holds = new ClientHoldChannel(client, {
    prefix: 'p',
    channel: 'p:holds',
    clock: performance,
    onRequest: () => undefined,
    onHold: (hold) => void received.push(hold),
    onProblem: (error) => {
      // A hold is published before it is stored: a test may end between the two.
      if (!isClosed) throw error;
    },
  });
  subscriber.on('message', (_channel: string, message: string) => holds.onMessage(message));
  await subscriber.subscribe('p:holds');
  onTestFinished(() => {
    isClosed = true;
    holds.close();
    for (const each of [client, subscriber]) each.disconnect();
  });
  return { holds, received };
}

const inTime = (ms: number): number => performance.now() + ms;

test('publishes a client’s reduced allowance to other replicas as a remaining hold time', async () => {
  const redis = await startRedis();
  const [one, other] = [await startReplica(redis), await startReplica(redis)];
  const until = inTime(5000);
  one.holds.publish({ client: 'up\0hasty', until });
  one.holds.publish({ client: 'up\0flood', until: Number.NEGATIVE_INFINITY, allowance: 0.25 });
  await eventually(
    () => other.received,
    ({ length }) => length === 2,
  );
  const [hasty, flood] = other.received;
  expect(hasty?.client).toBe('up\0hasty');
  expect(hasty?.allowance).toBeUndefined();
  // It counts from when it is received, which may be late.
  expect(hasty?.until).toBeGreaterThan(until - 10);
  expect(hasty?.until).toBeLessThan(inTime(5000));
  expect(flood).toEqual({ client: 'up\0flood', until: Number.NEGATIVE_INFINITY, allowance: 0.25 });
});

// Regression: with clocks ten minutes apart, a hold of seconds became ten minutes at the replica that started later.
test('computes the remaining hold by the clock of Redis for replicas that start later', async () => {
  const redis = await startRedis({ clock: true });
  redis.shiftClock(600_000);
  const one = await startReplica(redis);
  one.holds.publish({ client: 'up\0hasty', until: inTime(50_000) });
  const client = redis.client();
  await eventually(
    () => client.zcard(KEY),
    (count) => count === 1,
  );
  const late = await startReplica(redis);
  await late.holds.load();
  expect(late.received.map(({ client: name }) => name)).toEqual(['up\0hasty']);
  const left = (late.received[0]?.until ?? 0) - performance.now();
  expect(left).toBeGreaterThan(10_000);
  expect(left).toBeLessThanOrEqual(50_001);
  redis.shiftClock(655_000);
  const later = await startReplica(redis);
  await later.holds.load();
  expect(later.received).toEqual([]);
});

test('drops stored holds once the clock of Redis is set back, because nobody knows when they end', async () => {
  const redis = await startRedis({ clock: true });
  redis.shiftClock(3_600_000);
  const one = await startReplica(redis);
  one.holds.publish({ client: 'up\0hasty', until: inTime(50_000) });
  const client = redis.client();
  await eventually(
    () => client.get(`${KEY}:at`),
    (at) => at !== null,
  );
  redis.shiftClock(0);
  const late = await startReplica(redis);
  await late.holds.load();
  expect(late.received).toEqual([]);
  one.holds.publish({ client: 'up\0flood', until: inTime(60_000) });
  await eventually(
    () => client.zrange(KEY, '0', '-1'),
    (names) => names.includes('up\0flood'),
  );
  const later = await startReplica(redis);
  await later.holds.load();
  expect(later.received.map(({ client: name }) => name)).toEqual(['up\0flood']);
});

test('keeps at most ten thousand holds, the longest, and each with an expiry', async () => {
  const redis = await startRedis();
  const one = await startReplica(redis);
  for (let i = 0; i < 10_050; i += 1) one.holds.publish({ client: `up\0${i}`, until: inTime(60_000 + i) });
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
