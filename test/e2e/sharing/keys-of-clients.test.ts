/** The key that the upstream gets for a client and its key is the same in all workers and replicas, and after a restart. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { makeKeyFile } from '../../support/clients/api-keys.ts';
import { send } from '../../support/clients/send.ts';
import { run } from '../../support/proxy/process.ts';
import { startWorkers, type Workers } from '../../support/proxy/workers.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startKeyedProvider } from '../../support/upstreams/keyed-provider.ts';

/** Milliseconds. Only what hangs takes as long. */
const PATIENCE = 300_000;

async function setUp() {
  const provider = await startKeyedProvider();
  const file = makeKeyFile('alice', 'bob');
  const start = (state: string, keyScope = 'client'): Promise<Workers> =>
    startWorkers(`
workers: 2
secret: a-secret-of-the-tests-0123456789abcdef
clients: {auth: {apiKeys: {file: ${file.path}}}}
upstreams:
  psp:
    url: "${provider.url}"
    accounts: [{name: main, value: "Bearer of-main"}, {name: spare, value: "Bearer of-spare"}]
    idempotency: {ttl: 24h, keyScope: ${keyScope}}
${state}`);
  /** Each client pays with the same key, over several connections: in several workers. @returns the charges that they are shown */
  const payAll = async (gate: Workers, times: number): Promise<readonly string[]> => {
    const shown = new Set<string>();
    for (const [i, credential] of file.keys.entries()) {
      for (let n = 0; n < times; n += 1) {
        const headers = ['Tidegate-Key', credential, 'Idempotency-Key', 'order-1'];
        const response = await send(gate.url, '/v1/charges', { method: 'POST', body: '{"amount":1}', headers });
        expect(response.header('idempotency-key')).toBe('order-1');
        shown.add(`${['alice', 'bob'][i]} ${response.body.toString()}`);
      }
    }
    return [...shown];
  };
  const pay = async (gate: Workers, client: 'alice' | 'bob', key = 'order-1'): Promise<[number, string]> => {
    const headers = ['Tidegate-Key', file.keys[client === 'alice' ? 0 : 1] ?? '', 'Idempotency-Key', key];
    const { status, body } = await send(gate.url, '/v1/charges', { method: 'POST', body: '{"amount":1}', headers });
    const { id, reason } = JSON.parse(body.toString()) as { readonly id?: string; readonly reason?: string };
    return [status, String(id ?? reason)];
  };
  return { provider, start, pay, payAll };
}

const CHARGES = ['alice {"id":"ch_1"}', 'bob {"id":"ch_2"}'];

test(
  'workers, and a process after them that remembers nothing, repeat the writes of two clients with the same key',
  async () => {
    const { provider, start, payAll } = await setUp();
    const first = await start('');
    expect(await payAll(first, 6)).toEqual(CHARGES);
    const { stdout } = await run(['keys', 'show', '--key', 'order-1'], { TIDEGATE_ADMIN: first.adminUrl });
    for (const key of new Set(provider.keys())) expect(stdout).toContain(`sent key   ${key}`);
    first.child.kill('SIGKILL');
    await first.ended;
    expect(await payAll(await start(''), 2)).toEqual(CHARGES);
    expect(provider.charges).toHaveLength(2);
  },
  PATIENCE,
);

test.each([
  ['shared', 'client'],
  ['client', 'shared'],
])(
  'a process with SQLite that changes keyScope from %s to %s repeats the write of an earlier one with the key that it had',
  async (before, after) => {
    const { provider, start, pay } = await setUp();
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-keys-'));
    atEnd(() => rmSync(folder, { recursive: true, force: true }));
    const state = `state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: normal}`;
    const first = await start(state, before);
    expect(await pay(first, 'alice')).toEqual([200, 'ch_1']);
    first.child.kill('SIGKILL');
    await first.ended;
    const next = await start(state, after);
    expect(await pay(next, 'alice')).toEqual([200, 'ch_1']);
    expect(await pay(next, 'bob')).toEqual([409, 'key_ambiguous']);
    expect(await pay(next, 'bob', 'order-2')).toEqual([200, 'ch_2']);
    const keys = provider.keys();
    expect([keys.length, keys[0] === keys[1], keys[0] === 'order-1']).toEqual([3, true, before === 'shared']);
  },
  PATIENCE,
);

test(
  'replicas over Redis give each client its own charge',
  async () => {
    const { provider, start, payAll } = await setUp();
    const redis = await startRedis();
    const state = `state: {store: redis, url: "${redis.url}", timeout: 240ms}`;
    const [one, other] = [await start(state), await start(state)];
    expect(await payAll(one, 3)).toEqual(CHARGES);
    expect(await payAll(other, 3)).toEqual(CHARGES);
    expect(provider.charges).toHaveLength(2);
    const { stdout } = await run(['keys', 'show', '--key', 'order-1'], { TIDEGATE_ADMIN: other.adminUrl });
    for (const key of new Set(provider.keys())) expect(stdout).toContain(`sent key   ${key}`);
  },
  PATIENCE,
);

test(
  'replicas over Redis with different settings of keyScope send a write with one key',
  async () => {
    const { provider, start, pay } = await setUp();
    const redis = await startRedis();
    const state = `state: {store: redis, url: "${redis.url}", timeout: 240ms}`;
    const [shared, separate] = [await start(state, 'shared'), await start(state, 'client')];
    expect(await pay(shared, 'alice')).toEqual([200, 'ch_1']);
    expect(await pay(separate, 'alice')).toEqual([200, 'ch_1']);
    expect(await pay(separate, 'bob')).toEqual([409, 'key_ambiguous']);
    expect(await pay(separate, 'bob', 'order-2')).toEqual([200, 'ch_2']);
    expect(await pay(shared, 'bob', 'order-2')).toEqual([200, 'ch_2']);
    const keys = provider.keys();
    expect(keys.slice(0, 2)).toEqual(['order-1', 'order-1']);
    expect([keys.length, keys[2] === keys[3], keys[2] === 'order-2']).toEqual([4, true, false]);
  },
  PATIENCE,
);
