/** Several endpoints that do not share keys, with a store of keys: each write takes effect at one of them. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startRelay } from '../../support/relay/relay.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 60_000;

interface Attempt {
  readonly endpoint: string;
  readonly key: string;
}

/** @param answer the nth attempt of a key, from 1 */
async function startEndpoints(answer: (nth: number, response: ServerResponse) => void) {
  const attempts: Attempt[] = [];
  const start = (endpoint: string) =>
    startHttpUpstream((_, response, { body }) => {
      const key = body.toString();
      attempts.push({ endpoint, key });
      answer(attempts.filter((each) => each.key === key).length, response);
    });
  const urls = [(await start('a')).url, (await start('b')).url];
  return { urls: JSON.stringify(urls), endpointsOf: (key: string) => endpointsOf(attempts, key) };
}

function endpointsOf(attempts: readonly Attempt[], key: string): string[] {
  return attempts.filter((each) => each.key === key).map(({ endpoint }) => endpoint);
}

function pay({ url }: Tidegate, key: string) {
  return send(url, '/pay', { method: 'POST', body: key, headers: ['Idempotency-Key', key] });
}

const RETRY = 'attempts: 3, retryOn: ["5xx", reset, lock], backOff: {strategy: fixed, baseInterval: 1ms}';

test(
  'a write whose first attempt was not processed stays at the endpoint of the second one while Redis does not respond',
  async () => {
    const redis = await startRedis();
    const relay = await startRelay(redis.url);
    onTestFinished(() => relay.close());
    relay.injectFaults({ down: { delay: 30 } });
    const { urls, endpointsOf } = await startEndpoints((nth, response) => {
      if (nth === 1) return void response.writeHead(503).end();
      if (nth === 2) {
        relay.injectFaults({ down: { end: { after: 0, how: 'stall' } } }); // Redis has not confirmed the second endpoint
        return void response.destroy();
      }
      response.writeHead(201).end('paid');
    });
    const gate = await startTidegate(`
state: {store: redis, url: "redis://127.0.0.1:${relay.port}", timeout: 240ms}
upstreams: {api: {urls: ${urls}, retry: {${RETRY}}, idempotency: {ttl: 1h}}}
`);
    const { status } = await pay(gate, 'order');
    const [first, second, third] = endpointsOf('order');
    expect(status).toBe(201);
    expect([first === second, third]).toEqual([false, second]);
  },
  PATIENCE,
);

test('a write that is in progress at an endpoint is repeated there, also with a database', async () => {
  const { urls, endpointsOf } = await startEndpoints((nth, response) =>
    response.writeHead(nth < 3 ? 409 : 201).end('said'),
  );
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const gate = await startTidegate(`
state: {store: sqlite, file: ${join(folder, 'keys.db')}}
upstreams: {api: {urls: ${urls}, retry: {${RETRY}}, idempotency: {ttl: 1h}}}
`);
  expect((await pay(gate, 'order')).status).toBe(201);
  expect(new Set(endpointsOf('order')).size).toBe(1);
});
