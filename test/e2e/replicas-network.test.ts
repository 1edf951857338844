/** Replicas go on when the network between one of them and Redis is slow, cut, or silent. */
import { expect, onTestFinished, test } from 'vitest';
import { startTraffic } from '../../src/simulator/practice/traffic-generator.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { pause } from '../support/pause.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startRedis } from '../support/redis-server.ts';
import type { Link, Relay } from '../support/relay.ts';
import { startRelay } from '../support/relay.ts';
import { AGAIN_IF_STALLED } from '../support/stalls.ts';
import { expectToldOnce, expectUnharmed, startReplica, startReplicas } from '../support/replicas.ts';
import type { Tidegate } from '../support/tidegate.ts';
import { eventually, startUpstream } from '../support/tidegate.ts';

/** Longer than a dead connection is believed in. */
const PATIENCE = 20_000;

/** A network of its own to a Redis that another replica may have another to. */
async function startNetwork(url: string): Promise<Relay> {
  const relay = await startRelay(url);
  onTestFinished(() => relay.close());
  return relay;
}

function urlOf({ port }: Relay): string {
  return `redis://127.0.0.1:${port}`;
}

test(
  'it gets slow, first 60 ms away and then any time from 20 to 70 ms, and quick again: they share on',
  AGAIN_IF_STALLED,
  async () => {
    const redis = await startRedis();
    const relay = await startNetwork(redis.url);
    const run = await startReplicas([urlOf(relay), urlOf(relay)]);
    const random = seededRandom(1);
    const delay = (): number => 20 + 50 * random();
    const figures = await run.during(async () => {
      relay.spoil({ up: { delay: 60 }, down: { delay: 60 } });
      await pause(2500);
      for (let i = 0; i < 50; i += 1) {
        relay.spoil({ up: { delay: delay() }, down: { delay: delay() } });
        await pause(50);
      }
      relay.spoil({});
    });
    expectUnharmed(run, figures);
  },
);

test(
  'one is cut off, without a word or by a reset, and comes back: it alone goes on alone',
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
  // Who is cut off goes on with its share, and the others have all of the rate, for they cannot know: the limit is felt anew.
  const run = await startReplicas([urlOf(relay), redis.url, redis.url]);
  const cutOff = run.gates.slice(0, 1);
  const figures = await run.during(async () => {
    await cut(relay);
    await run.degraded(cutOff);
    await pause(3500);
    await heal(relay);
    await run.rejoined();
  });
  expectToldOnce(run, cutOff);
  expectUnharmed(run, figures);
}

/** One replica behind this network, with somebody who asks all the time: where nothing is asked, nothing is missed. */
async function startAsked(relay: Relay): Promise<Tidegate> {
  const upstream = await startUpstream();
  const gate = await startReplica(urlOf(relay), upstream, { rateLimit: 'initialRate: 100/s' });
  const traffic = startTraffic({ target: gate.url, clients: [{ name: 'somebody', rate: 20 }] });
  onTestFinished(() => traffic.stop(0));
  return gate;
}

async function expectShared(gate: Tidegate): Promise<void> {
  const answered = (): Promise<number> =>
    gate.metric('tidegate_store_requests_total{store="redis",op="report",result="ok"}');
  const before = await answered();
  await eventually(answered, (count) => count > before, PATIENCE);
}

function stop(links: readonly Link[]): void {
  for (const link of links) for (const way of ['up', 'down'] as const) link.pause(way);
}

test(
  'connections that are dead without a word are replaced, and then the one that only listens',
  AGAIN_IF_STALLED,
  async () => {
    const redis = await startRedis();
    const relay = await startNetwork(redis.url);
    const gate = await startAsked(relay);
    await expectHeard(redis);
    const dead = relay.links;
    expect(dead).toHaveLength(2);
    stop(dead);
    await eventually(
      () => relay.taken,
      (taken) => taken >= 4,
      PATIENCE,
    );
    await expectShared(gate);
    await expectHeard(redis, 2); // Redis does not know yet that one of them is dead

    const alive = relay.links.filter((link) => !dead.includes(link)).map((link) => ({ link, up: link.passed('up') }));
    await pause(500);
    // One asks all the time; the other says at most a word a second.
    const [listening] = alive.toSorted((a, b) => a.link.passed('up') - a.up - (b.link.passed('up') - b.up));
    const { taken } = relay;
    stop(listening === undefined ? [] : [listening.link]);
    await eventually(
      () => relay.taken,
      (now) => now > taken,
      PATIENCE,
    );
    await expectHeard(redis, 3);
  },
);

test('a connection on which the first answer does not come is given up', AGAIN_IF_STALLED, async () => {
  const redis = await startRedis();
  const relay = await startNetwork(redis.url);
  const gate = await startAsked(relay);
  await expectHeard(redis);
  relay.spoil({ down: { end: { after: 0, how: 'stall' } } }, 'new');
  relay.break('reset');
  await eventually(
    () => relay.taken,
    (taken) => taken >= 4,
    PATIENCE,
  );
  relay.spoil({}, 'new');
  await expectShared(gate);
  await expectHeard(redis);
});

/** Resolves when so many connections listen there. */
async function expectHeard(redis: RedisServer, count = 1): Promise<void> {
  const client = redis.client();
  await eventually(
    async () => Number((await client.pubsub('NUMSUB', 'tidegate:holds'))[1]),
    (listening) => listening >= count,
    PATIENCE,
  );
}
