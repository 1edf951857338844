/** Replicas follow a master that is replaced, and share through a cluster. */
import { expect, test } from 'vitest';
import { pause } from '../support/pause.ts';
import { startCluster } from '../support/redis-cluster.ts';
import { startSentinel } from '../support/redis-sentinel.ts';
import { startRedis } from '../support/redis-server.ts';
import { AGAIN_IF_STALLED } from '../support/stalls.ts';
import { expectToldOnce, expectUnharmed, startReplicas } from '../support/replicas.ts';
import { eventually } from '../support/tidegate.ts';

/** A Sentinel does nothing for half a minute after its machine stalled for 2 s. */
const PATIENCE = 90_000;

test('the server becomes a replica, which may only be read, and master again', AGAIN_IF_STALLED, async () => {
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
  expectToldOnce(run);
  expectUnharmed(run, figures);
});

test('Sentinel makes another the master', AGAIN_IF_STALLED, async () => {
  const sentinel = await startSentinel({ password: 'secret' });
  const run = await startReplicas([sentinel.url, sentinel.url]);
  expectToldOnce(run, []);
  const figures = await run.during(async () => {
    await sentinel.master.kill();
    await run.degraded();
    await eventually(sentinel.masterPort, (port) => port === sentinel.replica.port, PATIENCE);
    await run.rejoined();
  });
  expectToldOnce(run);
  expectUnharmed(run, figures);
  expect(await sentinel.replica.client().dbsize()).toBeGreaterThan(0);
});

test(
  'a cluster: shared by it, and gone on with alone while the master of the shard is away',
  AGAIN_IF_STALLED,
  async () => {
    const cluster = await startCluster();
    const run = await startReplicas([cluster.url, cluster.url]);
    expectToldOnce(run, []);
    const sizes = await Promise.all(cluster.nodes.map((node) => node.client().dbsize()));
    const owner = cluster.nodes[sizes.findIndex((size) => size > 0)];
    const figures = await run.during(async () => {
      await owner?.kill();
      await run.degraded();
      await pause(1000);
      await owner?.restart();
      await run.rejoined();
    });
    expectUnharmed(run, figures);
  },
);
