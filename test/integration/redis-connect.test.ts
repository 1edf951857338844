/** Connections to Redis that are lost while they are made again. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { makeClient } from '../../src/state/redis/connect.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startRedis } from '../support/redis-server.ts';
import { eventually } from '../support/tidegate.ts';

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
  const none = { name: undefined, username: undefined, password: undefined, tls: undefined };
  const nodes = [{ host: '127.0.0.1', port: network.port }];
  const ears = makeClient(
    { kind: 'single', nodes, db: 0, ...none, sentinelUsername: undefined, sentinelPassword: undefined },
    () => 0.5,
  );
  ears.on('error', () => undefined);
  onTestFinished(() => {
    ears.disconnect();
    process.off('unhandledRejection', note);
  });
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
