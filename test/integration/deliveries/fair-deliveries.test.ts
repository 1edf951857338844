/** The stored writes of one client do not stop those of another: over real sockets, with a real database file and a real Redis. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { type Received, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const CONCURRENCY = 4;

const STATES = {
  SQLite: () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-fair-'));
    atEnd(() => rmSync(folder, { recursive: true, force: true }));
    return Promise.resolve(`{store: sqlite, file: ${join(folder, 'state.db')}}`);
  },
  Redis: async () => `{store: redis, url: "${(await startRedis()).url}", timeout: 240ms}`,
};

test.each(['SQLite', 'Redis'] as const)(
  'with %s, writes of one client that hang leave a place to the writes of another',
  async (store) => {
    const held = new Set<ServerResponse>();
    const provider = await startHttpUpstream((_n, response, { target }) => {
      if (target === '/v1/hangs') held.add(response);
      else response.writeHead(201).end();
    });
    const gate = await startTidegate(`
secret: a-secret-of-the-tests-0123456789abcdef
state: ${await STATES[store]()}
clients: {key: ["header:X-Client"]}
upstreams: {psp: {url: "${provider.url}", timeout: 1h, retry: {attempts: 1}, idempotency: {ttl: 24h}}}
routes: [{path: /v1, upstream: psp, async: {concurrency: ${CONCURRENCY}}}]
`);
    let writes = 0;
    const write = async (client: string, path: string): Promise<Received> => {
      writes += 1;
      const headers = ['X-Client', client, 'Prefer', 'respond-async', 'Idempotency-Key', `k${writes}`];
      const accepted = await send(gate.url, path, { method: 'POST', body: '{}', headers });
      expect(accepted.status).toBe(202);
      return accepted;
    };
    const untilDone = (accepted: Received): Promise<unknown> =>
      eventually(
        async () =>
          (await send(gate.url, accepted.header('location') ?? '', { headers: ['X-Client', 'polite'] })).json()[
            'state'
          ],
        (state) => state === 'done',
      );
    await untilDone(await write('polite', '/v1/charges'));
    for (let n = 0; n < 20; n += 1) await write('greedy', '/v1/hangs');
    await eventually(
      () => Promise.resolve(held.size),
      (size) => size === CONCURRENCY - 1,
    );
    for (let n = 0; n < 5; n += 1) await untilDone(await write('polite', '/v1/charges'));
    expect([held.size, provider.hits.length]).toEqual([CONCURRENCY - 1, CONCURRENCY - 1 + 6]);
  },
);
