/** Replicas keep serving when their Redis dies, hangs or loses its data, without failing requests. */
import { expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { AGAIN_IF_STALLED } from '../../support/stalls.ts';
import { expectReportedOnce, expectUnharmed, startReplicas } from '../../support/proxy/replicas.ts';

test(
  'replicas act alone at their shares while Redis is down, and share again once it is back, empty',
  AGAIN_IF_STALLED,
  async () => {
    const redis = await startRedis();
    const run = await startReplicas([redis.url, redis.url]);
    const figures = await run.during(async () => {
      const together = run.rate();
      await redis.kill();
      await run.degraded();
      // Each replica sends its share of the last rate.
      expect(run.rate() / together).toBeGreaterThan(0.75);
      expect(run.rate() / together).toBeLessThan(1.33);
      await pause(2000);
      await redis.restart();
      await run.rejoined();
    });
    expectReportedOnce(run);
    await expectUnharmed(run, figures);
  },
);

test('replicas restore the limit after Redis restarts empty', AGAIN_IF_STALLED, async () => {
  const redis = await startRedis();
  const run = await startReplicas([redis.url, redis.url]);
  const figures = await run.during(async () => {
    await redis.restart();
    await pause(500);
    await run.rejoined();
  });
  await expectUnharmed(run, figures);
});

test('replicas act alone within 250 ms while Redis hangs', AGAIN_IF_STALLED, async () => {
  const redis = await startRedis();
  const run = await startReplicas([redis.url, redis.url]);
  let began = 0;
  const figures = await run.during(async () => {
    await redis.pause(5000);
    began = Date.now();
    await run.degraded();
    await run.rejoined();
  });
  expect(run.outageLoggedAt()).toHaveLength(2);
  run.stalls.unlessStalled(() => {
    for (const at of run.outageLoggedAt()) expect(at - began).toBeLessThan(250);
  });
  expectReportedOnce(run);
  await expectUnharmed(run, figures);
});

test('replicas that start without Redis share once it is reachable', AGAIN_IF_STALLED, async () => {
  const redis = await startRedis();
  await redis.kill();
  const run = await startReplicas([redis.url, redis.url]);
  await run.degraded();
  const figures = await run.during(async () => {
    await redis.restart();
    await run.rejoined();
  });
  expectReportedOnce(run);
  await expectUnharmed(run, figures);
});

test(
  'replicas keep sharing when Redis flushes its scripts, or its clock jumps by an hour',
  AGAIN_IF_STALLED,
  async () => {
    const redis = await startRedis({ clock: true });
    // One after another, because three pairs of replicas at a time keep a small machine busy.
    const run = await startReplicas([redis.url, redis.url]);
    const flushed = await run.during(async () => {
      for (let i = 0; i < 12; i += 1) {
        await redis.client().script('FLUSH');
        await pause(200);
      }
    });
    expectReportedOnce(run, []);
    await expectUnharmed(run, flushed);
    for (const shift of [-3_600_000, 3_600_000]) {
      const jumped = await run.during(async () => {
        redis.shiftClock(shift);
        await pause(2500);
        redis.shiftClock(0);
      });
      expectReportedOnce(run, []);
      await expectUnharmed(run, jumped);
    }
  },
);
