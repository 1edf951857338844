/** A Retry-After beside a quota that is spent for longer: one decision, and what a client is told is kept. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../support/http-upstream.ts';
import { send } from '../support/send.ts';
import { startTidegate } from '../support/tidegate.ts';

/** Refuses the first; its quota is whole again after three seconds, whatever its Retry-After says. */
async function start(more: string) {
  const upstream = await startHttpUpstream((n, response) => {
    if (n > 1) return response.end('served');
    const quota = ['X-RateLimit-Limit', '100', 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '3'];
    return response.writeHead(429, ['Retry-After', '1', ...quota]).end();
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", queue: {maxWait: 1s}, ${more}}}`);
  return { upstream, gate };
}

test('a retry waits for both, and is not given up', async () => {
  const { upstream, gate } = await start('timeout: 30s');
  const answer = await send(gate.url, '/');
  expect([answer.status, answer.header('tidegate-attempts')]).toEqual([200, '2']);
  const [first, second] = upstream.hits;
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(2999);
});

test('a client that cannot be made to wait is told when both are over, and passes then', async () => {
  const { upstream, gate } = await start('timeout: 2s');
  const refused = await send(gate.url, '/');
  const lines = refused.headers.filter((name) => name.toLowerCase() === 'retry-after');
  const told = Number(refused.header('retry-after'));
  expect([refused.status, lines.length]).toEqual([429, 1]);
  expect(told).toBeGreaterThanOrEqual(3);
  expect(gate.requests().at(-1)).toMatchObject({ retryAfterFrom: 'tidegate' });
  await sleep(told * 1000);
  expect((await send(gate.url, '/')).status).toBe(200);
  expect(upstream.hits).toHaveLength(2);
});

test('what a cache says of a quota stops nobody', async () => {
  const upstream = await startHttpUpstream((_, response) => {
    const date = new Date(Date.now() - 3_000_000).toUTCString();
    response
      .writeHead(200, ['Date', date, 'Age', '3000', 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '60'])
      .end();
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  for (let i = 0; i < 3; i += 1) expect((await send(gate.url, '/')).status).toBe(200);
});
