/** A Retry-After beside a quota that resets later: the later hint decides, and the time sent to the client is kept. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

/** Rejects the first request; its quota resets after three seconds, whatever its Retry-After says. */
async function start(more: string) {
  const upstream = await startHttpUpstream((n, response) => {
    if (n > 1) return response.end('served');
    const quota = ['X-RateLimit-Limit', '100', 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '3'];
    return response.writeHead(429, ['Retry-After', '1', ...quota]).end();
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", queue: {maxWait: 1s}, ${more}}}`);
  return { upstream, gate };
}

test('delays a retry until both hints have passed, and does not give it up', async () => {
  const { upstream, gate } = await start('timeout: 30s');
  const answer = await send(gate.url, '/');
  expect([answer.status, answer.header('tidegate-attempts')]).toEqual([200, '2']);
  const [first, second] = upstream.hits;
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(2999);
});

test('sends a client the later of both hints when it cannot wait, and serves it then', async () => {
  const { upstream, gate } = await start('timeout: 2s');
  const refused = await send(gate.url, '/');
  const lines = refused.headers.filter((name) => name.toLowerCase() === 'retry-after');
  const retryAfter = Number(refused.header('retry-after'));
  expect([refused.status, lines.length]).toEqual([429, 1]);
  expect(retryAfter).toBeGreaterThanOrEqual(3);
  expect(gate.requests().at(-1)).toMatchObject({ retryAfterFrom: 'tidegate' });
  await sleep(retryAfter * 1000);
  expect((await send(gate.url, '/')).status).toBe(200);
  expect(upstream.hits).toHaveLength(2);
});

test('holds no client for a quota in a cached response', async () => {
  const upstream = await startHttpUpstream((_, response) => {
    const date = new Date(Date.now() - 3_000_000).toUTCString();
    response
      .writeHead(200, ['Date', date, 'Age', '3000', 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '60'])
      .end();
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  for (let i = 0; i < 3; i += 1) expect((await send(gate.url, '/')).status).toBe(200);
});
