/** Replicas keep serving when the network to Redis is slow, cut or silent. */
import { expect, onTestFinished, test } from 'vitest';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { pause } from '../../support/pause.ts';
import type { RedisServer } from '../../support/redis/redis-server.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import type { Link, Relay } from '../../support/relay/relay.ts';
import { startRelay } from '../../support/relay/relay.ts';
import { AGAIN_IF_STALLED } from '../../support/stalls.ts';
import {
  expectReportedOnce,
  expectUnharmed,
  SCRAPE_INTERVAL,
  startReplica,
  startReplicas,
  stateAt,
} from '../../support/proxy/replicas.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

/** Milliseconds; longer than the timeout of a dead connection. */
const PATIENCE = 30_000;

/** Starts a separate network path to Redis, so that faults affect one replica only. */
async function startNetwork(url: string): Promise<Relay> {
  const relay = await startRelay(url);
  onTestFinished(() => relay.close());
  return relay;
}

function urlOf({ port }: Relay): string {
  return `redis://127.0.0.1:${port}`;
}

test('keep sharing while the latency to Redis is 60 ms, then random from 20 to 70 ms', AGAIN_IF_STALLED, async () => {
  const redis = await startRedis();
  const relay = await startNetwork(redis.url);
  // The round trip is up to 140 ms. The default timeout of 150 ms leaves a busy machine 10 ms.
  const run = await startReplicas([urlOf(relay), urlOf(relay)], { state: 'timeout: 240ms' });
  const random = seededRandom(1);
  const delay = (): number => 20 + 50 * random();
  const figures = await run.during(async () => {
    relay.injectFaults({ up: { delay: 60 }, down: { delay: 60 } });
    await pause(2500);
    for (let i = 0; i < 50; i += 1) {
      relay.injectFaults({ up: { delay: delay() }, down: { delay: delay() } });
      await pause(50);
    }
    relay.injectFaults({});
  });
  await expectUnharmed(run, figures);
});

test(
  'only the replica cut off from Redis, silently or by a reset, acts alone until it is back',
  AGAIN_IF_STALLED,
  async () => {
    await Promise.all([
      expectUnharmedByCut(
        (relay) => relay.partition(),
        (relay) => relay.rejoin(),
      ),
      expectUnharmedByCut(
        async (relay) => {
          await relay.refuse();
          relay.break('reset');
        },
        (relay) => relay.accept(),
      ),
    ]);
  },
);

async function expectUnharmedByCut(
  cut: (relay: Relay) => Promise<void>,
  heal: (relay: Relay) => Promise<void>,
): Promise<void> {
  const redis = await startRedis();
  const relay = await startNetwork(redis.url);
  // The replica cut off keeps its share while the others use the whole rate, so the limit has to be learned again.
  const run = await startReplicas([urlOf(relay), redis.url, redis.url]);
  const cutOff = run.gates.slice(0, 1);
  const figures = await run.during(async () => {
    await cut(relay);
    await run.degraded(cutOff);
    await pause(3500);
    await heal(relay);
    await run.rejoined();
  });
  expectReportedOnce(run, cutOff);
  await expectUnharmed(run, figures);
}

/** Starts a replica behind `relay` with constant traffic: without requests, a dead connection is not detected. */
async function startBusyReplica(relay: Relay): Promise<Tidegate> {
  const upstream = await startUpstream();
  const gate = await startReplica(urlOf(relay), upstream, { rateLimit: 'initialRate: 100/s' });
  const traffic = startTraffic({ target: gate.url, clients: [{ name: 'client', rate: 20 }] });
  onTestFinished(() => traffic.stop(0));
  return gate;
}

async function expectShared(gate: Tidegate): Promise<void> {
  const answered = (): Promise<number> =>
    gate.metric('tidegate_store_requests_total{store="redis",op="report",result="ok"}');
  const before = await answered();
  await eventually(answered, (count) => count > before, PATIENCE, SCRAPE_INTERVAL);
}

function stop(links: readonly Link[]): void {
  for (const link of links) for (const way of ['up', 'down'] as const) link.pause(way);
}

test('replaces silently dead connections, and later a dead subscriber connection', AGAIN_IF_STALLED, async () => {
  const redis = await startRedis();
  const relay = await startNetwork(redis.url);
  const gate = await startBusyReplica(relay);
  await expectSubscribers(redis);
  const dead = relay.links;
  expect(dead).toHaveLength(2);
  stop(dead);
  await eventually(
    () => relay.taken,
    (taken) => taken >= 4,
  );
  await expectShared(gate);
  await expectSubscribers(redis, 2); // Redis still counts the dead subscriber

  const alive = relay.links.filter((link) => !dead.includes(link)).map((link) => ({ link, up: link.passed('up') }));
  await pause(500);
  // The command connection sends constantly; the subscriber sends at most one message a second.
  const [listening] = alive.toSorted((a, b) => a.link.passed('up') - a.up - (b.link.passed('up') - b.up));
  const { taken } = relay;
  stop(listening === undefined ? [] : [listening.link]);
  await eventually(
    () => relay.taken,
    (now) => now > taken,
  );
  await expectSubscribers(redis, 3);
});

test(
  'replaces silently dead connections that only writes with keys use, and reports the loss',
  AGAIN_IF_STALLED,
  async () => {
    const redis = await startRedis();
    const relay = await startNetwork(redis.url);
    const upstream = await startUpstream();
    const gate = await startTidegate(
      `${stateAt(urlOf(relay))}upstreams: {api: {url: "${upstream.url}", idempotency: {ttl: 1h}}}\n`,
    );
    let sent = 0;
    const write = async (): Promise<number> => {
      sent += 1;
      const { status } = await fetch(gate.url, { method: 'POST', headers: { 'idempotency-key': `key ${sent}` } });
      return status;
    };
    await eventually(write, (status) => status === 200);
    await expectSubscribers(redis);
    stop(relay.links);
    await eventually(write, (status) => status === 503);
    await eventually(
      () => gate.metric('tidegate_store_degraded{store="redis"}'),
      (value) => value === 1,
    );
    await eventually(write, (status) => status === 200, PATIENCE);
    await eventually(
      () => gate.metric('tidegate_store_degraded{store="redis"}'),
      (value) => value === 0,
      PATIENCE,
    );
  },
);

test('closes a connection that never gets its first response', AGAIN_IF_STALLED, async () => {
  const redis = await startRedis();
  const relay = await startNetwork(redis.url);
  const gate = await startBusyReplica(relay);
  await expectSubscribers(redis);
  relay.injectFaults({ down: { end: { after: 0, how: 'stall' } } }, 'new');
  relay.break('reset');
  await eventually(
    () => relay.taken,
    (taken) => taken >= 4,
  );
  relay.injectFaults({}, 'new');
  await expectShared(gate);
  await expectSubscribers(redis);
});

/** Resolves when at least `count` connections subscribe to the channel. */
async function expectSubscribers(redis: RedisServer, count = 1): Promise<void> {
  const client = redis.client();
  await eventually(
    async () => Number((await client.pubsub('NUMSUB', 'tidegate:holds'))[1]),
    (listening) => listening >= count,
  );
}
