/** Replicas keep serving when Redis rejects their commands, evicts their keys or has invalid values in them. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { AGAIN_IF_STALLED } from '../../support/stalls.ts';
import { expectReportedOnce, expectUnharmed, startReplicas } from '../../support/proxy/replicas.ts';

const PASSWORD = 'top-secret-password';

test('replicas act alone while the memory of Redis is full', AGAIN_IF_STALLED, async () => {
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
  expectReportedOnce(run);
  await expectUnharmed(run, figures);
});

test('replicas restore the limit when its keys are evicted, corrupt or of another type', AGAIN_IF_STALLED, async () => {
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
});

async function expectUnharmedBy(fault: (client: Redis) => Promise<void>): Promise<void> {
  const redis = await startRedis();
  const run = await startReplicas([redis.url, redis.url]);
  const figures = await run.during(() => fault(redis.client()));
  await run.rejoined();
  await expectUnharmed(run, figures);
}

test(
  'after a password change open connections work, new ones are rejected, and no password leaks',
  AGAIN_IF_STALLED,
  async () => {
    const redis = await startRedis({ password: PASSWORD });
    const run = await startReplicas([redis.url, redis.url]);
    const client = redis.client();
    const figures = await run.during(async () => {
      await client.config('SET', 'requirepass', 'another');
      await pause(300);
      expectReportedOnce(run, []);
      await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub', 'SKIPME', 'yes');
      await run.degraded();
      await pause(1500);
      await client.config('SET', 'requirepass', PASSWORD);
      await run.rejoined();
    });
    expectReportedOnce(run);
    await expectUnharmed(run, figures);
    await expectNoSecret(run);
  },
);

test(
  'replicas with a wrong password act alone, log the cause, and do not reveal the password',
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
    expectReportedOnce(run);
    await expectUnharmed(run, figures);
    await expectNoSecret(run);
  },
);

/** Expects that no log line or admin page contains the password. */
async function expectNoSecret({ gates }: Awaited<ReturnType<typeof startReplicas>>): Promise<void> {
  for (const gate of gates) {
    expect(JSON.stringify(gate.log())).not.toContain(PASSWORD);
    for (const page of ['/api/config', '/api/status', '/metrics']) {
      expect(await (await fetch(`${gate.adminUrl}${page}`)).text()).not.toContain(PASSWORD);
    }
  }
}
