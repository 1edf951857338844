/** Limits in different databases of one Redis are independent, as for staging and production. */
import { expect, test } from 'vitest';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { loadLuaScript } from '../../../src/sharing/redis/lua-script.ts';
import { pause } from '../../support/pause.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startReplica } from '../../support/proxy/replicas.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';

test('limits with the same name in different databases are independent', async () => {
  const redis = await startRedis();
  const upstream = await startUpstream({ limit: { kind: 'token-bucket', rate: 10, burst: 1 } });
  const [there, here] = await Promise.all([5, 0].map((db) => startReplica(`${redis.url}/${db}`, upstream)));
  if (there === undefined || here === undefined) throw new Error('two were started');
  const subscriber = redis.client();
  const published: string[] = [];
  await subscriber.psubscribe('tidegate:*');
  subscriber.on('pmessage', (_, channel: string) => {
    if (!channel.includes(':echo:')) published.push(channel);
  });
  // A first request makes this replica read its limit.
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
  // The state layout is part of the names too, because versions with different layouts cannot read each other's state.
  const { layout } = loadLuaScript();
  const expected = [`tidegate:news:5:${layout}`, 'tidegate:holds:5', 'tidegate:back:5'];
  expect(published.filter((channel) => !expected.includes(channel))).toEqual([]);
  expect(await redis.client({ db: 5 }).keys('*:limit')).toEqual([`tidegate:{api/upstream}:${layout}:limit`]);
  expect(here.view().limits[0]).toMatchObject({ state: 'open' });
});

// Regression: all keys went to database 0, used by another deployment, without a message.
test('a database number out of range is reported as an outage, and database 0 is not used', async () => {
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
