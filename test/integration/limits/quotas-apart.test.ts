/** Two clients of one upstream, each with its own quota: what is reported to one does not apply to the other. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

const TOKEN: readonly string[] = ['Authorization', 'Bearer of-b'];

/** Requests with a token have most of 5000 an hour left; those without have spent their 60. */
async function startUpstream(status: number): Promise<{ readonly url: string; readonly came: string[] }> {
  const came: string[] = [];
  const server = createServer((request, response) => {
    const { authorization } = request.headers;
    came.push(authorization ?? 'none');
    const resetAt = String(Math.ceil(Date.now() / 1000) + 3000);
    const [limit, remaining] = authorization === undefined ? [60, 0] : [5000, 4999];
    response.writeHead(authorization === undefined ? status : 200, {
      'X-RateLimit-Limit': limit,
      'X-RateLimit-Remaining': remaining,
      'X-RateLimit-Reset': resetAt,
    });
    response.end('{}');
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, came };
}

const STATUSES = [200, 401, 403, 404];

test.each(
  STATUSES.flatMap((status) =>
    ['', 'provider: github', 'provider: github, rateLimit: {scope: upstream}'].flatMap((settings) =>
      ['bearer, ip', 'ip'].map((key) => ({ status, settings, key })),
    ),
  ),
)(
  'holds the client whose spent quota a $status reports [$settings; clients by $key]',
  async ({ status, settings, key }) => {
    const { url, came } = await startUpstream(status);
    const more = settings === '' ? '' : `, ${settings}`;
    const tidegate = await startTidegate(`
upstreams: {api: {url: "${url}"${more}}}
clients: {key: [${key}]}
`);
    expect((await send(tidegate.url, '/repos')).status).toBe(status);
    // A GitHub rejection applies to the client, and two requests from one address are one client.
    const isRefusalOfClient = status === 403 && settings.includes('upstream') && key === 'ip';
    if (!isRefusalOfClient) {
      for (let i = 0; i < 3; i += 1) {
        expect((await send(tidegate.url, '/repos', { headers: [...TOKEN] })).status).toBe(200);
      }
    }
    const again = await send(tidegate.url, '/repos');
    expect([429, 503]).toContain(again.status);
    expect(Number(again.header('retry-after'))).toBeGreaterThan(290);
    expect(came.filter((shown) => shown === 'none')).toHaveLength(1);
  },
);

test('holds all requests without a credential by the limit they share', async () => {
  const { url, came } = await startUpstream(200);
  const tidegate = await startTidegate(`
upstreams: {api: {url: "${url}"}}
clients: {trustedProxies: [127.0.0.1], key: [ip]}
`);
  const statusFor = async (client: string): Promise<number> =>
    (await send(tidegate.url, '/', { headers: ['X-Forwarded-For', `203.0.113.${client.charCodeAt(0)}`] })).status;
  expect([await statusFor('a'), await statusFor('b')]).toEqual([200, 200]); // two share a quota
  for (const client of ['a', 'b', 'c', 'd']) expect([429, 503]).toContain(await statusFor(client));
  expect(came).toHaveLength(2);
});

test('holds the reported credential, and no other, across two workers', async () => {
  const { url } = await startUpstream(403);
  const tidegate = await startWorkers(`
workers: 2
upstreams: {api: {url: "${url}"}}
clients: {key: [bearer, ip]}
`);
  const times = <T>(count: number, run: () => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, run));
  const askWithToken = async (): Promise<number> => (await send(tidegate.url, '/', { headers: [...TOKEN] })).status;
  expect((await send(tidegate.url, '/')).status).toBe(403);
  // Whether or not the other worker has received the stop yet, requests with the token are not held.
  const refusals = async (): Promise<number[]> => (await times(10, askWithToken)).filter((status) => status !== 200);
  expect(await refusals()).toEqual([]);
  await eventually(
    () => times(10, async () => (await send(tidegate.url, '/')).status),
    (statuses) => !statuses.includes(403),
  );
  expect(await refusals()).toEqual([]);
});

/** Clients by key, each with its own address; each response reports the rest of a limit, for 250 s. */
async function startReporting(quotaOf: (key: string, path: string) => readonly [limit: number, left: number]) {
  const upstream = await startHttpUpstream((_, response, { headers, target }) => {
    const key = headers[headers.findIndex((name) => name.toLowerCase() === 'x-api-key') + 1] ?? '';
    const [limit, left] = quotaOf(key, target);
    return response
      .writeHead(200, { 'X-RateLimit-Limit': limit, 'X-RateLimit-Remaining': left, 'X-RateLimit-Reset': '250' })
      .end('served');
  });
  const gate = await startTidegate(`
clients: {trustedProxies: [127.0.0.1], key: ["header:x-api-key", ip]}
upstreams: {api: {url: "${upstream.url}", queue: {maxWait: 10ms}, retry: {attempts: 1}}}
`);
  return async (key: string, path = '/v1'): Promise<number> => {
    const headers = ['X-Api-Key', key, 'X-Forwarded-For', `203.0.113.${key.charCodeAt(0)}`];
    return (await send(gate.url, path, { headers })).status;
  };
}

test('holds no client with another limit when two keys report the same small limit', async () => {
  const ask = await startReporting((key) => (key.startsWith('good') ? [5000, 4999] : [60, 0]));
  for (const key of ['good', 'good', 'bad1', 'bad2']) expect(await ask(key)).toBe(200);
  for (const key of ['good', 'good2', 'good']) expect(await ask(key)).toBe(200);
  expect(await ask('bad1')).not.toBe(200);
});

test('treats keys with one limit as separate quotas when they report more left than one could have', async () => {
  const left = new Map([['A', 3]]);
  const ask = await startReporting((key) => {
    left.set(key, Math.max(0, (left.get(key) ?? 60) - 1));
    return [60, left.get(key) ?? 0];
  });
  for (const key of ['B', 'A', 'A', 'B', 'A']) expect(await ask(key)).toBe(200);
  for (const key of ['B', 'B', 'C']) expect(await ask(key)).toBe(200);
  expect(await ask('A')).not.toBe(200);
});

test('applies the quota of one path to that path only', async () => {
  let search = 4;
  const ask = await startReporting((_, path) =>
    path === '/search' ? [30, (search = Math.max(0, search - 1))] : [5000, 4990],
  );
  for (const key of ['A', 'B']) expect(await ask(key, '/charges')).toBe(200);
  for (const key of ['A', 'B', 'A', 'B']) await ask(key, '/search');
  for (const key of ['C', 'D', 'C']) expect(await ask(key, '/charges')).toBe(200);
});
