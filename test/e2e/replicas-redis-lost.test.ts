/** Replicas go on when the Redis that they share dies, stands still or forgets, and no request feels it. */
import { test } from 'vitest';
import { pause } from '../support/pause.ts';
import { startRedis } from '../support/redis-server.ts';
import { startReplicas } from '../support/replicas.ts';

test('killed, and back empty after seconds: they go on alone at their shares, and from there together', async () => {
  const redis = await startRedis();
  const run = await startReplicas([redis.url, redis.url]);
  const figures = await run.during(async () => {
    await redis.kill();
    await run.degraded();
    await pause(2000);
    await redis.restart();
    await run.rejoined();
  });
  run.expectToldOnce();
  run.expectUnharmed(figures);
});

test('restarted, empty: the limit goes on from what they knew of it', async () => {
  const redis = await startRedis();
  const run = await startReplicas([redis.url, redis.url]);
  const figures = await run.during(async () => {
    await redis.restart();
    await pause(500);
    await run.rejoined();
  });
  run.expectUnharmed(figures);
});

test('it stands still for seconds', async () => {
  const redis = await startRedis();
  const run = await startReplicas([redis.url, redis.url]);
  const figures = await run.during(async () => {
    await redis.pause(3000);
    await run.degraded();
    await run.rejoined();
  });
  run.expectToldOnce();
  run.expectUnharmed(figures);
});

test('not there at the start: it is used once it is', async () => {
  const redis = await startRedis();
  await redis.kill();
  const run = await startReplicas([redis.url, redis.url]);
  await run.degraded();
  const figures = await run.during(async () => {
    await redis.restart();
    await run.rejoined();
  });
  run.expectToldOnce();
  run.expectUnharmed(figures);
});

test('it forgets its scripts: they are loaded again, and nobody goes on alone', async () => {
  const redis = await startRedis();
  const run = await startReplicas([redis.url, redis.url]);
  const client = redis.client();
  const figures = await run.during(async () => {
    for (let i = 0; i < 5; i += 1) {
      await client.script('FLUSH');
      await pause(200);
    }
  });
  run.expectToldOnce([]);
  run.expectUnharmed(figures);
});

test.each([
  ['back', -3_600_000],
  ['ahead', 3_600_000],
])('its clock is set %s by an hour, and right again', async (_which, shift) => {
  const redis = await startRedis({ clock: true });
  const run = await startReplicas([redis.url, redis.url]);
  const figures = await run.during(async () => {
    redis.shiftClock(shift);
    await pause(1500);
    redis.shiftClock(0);
  });
  run.expectToldOnce([]);
  run.expectUnharmed(figures);
});
