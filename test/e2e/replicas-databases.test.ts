/** Databases of one Redis have nothing in common: staging must not say how fast production sends. */
import { expect, test } from 'vitest';
import { startTraffic } from '../../src/simulator/practice/traffic-generator.ts';
import { readScripts } from '../../src/sharing/redis/lua-scripts.ts';
import { pause } from '../support/pause.ts';
import { startRedis } from '../support/redis-server.ts';
import { startReplica } from '../support/replicas.ts';
import { eventually, startUpstream } from '../support/tidegate.ts';

test('a limit of another database is another limit, whatever they are called', async () => {
  const redis = await startRedis();
  const upstream = await startUpstream({ limit: { kind: 'token-bucket', rate: 10, burst: 1 } });
  const [there, here] = await Promise.all([5, 0].map((db) => startReplica(`${redis.url}/${db}`, upstream)));
  if (there === undefined || here === undefined) throw new Error('two were started');
  const heard = redis.client();
  const published: string[] = [];
  await heard.psubscribe('tidegate:*');
  heard.on('pmessage', (_, channel: string) => {
    if (!channel.includes(':echo:')) published.push(channel);
  });
  // Requests are told, so that it has heard of its limit.
  const { status } = await fetch(here.url, { headers: { 'x-api-key': 'a' } });
  expect(status).toBe(200);
  const traffic = startTraffic({ target: there.url, clients: [{ name: 'b', rate: 60 }], seed: 1 });
  await eventually(
    () => there.view().limits[0]?.state,
    (state) => state !== 'open',
  );
  await eventually(
    () => published.length,
    (count) => count > 2,
  );
  await pause(100);
  await traffic.stop(0);
  // Nor has one of a version that keeps limits in another way: neither could read what the other keeps.
  const { layout } = readScripts();
  const told = [`tidegate:news:5:${layout}`, 'tidegate:holds:5', 'tidegate:back:5'];
  expect(published.filter((channel) => !told.includes(channel))).toEqual([]);
  expect(await redis.client({ db: 5 }).keys('*:limit')).toEqual([`tidegate:{api/upstream}:${layout}:limit`]);
  expect(here.view().limits[0]).toMatchObject({ state: 'open' });
});

// Seen: all of its keys were in database 0, where another deployment had its own, and nobody was told.
test('a database that Redis does not have is none, and said so; database 0 is left alone', async () => {
  const redis = await startRedis();
  const upstream = await startUpstream();
  const gate = await startReplica(`${redis.url}/99`, upstream);
  await eventually(
    () => gate.metric('tidegate_store_degraded{store="redis"}'),
    (value) => value === 1,
  );
  expect((await fetch(gate.url, { headers: { 'x-api-key': 'a' } })).status).toBe(200);
  await eventually(
    () => gate.log().filter(({ cause }) => cause === 'ERR DB index is out of range'),
    ({ length }) => length === 1,
  );
  expect(await redis.client().dbsize()).toBe(0);
});
