/** Replicas go on when the Redis that they share dies, stands still or forgets, and no request feels it. */
import { expect, test } from 'vitest';
import { pause } from '../support/pause.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startRedis } from '../support/redis-server.ts';
import { AGAIN_IF_STALLED } from '../support/stalls.ts';
import { expectToldOnce, expectUnharmed, startReplicas } from '../support/replicas.ts';

test(
  'killed, and back empty after seconds: they go on alone at their shares, and from there together',
  AGAIN_IF_STALLED,
  async () => {
    const redis = await startRedis();
    const run = await startReplicas([redis.url, redis.url]);
    const figures = await run.during(async () => {
      const together = run.rate();
      await redis.kill();
      await run.degraded();
      // At the last rate, each its share.
      expect(run.rate() / together).toBeGreaterThan(0.75);
      expect(run.rate() / together).toBeLessThan(1.33);
      await pause(2000);
      await redis.restart();
      await run.rejoined();
    });
    expectToldOnce(run);
    expectUnharmed(run, figures);
  },
);

test('restarted, empty: the limit goes on from what they knew of it', AGAIN_IF_STALLED, async () => {
  const redis = await startRedis();
  const run = await startReplicas([redis.url, redis.url]);
  const figures = await run.during(async () => {
    await redis.restart();
    await pause(500);
    await run.rejoined();
  });
  expectUnharmed(run, figures);
});

test('it stands still for seconds', AGAIN_IF_STALLED, async () => {
  const redis = await startRedis();
  const run = await startReplicas([redis.url, redis.url]);
  let began = 0;
  const figures = await run.during(async () => {
    await redis.pause(5000);
    began = Date.now();
    await run.degraded();
    await run.rejoined();
  });
  expect(run.toldAt()).toHaveLength(2);
  run.stalls.unlessStalled(() => {
    for (const at of run.toldAt()) expect(at - began).toBeLessThan(250);
  });
  expectToldOnce(run);
  expectUnharmed(run, figures);
});

test('not there at the start: it is used once it is', AGAIN_IF_STALLED, async () => {
  const redis = await startRedis();
  await redis.kill();
  const run = await startReplicas([redis.url, redis.url]);
  await run.degraded();
  const figures = await run.during(async () => {
    await redis.restart();
    await run.rejoined();
  });
  expectToldOnce(run);
  expectUnharmed(run, figures);
});

test(
  'its scripts are forgotten, its clock is set back and ahead by an hour: nobody goes on alone',
  AGAIN_IF_STALLED,
  async () => {
    await Promise.all([
      expectUntroubledBy(async (redis) => {
        for (let i = 0; i < 12; i += 1) {
          await redis.client().script('FLUSH');
          await pause(200);
        }
      }),
      ...[-3_600_000, 3_600_000].map((shift) =>
        expectUntroubledBy(async (redis) => {
          redis.shiftClock(shift);
          await pause(2500);
          redis.shiftClock(0);
        }),
      ),
    ]);
  },
);

async function expectUntroubledBy(fault: (redis: RedisServer) => Promise<void>): Promise<void> {
  const redis = await startRedis({ clock: true });
  const run = await startReplicas([redis.url, redis.url]);
  const figures = await run.during(() => fault(redis));
  expectToldOnce(run, []);
  expectUnharmed(run, figures);
}
