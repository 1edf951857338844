/** Replicas follow a failover of Redis, and share limits through a cluster. */
import { expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { startCluster } from '../../support/redis/redis-cluster.ts';
import { startSentinel } from '../../support/redis/redis-sentinel.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { AGAIN_IF_STALLED } from '../../support/stalls.ts';
import { expectReportedOnce, expectUnharmed, startReplicas } from '../../support/proxy/replicas.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

/** Milliseconds. Sentinel does nothing for 30 s after its machine stalled for 2 s. */
const PATIENCE = 90_000;

test(
  'replicas act alone while Redis is a read-only replica, and share again once it is master',
  AGAIN_IF_STALLED,
  async () => {
    const [redis, master] = await Promise.all([startRedis(), startRedis()]);
    const run = await startReplicas([redis.url, redis.url]);
    const client = redis.client();
    const figures = await run.during(async () => {
      await client.replicaof('127.0.0.1', master.port);
      await run.degraded();
      await pause(2000);
      await client.replicaof('NO', 'ONE');
      await run.rejoined();
    });
    expectReportedOnce(run);
    await expectUnharmed(run, figures);
  },
);

test('replicas follow Sentinel to the new master', AGAIN_IF_STALLED, async () => {
  const sentinel = await startSentinel({ password: 'secret' });
  const run = await startReplicas([sentinel.url, sentinel.url]);
  expectReportedOnce(run, []);
  const figures = await run.during(async () => {
    await sentinel.master.kill();
    await run.degraded();
    await eventually(sentinel.masterPort, (port) => port === sentinel.replica.port, PATIENCE);
    await run.rejoined();
  });
  expectReportedOnce(run);
  await expectUnharmed(run, figures);
  expect(await sentinel.replica.client().dbsize()).toBeGreaterThan(0);
});

test(
  'replicas share through a cluster, and act alone while the master of the shard is down',
  AGAIN_IF_STALLED,
  async () => {
    const cluster = await startCluster();
    const run = await startReplicas([cluster.url, cluster.url]);
    expectReportedOnce(run, []);
    const sizes = await Promise.all(cluster.nodes.map((node) => node.client().dbsize()));
    const owner = cluster.nodes[sizes.findIndex((size) => size > 0)];
    const figures = await run.during(async () => {
      await owner?.kill();
      await run.degraded();
      await pause(1000);
      await owner?.restart();
      await run.rejoined();
    });
    await expectUnharmed(run, figures);
  },
);
