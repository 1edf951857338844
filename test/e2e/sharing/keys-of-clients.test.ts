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
  const start = (state: string): Promise<Workers> =>
    startWorkers(`
workers: 2
secret: a-secret-of-the-tests-0123456789abcdef
clients: {auth: {apiKeys: {file: ${file.path}}}}
upstreams:
  psp:
    url: "${provider.url}"
    accounts: [{name: main, value: "Bearer of-main"}, {name: spare, value: "Bearer of-spare"}]
    idempotency: {ttl: 24h}
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
  return { provider, start, payAll };
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

test(
  'a process with SQLite repeats the write of an earlier one that was killed, with the key that it had',
  async () => {
    const { provider, start, payAll } = await setUp();
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-keys-'));
    atEnd(() => rmSync(folder, { recursive: true, force: true }));
    const state = `state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: normal}`;
    const first = await start(state);
    expect(await payAll(first, 1)).toEqual(CHARGES);
    first.child.kill('SIGKILL');
    await first.ended;
    expect(await payAll(await start(state), 2)).toEqual(CHARGES);
    expect(provider.charges).toHaveLength(2);
  },
  PATIENCE,
);

test(
  'replicas over Redis give each client its own charge',
  async () => {
    const { provider, start, payAll } = await setUp();
    const redis = await startRedis();
    const state = `state: {store: redis, url: "${redis.url}"}`;
    const [one, other] = [await start(state), await start(state)];
    expect(await payAll(one, 3)).toEqual(CHARGES);
    expect(await payAll(other, 3)).toEqual(CHARGES);
    expect(provider.charges).toHaveLength(2);
    const { stdout } = await run(['keys', 'show', '--key', 'order-1'], { TIDEGATE_ADMIN: other.adminUrl });
    for (const key of new Set(provider.keys())) expect(stdout).toContain(`sent key   ${key}`);
  },
  PATIENCE,
);
