/** Two clients of one upstream, each with a quota of its own: what one is told is nothing to the other. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { send } from '../support/send.ts';
import { eventually, startTidegate } from '../support/tidegate.ts';
import { startWorkers } from '../support/workers.ts';

const TOKEN: readonly string[] = ['Authorization', 'Bearer of-b'];

/** Who shows a token has nearly all of 5000 an hour left, who shows none has spent the 60 that it had. */
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
  'a spent quota told by a $status holds who was told [$settings; clients by $key]',
  async ({ status, settings, key }) => {
    const { url, came } = await startUpstream(status);
    const more = settings === '' ? '' : `, ${settings}`;
    const tidegate = await startTidegate(`
upstreams: {api: {url: "${url}"${more}}}
clients: {key: [${key}]}
`);
    expect((await send(tidegate.url, '/repos')).status).toBe(status);
    // A refusal of github's is one of the client, and two that share an address are one client.
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

test('a limit of all that show no credential stops all of them', async () => {
  const { url, came } = await startUpstream(200);
  const tidegate = await startTidegate(`
upstreams: {api: {url: "${url}"}}
clients: {key: [header:x-client, ip]}
`);
  const statusFor = async (client: string): Promise<number> =>
    (await send(tidegate.url, '/', { headers: ['X-Client', client] })).status;
  expect([await statusFor('a'), await statusFor('b')]).toEqual([200, 200]); // one may have a quota of its own, two have not
  for (const client of ['a', 'b', 'c', 'd']) expect([429, 503]).toContain(await statusFor(client));
  expect(came).toHaveLength(2);
});

test('two workers hold who was told, and not who shows another credential', async () => {
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
  // The other worker has heard of the stop, or the primary has not yet: neither is to hold who shows a token.
  const refusals = async (): Promise<number[]> => (await times(10, askWithToken)).filter((status) => status !== 200);
  expect(await refusals()).toEqual([]);
  await eventually(
    () => times(10, async () => (await send(tidegate.url, '/')).status),
    (statuses) => !statuses.includes(403),
    10_000,
  );
  expect(await refusals()).toEqual([]);
});
