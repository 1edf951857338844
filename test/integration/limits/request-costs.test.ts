import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

/** An upstream with this response. Closed when the test ends. */
async function startApi(respond: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer({ keepAliveTimeout: 0 }, respond);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  atEnd(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** @param cost of a limit of one unit a second */
async function startWithCost(cost: string, respond: (request: IncomingMessage, response: ServerResponse) => void) {
  const url = await startApi(respond);
  const tidegate = await startTidegate(
    `upstreams: {api: {url: "${url}", timeout: 5m, retry: {replayLimit: 1MiB}, queue: {maxWait: 0}, rateLimit: {initialRate: 1/s, cost: ${cost}}}}`,
  );
  const units = (): Promise<number> => tidegate.metric('tidegate_settled_cost_units_total{upstream="api",limit=""}');
  /** The seconds until the next request may be sent. */
  const nextIn = async (): Promise<number> => {
    const refused = await send(tidegate.url, '/');
    expect(refused.status).toBe(429);
    return Number(refused.header('retry-after'));
  };
  return { tidegate, units, nextIn };
}

const JSON_TYPE = { 'Content-Type': 'application/json' };
const USAGE = JSON.stringify({ id: 1, usage: { total_tokens: 20 } });

describe('the cost in a response', () => {
  test('is read from a header, and delays the next request', async () => {
    const { tidegate, units, nextIn } = await startWithCost(
      '{response: {header: X-Cost}, expected: 1, max: 1000}',
      (_, response) => {
        response.writeHead(200, { 'X-Cost': '20' }).end('done');
      },
    );
    expect(await (await fetch(tidegate.url)).text()).toBe('done');
    expect(await units()).toBe(20);
    expect(await nextIn()).toBeGreaterThan(10);
  });

  test.each([
    ['identity', (body: string) => Buffer.from(body)],
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('is read from a field of a JSON body, which is forwarded unchanged (%s)', async (encoding, encode) => {
    const body = encode(USAGE);
    const cost = '{response: {json: usage.total_tokens}, expected: 1, max: 1000}';
    const { tidegate, units, nextIn } = await startWithCost(cost, (_, response) => {
      response.writeHead(200, { ...JSON_TYPE, 'Content-Encoding': encoding });
      response.write(body.subarray(0, 7));
      response.end(body.subarray(7));
    });
    const received = await fetch(tidegate.url);
    expect(await received.json()).toEqual(JSON.parse(USAGE));
    await eventually(units, (value) => value === 20);
    expect(await nextIn()).toBeGreaterThan(10);
  });

  test('is shown in the explanation of its request, although the body is parsed after the end of the response', async () => {
    const cost = '{response: {json: usage.total_tokens}, expected: 7, max: 1000}';
    const { tidegate, units } = await startWithCost(cost, (_, response) => {
      response.writeHead(200, JSON_TYPE).end(USAGE);
    });
    const id = (await send(tidegate.url, '/')).header('tidegate-request-id');
    await eventually(units, (value) => value === 20);
    const explained = await fetch(`${tidegate.adminUrl}/explain/${id}`, { headers: { Accept: 'text/plain' } });
    expect(await explained.text()).toContain('charged 7 units at the limit of the upstream, cost 20 units');
  });

  test('is not read if the client leaves before the end: the charge stands', async () => {
    const cost = '{response: {json: usage.total_tokens}, expected: 15, max: 1000}';
    const { tidegate, units, nextIn } = await startWithCost(cost, (_, response) => {
      response.writeHead(200, JSON_TYPE).write('{"usage": {"total_tokens": 20}');
    });
    const leaving = new AbortController();
    const received = await fetch(tidegate.url, { signal: leaving.signal });
    leaving.abort();
    await received.text().catch(() => undefined);
    const unread = 'tidegate_unread_costs_total{upstream="api",reason="incomplete"}';
    await eventually(
      () => tidegate.metric(unread),
      (value) => value === 1,
    );
    expect(await units()).toBe(0);
    expect(await nextIn()).toBeGreaterThan(10);
  });

  test('is not read from server-sent events: the expected cost stands', async () => {
    const cost = '{response: {json: usage.total_tokens}, expected: 15, max: 1000}';
    const { tidegate, nextIn } = await startWithCost(cost, (_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end(`data: ${USAGE}\n\n`);
    });
    expect(await (await fetch(tidegate.url)).text()).toContain('usage');
    const unread = 'tidegate_unread_costs_total{upstream="api",reason="not_found"}';
    await eventually(
      () => tidegate.metric(unread),
      (value) => value === 1,
    );
    expect(await nextIn()).toBeGreaterThan(10);
  });

  test('is not read from a body above a megabyte, from one of another type, from one that is cut, or where there is no such field', async () => {
    const cost = '{response: {json: usage.total_tokens}, expected: 1, max: 1000}';
    const { tidegate } = await startWithCost(`${cost}, maxRate: 1000000/s`, ({ url }, response) => {
      response.setHeader('Content-Type', 'application/json');
      if (url === '/long') response.end(JSON.stringify({ text: 'x'.repeat(1_100_000), usage: { total_tokens: 1 } }));
      else if (url === '/text') response.setHeader('Content-Type', 'text/plain').end(USAGE);
      else if (url === '/cut') response.write('{"usage": ', () => response.destroy());
      else response.end('{}');
    });
    const unread = (reason: string): Promise<number> =>
      tidegate.metric(`tidegate_unread_costs_total{upstream="api",reason="${reason}"}`);
    for (const [path, reason, total = 1] of [
      ['/none', 'not_found'],
      ['/text', 'not_found', 2],
      ['/long', 'too_long'],
      ['/cut', 'incomplete'],
    ] as const) {
      await eventually(
        () => send(tidegate.url, path).catch(() => ({ status: 0 })),
        ({ status }) => status !== 429,
      );
      const count = await eventually(
        () => unread(reason),
        (value) => value >= total,
      );
      expect(count).toBe(total);
    }
  });

  test('is that of the account only: a rejected request costs nothing', async () => {
    const url = await startApi((_, response) => {
      response.writeHead(429, { 'X-Cost': '50' }).end();
    });
    const tidegate = await startTidegate(
      `upstreams: {api: {url: "${url}", retry: {attempts: 1}, rateLimit: {initialRate: 1/s, cost: {expected: 1, max: 1000, response: {header: X-Cost}}}}}`,
    );
    expect((await send(tidegate.url, '/')).status).toBe(429);
    expect(await tidegate.metric('tidegate_settled_cost_units_total{upstream="api",limit=""}')).toBe(0);
  });
});

describe('the cost of a request', () => {
  const ok = (_: IncomingMessage, response: ServerResponse): void => void response.end('ok');

  test('follows its method', async () => {
    const { tidegate, nextIn } = await startWithCost('{method: {POST: 15}}', ok);
    await send(tidegate.url, '/', { method: 'POST' });
    expect(await nextIn()).toBeGreaterThan(10);
  });

  test('is named by a header, and bounded: no client stops the upstream for others, and none pays less than the least cost', async () => {
    const cost = '{request: {header: X-Tokens}, max: 30}';
    for (const [named, least, most] of [
      ['999999999', 25, 41],
      ['20', 15, 31],
      ['0.001', 1, 2],
      ['1e9', 1, 2],
      ['', 1, 2],
      ['-5', 1, 2],
    ] as const) {
      const { tidegate, nextIn } = await startWithCost(cost, ok);
      await send(tidegate.url, '/', { headers: ['X-Tokens', named] });
      const seconds = await nextIn();
      expect(seconds).toBeGreaterThanOrEqual(least);
      expect(seconds).toBeLessThanOrEqual(most);
    }
  });

  test('is not read from a repeated header', async () => {
    const { tidegate, nextIn } = await startWithCost('{request: {header: X-Tokens}, max: 30}', ok);
    await send(tidegate.url, '/', { headers: ['X-Tokens', '20', 'X-Tokens', '25'] });
    expect(await nextIn()).toBeLessThanOrEqual(2);
  });

  test.each([
    ['is named by a field of its JSON body', '{"max_tokens": 25}', 20, 36],
    ['is the highest if its body does not name it', '{"max_tokens": "none"}', 45, 61],
    [
      'is the highest if its body is too long to be parsed',
      JSON.stringify({ max_tokens: 25, x: 'x'.repeat(70_000) }),
      45,
      61,
    ],
  ])('%s', async (_, body, least, most) => {
    const cost = '{request: {json: max_tokens}, max: 50}';
    const { tidegate, nextIn } = await startWithCost(cost, (request, response) => {
      request.resume().on('end', () => response.end('ok'));
    });
    await send(tidegate.url, '/', { method: 'POST', headers: ['Content-Type', 'application/json'], body });
    const seconds = await nextIn();
    expect(seconds).toBeGreaterThan(least);
    expect(seconds).toBeLessThanOrEqual(most);
  });

  test('is the highest if its body is sent only after the admission', async () => {
    const cost = '{request: {json: max_tokens}, max: 50}';
    const { tidegate, nextIn } = await startWithCost(cost, (request, response) => {
      request.resume().on('end', () => response.end('ok'));
    });
    const headers = ['Content-Type', 'application/json', 'Expect', '100-continue', 'Content-Length', '18'];
    await send(tidegate.url, '/', { method: 'POST', headers, body: '{"max_tokens": 25}' });
    expect(await nextIn()).toBeGreaterThan(45);
  });

  test('of a route replaces that of its upstream', async () => {
    const url = await startApi(ok);
    const tidegate = await startTidegate(`
upstreams: {api: {url: "${url}", queue: {maxWait: 0}, rateLimit: {initialRate: 1/s, cost: 2}}}
routes: [{path: /, upstream: api}, {path: /heavy, upstream: api, cost: 25}]`);
    await send(tidegate.url, '/heavy');
    expect(Number((await send(tidegate.url, '/')).header('retry-after'))).toBeGreaterThan(15);
  });
});

test('serves others while one client names the highest cost for all of its requests', async () => {
  const url = await startApi((_, response) => void response.end('ok'));
  const tidegate = await startTidegate(`
clients: {key: [header:X-Client]}
upstreams: {api: {url: "${url}", queue: {maxWait: 20s}, timeout: 30s, rateLimit: {initialRate: 1000/s, cost: {request: {header: X-Tokens}, max: 1000}}}}`);
  const heavy = Array.from({ length: 5 }, () =>
    send(tidegate.url, '/', { headers: ['X-Client', 'heavy', 'X-Tokens', '999999999'] }),
  );
  const light = Array.from({ length: 5 }, () =>
    send(tidegate.url, '/', { headers: ['X-Client', 'light', 'X-Tokens', '1'] }),
  );
  const began = performance.now();
  const answers = await Promise.all(light);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(performance.now() - began).toBeLessThan(15_000);
  await Promise.all(heavy);
});
