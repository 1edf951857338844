/** A service that rejects nothing: with more requests in flight, it only becomes slower. */
import { expect, test } from 'vitest';
import { keepAlive, send } from '../../support/clients/send.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

/** Clients that send one request after the other. @returns a function that stops them */
function startClients(url: string, count: number): () => Promise<void> {
  const stopping = new AbortController();
  const run = async (): Promise<void> => {
    const agent = keepAlive();
    while (!stopping.signal.aborted) await send(url, '/', { agent });
    agent.destroy();
  };
  const running = Array.from({ length: count }, run);
  return async () => {
    stopping.abort();
    await Promise.all(running);
  };
}

test('gets as many requests as its workers serve without a long wait, and the limit is explained', async () => {
  const workers = 4;
  const upstream = await startUpstream({
    limit: { kind: 'workers', workers },
    latency: { kind: 'constant', mean: 50 },
  });
  const proxy = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", queue: {maxWait: 10s}, rateLimit: {learnFromLatency: true}}}`,
  );
  // A load that the service can bear shows its latency first.
  const stopFew = startClients(proxy.url, 2);
  await eventually(
    () => proxy.requests().length,
    (count) => count > 100,
  );
  const stopMany = startClients(proxy.url, 64);
  await eventually(
    () => proxy.metric('tidegate_ratelimit_cuts_total{upstream="api",cause="latency"}'),
    (cuts) => cuts > 0,
  );
  // The search for the smallest sufficient number goes on for a while.
  await eventually(
    () => proxy.metric('tidegate_ratelimit_places{upstream="api",scope="upstream"}'),
    (limit) => limit >= workers && limit <= 5 * workers,
  );
  const { header } = await send(proxy.url, '/');
  const explained = await (await fetch(`${proxy.adminUrl}/explain/${header('x-request-id')}`)).text();
  expect(explained).toContain('requests wait for a response, because more would only be answered later');
  await Promise.all([stopFew(), stopMany()]);
});

test('does not get a request that it could not answer in time', async () => {
  const upstream = await startHttpUpstream((_n, response) => void setTimeout(() => response.end(), 1200));
  const proxy = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", timeout: 2s, queue: {maxWait: 1900ms}, connections: 1, rateLimit: {learnFromLatency: true}}}`,
  );
  // Three responses show how long the service takes.
  for (let i = 0; i < 3; i += 1) expect((await send(proxy.url, '/')).status).toBe(200);
  // The second request would get the connection after 1.2 s, when 0.8 s are left.
  const both = await Promise.all([send(proxy.url, '/'), send(proxy.url, '/')]);
  expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 429]);
  expect(both.find(({ status }) => status === 429)?.header('retry-after')).toMatch(/^\d+$/);
  expect(upstream.hits).toHaveLength(4);
});
