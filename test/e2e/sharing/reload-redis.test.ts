/** Reloads change a limit that replicas share in Redis. */
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { stateAt } from '../../support/proxy/replicas.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

test('a maxRate set and raised by reloads applies to all reloaded replicas, and queued requests are served', async () => {
  const redis = await startRedis();
  const upstream = await startHttpUpstream((_n, response) => response.end('seen'));
  const yaml = (limit: string) =>
    `${stateAt(redis.url)}upstreams: {api: {url: "${upstream.url}", timeout: 30s, queue: {maxWait: 20s}, rateLimit: {${limit}}}}`;
  const gates = [await startTidegate(yaml('')), await startTidegate(yaml(''))];
  const ask = (count: number) =>
    Promise.all(gates.flatMap(({ url }) => Array.from({ length: count }, async () => (await send(url, '/')).status)));
  expect(new Set(await ask(10))).toEqual(new Set([200]));
  for (const gate of gates) expect((await gate.rewrite(yaml('maxRate: 20/s'))).kind).toBe('applied');
  const rates = () => gates.map((gate) => gate.view().limits[0]?.rate);
  await ask(1);
  await eventually(rates, (all) => all.every((rate) => rate === 20));
  let since = performance.now();
  expect(new Set(await ask(10))).toEqual(new Set([200]));
  expect(performance.now() - since).toBeGreaterThan(700); // 19 intervals of 50 ms
  for (const gate of gates) await gate.rewrite(yaml('maxRate: 400/s'));
  since = performance.now();
  expect(new Set(await ask(20))).toEqual(new Set([200]));
  await eventually(rates, (all) => all.every((rate) => rate === 400));
});

test('requests queued in Redis are served after their upstream is removed', async () => {
  const redis = await startRedis();
  const upstream = await startHttpUpstream((_n, response) => response.end('old'));
  const other = await startHttpUpstream((_n, response) => response.end('other'));
  const limit = 'rateLimit: {initialRate: 10/s, maxRate: 10/s}, timeout: 30s, queue: {maxWait: 20s}';
  const gate = await startTidegate(`${stateAt(redis.url)}upstreams: {api: {url: "${upstream.url}", ${limit}}}`);
  const waiting = Array.from({ length: 10 }, () => send(gate.url, '/'));
  await eventually(
    async () => (await gate.metric('tidegate_queue_depth{upstream="api"}')) + upstream.hits.length,
    (arrived) => arrived === 10,
  );
  await gate.rewrite(`${stateAt(redis.url)}upstreams: {fresh: {url: "${other.url}"}}`);
  expect((await send(gate.url, '/')).body.toString()).toBe('other');
  for (const { body } of await Promise.all(waiting)) expect(body.toString()).toBe('old');
  await eventually(
    () => gate.view().limits.map(({ upstream: name }) => name),
    (names) => !names.includes('api'),
  );
});
