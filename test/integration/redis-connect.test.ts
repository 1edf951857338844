/** Connections to Redis that are lost while they are made again, or are made to who does not answer. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { RedisClient, RedisPlace } from '../../src/sharing/redis/redis-connection.ts';
import { makeClient } from '../../src/sharing/redis/redis-connection.ts';
import { startCluster } from '../support/redis-cluster.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startRedis } from '../support/redis-server.ts';
import { startSentinel } from '../support/redis-sentinel.ts';
import { eventually } from '../support/tidegate.ts';

const NOTHING_ELSE = {
  db: 0,
  username: undefined,
  password: undefined,
  sentinelUsername: undefined,
  sentinelPassword: undefined,
  tls: undefined,
};

/** Not begun. Ended with the test. */
function clientOf(kind: RedisPlace['kind'], ports: readonly number[], name?: string): RedisClient {
  const nodes = ports.map((port) => ({ host: '127.0.0.1', port }));
  const client = makeClient({ kind, nodes, ...NOTHING_ELSE, name }, () => 0.5);
  client.on('error', () => undefined);
  onTestFinished(() => client.disconnect());
  return client;
}

function readiness(client: RedisClient, within: number): Promise<string> {
  return eventually(
    () => client.status,
    (status) => status === 'ready',
    within,
  );
}

/** Goes on answering when its client has said that it is through; each answer comes so late. */
async function startSlowNetwork(redis: RedisServer) {
  const network = { delay: 0, port: 0, taken: 0, cut: (): void => undefined };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    network.taken += 1;
    const target = connect(redis.port, '127.0.0.1');
    const end = (): void => {
      for (const socket of [client, target]) socket.destroy();
    };
    network.cut = end;
    for (const socket of [client, target]) socket.on('error', end).on('close', end);
    client.on('data', (bytes) => target.write(bytes));
    target.on('data', (bytes) => setTimeout(() => client.write(bytes), network.delay));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  network.port = (server.address() as AddressInfo).port;
  onTestFinished(() => {
    network.cut();
    server.close();
  });
  return network;
}

// Seen: ioredis 6 subscribed again of its own accord on a connection that had been given up, told nobody that it could not, and the
// process ended by that.
test('what is answered on a connection that has been given up ends no process', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', note);
  const network = await startSlowNetwork(await startRedis());
  const ears = clientOf('single', [network.port]);
  onTestFinished(() => void process.off('unhandledRejection', note));
  await ears.connect();
  await ears.subscribe('news');

  network.delay = 700; // it asks twice, and may take a second
  network.cut();
  await eventually(
    () => network.taken,
    (taken) => taken >= 3,
  );
  expect(unhandled).toEqual([]);
});

// Seen: a replica that gave up its connections while the master of its shard was away stayed alone for ever.
test('of a cluster: who gives it up while it is redirected comes to it again', async () => {
  const { nodes } = await startCluster();
  const client = clientOf(
    'cluster',
    nodes.map(({ port }) => port),
  );
  await client.connect();
  const ofEach = Array.from({ length: 30 }, (_, i) => `key-${i}`);
  await Promise.all(ofEach.map((key) => client.set(key, 'value'))); // so it is connected to each
  const [owner] = nodes;
  const [ownKey = ''] = (await owner?.client().keys('*')) ?? [];
  const gone = once(client, '-node');
  await owner?.kill();
  await gone;
  // Any other node says where that key should be, and is heard after this.
  client.set(ownKey, 'value').catch(() => undefined);
  client.disconnect(true);
  await owner?.restart();
  expect(await readiness(client, 10_000)).toBe('ready');
});

test('of a cluster: who asks a node that takes connections and answers nothing comes to it by the others', async () => {
  const { nodes } = await startCluster();
  await Promise.all(nodes.map((node) => node.client().config('SET', 'cluster-require-full-coverage', 'no')));
  nodes[0]?.freeze();
  onTestFinished(() => nodes[0]?.thaw());
  const ports = nodes.map(({ port }) => port);
  // One of three is asked, by chance: that none of so many asks the frozen one is once in 400 runs.
  const clients = Array.from({ length: 15 }, () => clientOf('cluster', ports));
  for (const client of clients) client.connect().catch(() => undefined);
  const found = await Promise.all(clients.map((client) => readiness(client, 30_000)));
  expect(new Set(found)).toEqual(new Set(['ready']));
});

test('a Sentinel that takes connections and answers nothing: another is asked', async () => {
  const sentinel = await startSentinel();
  const mute = createServer();
  mute.listen(0, '127.0.0.1');
  await once(mute, 'listening');
  onTestFinished(() => void mute.close());
  const client = clientOf('sentinel', [(mute.address() as AddressInfo).port, sentinel.port], sentinel.name);
  client.connect().catch(() => undefined);
  expect(await readiness(client, 10_000)).toBe('ready');
});
