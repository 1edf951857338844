/** Replicas that accept and send deliveries of one Redis, over real sockets. */
import { expect, test } from 'vitest';
import { type Received, send } from '../../support/clients/send.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startRedis, type RedisServer } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

function startReplica({ url }: RedisServer, shop: string): Promise<Tidegate> {
  return startTidegate(`
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: redis, url: "${url}", timeout: 240ms}
upstreams: {shop: {url: "${shop}"}}
routes: [{path: /hooks, upstream: shop, deliver: {eventId: {json: id}, schedule: {delays: [1s, 1s]}, concurrency: 2}}]
`);
}

function notify(gate: Tidegate, body: string): Promise<Received> {
  return send(gate.url, '/hooks', { method: 'POST', body, headers: ['Content-Type', 'application/json'] });
}

function untilState(gate: Tidegate, accepted: Received, state: string): Promise<Record<string, unknown>> {
  return eventually(
    async () => (await send(gate.url, accepted.header('location') ?? '')).json(),
    (seen) => seen['state'] === state,
  );
}

test('a request is a duplicate at any replica, and any of them shows its state', async () => {
  const redis = await startRedis();
  const shop = await startHttpUpstream((n, response) => void response.writeHead(n === 1 ? 500 : 200).end());
  const one = await startReplica(redis, shop.url);
  const other = await startReplica(redis, shop.url);
  const first = await notify(one, '{"id":"evt_1"}');
  const second = await notify(other, '{"id":"evt_1"}');
  expect([first.status, second.status, second.header('location')]).toEqual([202, 202, first.header('location')]);
  expect(await untilState(other, first, 'delivered')).toMatchObject({ attempts: 2 });
  expect(shop.hits).toHaveLength(2);
  for (const gate of [one, other]) {
    await eventually(
      () => gate.metric('tidegate_deliveries{state="delivered"}'),
      (count) => count === 1,
    );
  }
  expect(await other.metric('tidegate_deliveries_total{route="/hooks",event="duplicate"}')).toBe(1);
  expect(await one.metric('tidegate_store_requests_total{store="redis",op="delivery",result="ok"}')).toBeGreaterThan(0);
});

test('what one replica has accepted beyond its concurrency, another one sends', async () => {
  const redis = await startRedis();
  const held: (() => void)[] = [];
  const shop = await startHttpUpstream((_n, response) => void held.push(() => response.end()));
  const one = await startReplica(redis, shop.url);
  await startReplica(redis, shop.url);
  const accepted: Received[] = [];
  for (let n = 1; n <= 4; n += 1) accepted.push(await notify(one, `{"id":"evt_${n}"}`));
  await eventually(
    () => held.length,
    (count) => count === 4,
  );
  for (const end of held) end();
  for (const each of accepted) await untilState(one, each, 'delivered');
  expect(shop.hits).toHaveLength(4);
});

test('while Redis is away a sender gets a 507 and keeps the request, and what is stored is sent when Redis is back', async () => {
  const redis = await startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } });
  const held: (() => void)[] = [];
  const shop = await startHttpUpstream((_n, response) => void held.push(() => response.end()));
  const gate = await startReplica(redis, shop.url);
  const accepted: Received[] = [];
  for (let n = 1; n <= 3; n += 1) accepted.push(await notify(gate, `{"id":"evt_${n}"}`));
  await eventually(
    () => held.length,
    (count) => count === 2,
  );
  await redis.kill();
  for (const end of held.splice(0)) end();
  const refused = await notify(gate, '{"id":"evt_4"}');
  expect([refused.status, refused.json()['reason'], Number(refused.header('retry-after')) > 0]).toEqual([
    507,
    'deliveries_unavailable',
    true,
  ]);
  const unread = await send(gate.url, accepted[0]?.header('location') ?? '');
  expect([unread.status, unread.json()['reason']]).toEqual([503, 'deliveries_unavailable']);
  expect(await gate.metric('tidegate_store_degraded{store="redis"}')).toBe(1);
  await redis.restart();
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  held[0]?.();
  for (const each of accepted) await untilState(gate, each, 'delivered');
  expect(shop.hits).toHaveLength(3);
});

test('a replica that ends stores the results that it has, and leaves the rest to the others', async () => {
  const redis = await startRedis();
  const shop = await startHttpUpstream((n, response) => {
    if (n > 1) response.end();
  });
  const ending = await startReplica(redis, shop.url);
  const accepted = await notify(ending, '{"id":"evt_1"}');
  await eventually(
    () => shop.hits.length,
    (count) => count === 1,
  );
  await ending.close();
  const other = await startReplica(redis, shop.url);
  expect(await untilState(other, accepted, 'delivered')).toMatchObject({ attempts: 1 });
});

test('a start warns if Redis is set up to lose deliveries', async () => {
  const shop = await startHttpUpstream((_n, response) => void response.end());
  const unsafe = await startReplica(await startRedis({ maxmemory: '64mb', policy: 'allkeys-lru' }), shop.url);
  const warnings = (gate: Tidegate) => gate.log().flatMap(({ msg }) => (String(msg).startsWith('Redis ') ? [msg] : []));
  const found = await eventually(
    () => warnings(unsafe),
    ({ length }) => length === 2,
  );
  expect(found).toEqual([
    'Redis can remove deliveries when its memory is full: set maxmemory-policy noeviction',
    'Redis loses deliveries when it restarts: set appendonly yes',
  ]);
  const settings = { appendonly: 'yes' };
  const safe = await startReplica(await startRedis({ maxmemory: '64mb', policy: 'noeviction', settings }), shop.url);
  await untilState(safe, await notify(safe, '{"id":"evt_1"}'), 'delivered');
  expect(warnings(safe)).toEqual([]);
});
