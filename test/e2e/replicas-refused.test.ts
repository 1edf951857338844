/** Replicas go on when Redis refuses what they ask, loses their keys, or has something else in them. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { pause } from '../support/pause.ts';
import { startRedis } from '../support/redis-server.ts';
import { AGAIN_IF_STALLED } from '../support/stalls.ts';
import { expectToldOnce, expectUnharmed, startReplicas } from '../support/replicas.ts';

const PASSWORD = 'top-secret-password';

test('its memory is full: they go on alone until there is room', AGAIN_IF_STALLED, async () => {
  const redis = await startRedis({ policy: 'noeviction' });
  const run = await startReplicas([redis.url, redis.url]);
  const client = redis.client();
  const figures = await run.during(async () => {
    await client.config('SET', 'maxmemory', '1');
    await run.degraded();
    await pause(1500);
    await client.config('SET', 'maxmemory', '0');
    await run.rejoined();
  });
  expectToldOnce(run);
  expectUnharmed(run, figures);
});

test(
  'its keys are evicted, hold garbage, or something of another type: the limit goes on from what they know',
  AGAIN_IF_STALLED,
  async () => {
    await Promise.all([
      expectUnharmedBy(async (client) => {
        await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
        for (let i = 0; i < 4; i += 1) {
          await client.config('SET', 'maxmemory', '1');
          await client.config('SET', 'maxmemory', '0');
          await pause(700);
        }
      }),
      expectUnharmedBy(async (client) => {
        for (const type of ['string', 'set']) {
          const keys = await client.keys('*');
          expect(keys.length).toBeGreaterThan(2);
          const spoiling = client.multi();
          for (const key of keys) {
            spoiling.del(key);
            if (type === 'set') spoiling.sadd(key, 'x');
            else spoiling.set(key, 'garbage');
          }
          await spoiling.exec();
          await pause(1400);
        }
      }),
    ]);
  },
);

async function expectUnharmedBy(fault: (client: Redis) => Promise<void>): Promise<void> {
  const redis = await startRedis();
  const run = await startReplicas([redis.url, redis.url]);
  const figures = await run.during(() => fault(redis.client()));
  await run.rejoined();
  expectUnharmed(run, figures);
}

test(
  'its password changes: connections that live go on, new ones are refused, and no password is told',
  AGAIN_IF_STALLED,
  async () => {
    const redis = await startRedis({ password: PASSWORD });
    const run = await startReplicas([redis.url, redis.url]);
    const client = redis.client();
    const figures = await run.during(async () => {
      await client.config('SET', 'requirepass', 'another');
      await pause(300);
      expectToldOnce(run, []);
      await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub', 'SKIPME', 'yes');
      await run.degraded();
      await pause(1500);
      await client.config('SET', 'requirepass', PASSWORD);
      await run.rejoined();
    });
    expectToldOnce(run);
    expectUnharmed(run, figures);
    await expectNoSecret(run);
  },
);

test(
  'a password that is wrong from the start: they go on alone, say so, and do not tell it',
  AGAIN_IF_STALLED,
  async () => {
    const redis = await startRedis({ password: 'right' });
    const url = `redis://:${PASSWORD}@127.0.0.1:${redis.port}`;
    const run = await startReplicas([url, url]);
    await run.degraded();
    for (const gate of run.gates) expect(JSON.stringify(gate.log())).toMatch(/"cause":"(?:WRONGPASS|NOAUTH)/);
    await pause(1000);
    const figures = await run.during(async () => {
      await redis.client().config('SET', 'requirepass', PASSWORD);
      await run.rejoined();
    });
    expectToldOnce(run);
    expectUnharmed(run, figures);
    await expectNoSecret(run);
  },
);

/** In nothing that is logged or shown. */
async function expectNoSecret({ gates }: Awaited<ReturnType<typeof startReplicas>>): Promise<void> {
  for (const gate of gates) {
    expect(JSON.stringify(gate.log())).not.toContain(PASSWORD);
    for (const page of ['/api/config', '/api/status', '/metrics']) {
      expect(await (await fetch(`${gate.adminUrl}${page}`)).text()).not.toContain(PASSWORD);
    }
  }
}
