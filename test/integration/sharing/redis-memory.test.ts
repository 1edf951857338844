/** Limits of invented names do not fill Redis. */
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

test('Redis forgets the limits of invented clients and paths within seconds, and keeps that of the upstream', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('served'));
  const redis = await startRedis();
  const client = redis.client();
  const gate = await startTidegate(`
upstreams:
  one: {url: "${upstream.url}", rateLimit: {scope: client, initialRate: 100/s}}
  two:
    url: "${upstream.url}"
    rateLimit: {initialRate: 1000/s}
    limits: [{name: endpoint, match: {path: ["/two/{resource}"]}, initialRate: 100/s}]
routes: [{path: /two, upstream: two}, {path: /, upstream: one}]
clients: {key: ["header:x-api-key", ip]}
state: {store: redis, url: "${redis.url}", timeout: 240ms}
`);
  const names = Array.from({ length: 40 }, (_, i) => `invented-${i}`);
  for (const name of names) {
    expect((await send(gate.url, '/', { headers: ['X-Api-Key', name] })).status).toBe(200);
    expect((await send(gate.url, `/two/${name}`)).status).toBe(200);
  }
  // By the time of the last one, the first may be gone.
  const keys = await client.keys('tidegate:{*:limit');
  const invented = keys.filter((key) => !key.startsWith('tidegate:{two/upstream}'));
  expect(invented.some((key) => key.startsWith('tidegate:{one/client/'))).toBe(true);
  expect(invented.some((key) => key.startsWith('tidegate:{two/limits/endpoint/'))).toBe(true);
  for (const key of invented) expect(await client.pttl(key)).toBeLessThanOrEqual(4000);
  await eventually(
    async () => (await client.keys('tidegate:{*:limit')).length,
    (count) => count === 1,
  );
  const [kept = ''] = await client.keys('tidegate:{two/upstream}:*:limit');
  expect(await client.pttl(kept)).toBeGreaterThan(3_000_000);
});
