/** An operator forgets the key of a replica that was stopped for longer than its lease. */
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import type { KeysPage } from '../../../src/admin/page/api-types.ts';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;
const TOKEN = 'a-token-of-some-length-0123456789';

test(
  'a replica that continues does not store again what was forgotten meanwhile',
  async () => {
    const redis = await startRedis();
    const held: ServerResponse[] = [];
    const upstream = await startHttpUpstream((_nth, response) => void held.push(response));
    const start = async () => {
      const gate = await startWorkers(`
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
state: {store: redis, url: "${redis.url}", timeout: 240ms}
upstreams:
  till: {url: "${upstream.url}", timeout: 120s, perTryTimeout: 120s, retry: {attempts: 1}, idempotency: {ttl: 1h}}
`);
      const list = async () => (await send(gate.adminUrl, '/api/keys')).json() as unknown as KeysPage;
      const pay = () => send(gate.url, '/pay', { method: 'POST', body: '', headers: ['idempotency-key', 'order'] });
      return { gate, list, pay };
    };
    const [one, other] = await Promise.all([start(), start()]);
    const first = one.pay();
    await eventually(
      () => held.length,
      (count) => count === 1,
    );
    one.gate.child.kill('SIGSTOP');
    const { keys } = await eventually(other.list, (page) => page.keys[0]?.state === 'unresolved', 60_000, 200);
    const path = `/api/keys/${keys[0]?.id}`;
    const headers = ['authorization', `Bearer ${TOKEN}`];
    expect((await send(other.gate.adminUrl, path, { method: 'DELETE', headers })).status).toBe(200);
    expect((await other.list()).total).toBe(0);

    held[0]?.end('paid');
    one.gate.child.kill('SIGCONT');
    const { status, body } = await first;
    expect([status, body.toString()]).toEqual([200, 'paid']);
    // It stores the ends of all requests before it exits.
    one.gate.child.kill('SIGTERM');
    await one.gate.ended;
    expect(await other.list()).toMatchObject({ total: 0, keys: [] });
    const second = other.pay();
    await eventually(
      () => held.length,
      (count) => count === 2,
    );
    held[1]?.end('paid again');
    expect((await second).status).toBe(200);
    const { keys: after } = await eventually(other.list, (page) => page.keys[0]?.state === 'answered');
    expect(Date.parse(after[0]?.firstSentAt ?? '')).toBeGreaterThan(Date.parse(keys[0]?.firstSentAt ?? ''));
  },
  PATIENCE,
);
