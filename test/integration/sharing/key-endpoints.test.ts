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

function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
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
  const gate = await startTidegate(`
state: {store: sqlite, file: ${join(ownFolder(), 'keys.db')}}
upstreams: {api: {urls: ${urls}, retry: {${RETRY}}, idempotency: {ttl: 1h}}}
`);
  expect((await pay(gate, 'order')).status).toBe(201);
  expect(new Set(endpointsOf('order')).size).toBe(1);
});

test.each(['sqlite', 'redis'] as const)(
  'concurrent requests with one key reach one endpoint with concurrent: pass, at processes with %s',
  async (store) => {
    const { urls, endpointsOf } = await startEndpoints((nth, response) => {
      setTimeout(() => response.writeHead(201, nth === 1 ? {} : { 'Idempotent-Replayed': 'true' }).end('paid'), 100);
    });
    const state = store === 'sqlite' ? `file: ${join(ownFolder(), 'keys.db')}` : `url: "${(await startRedis()).url}"`;
    const start = () =>
      startTidegate(`
state: {store: ${store}, ${state}}
upstreams: {api: {urls: ${urls}, idempotency: {ttl: 1h, concurrent: pass}}}
`);
    const one = await start();
    const other = store === 'sqlite' ? one : await start();
    const keys = Array.from({ length: 10 }, (_, n) => `order ${n}`);
    const answers = await Promise.all(keys.flatMap((key) => [pay(one, key), pay(other, key)]));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(keys.map((key) => new Set(endpointsOf(key)).size)).toEqual(keys.map(() => 1));
  },
  PATIENCE,
);
