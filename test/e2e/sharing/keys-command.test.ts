/** `tidegate keys` beside a Tidegate with workers, whose primary keeps the keys. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { ForgottenKey, KeyRow, KeysPage } from '../../../src/admin/page/api-types.ts';
import { send } from '../../support/clients/send.ts';
import { run } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const TOKEN = 'a-token-of-some-length-0123456789';
const PATIENCE = 300_000;

async function setUp() {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-keys-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const held: ServerResponse[] = [];
  const upstream = await startHttpUpstream((_nth, response, { body }) => {
    if (body.toString() === 'held') held.push(response);
    else if (body.toString() === 'lost') response.destroy();
    else response.end('paid');
  });
  const start = async () => {
    const gate = await startWorkers(`
workers: 2
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: normal}
upstreams:
  till: {url: "${upstream.url}", timeout: 60s, perTryTimeout: 60s, retry: {attempts: 1}, idempotency: {ttl: 1h, concurrent: refuse}}
`);
    const pay = (key: string, path = '/pay') =>
      send(gate.url, path, { method: 'POST', body: key, headers: ['idempotency-key', key] });
    const keys = (...args: readonly string[]) =>
      run(['keys', ...args], { TIDEGATE_ADMIN: gate.adminUrl, TIDEGATE_ADMIN_TOKEN: TOKEN });
    const json = async <T>(...args: readonly string[]): Promise<T> => {
      const { code, stdout, stderr } = await keys(...args, '--json');
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return JSON.parse(stdout) as T;
    };
    return { gate, pay, keys, json };
  };
  return { upstream, held, start };
}

test(
  'lists, shows and forgets the keys of all workers, and a forgotten one stays forgotten after kill -9',
  async () => {
    const { upstream, held, start } = await setUp();
    const first = await start();
    expect((await first.keys('list')).stdout).toBe('no key matches\n');
    expect((await first.pay('paid')).status).toBe(200);
    expect((await first.pay('lost')).status).toBe(504);
    const pending = first.pay('held').catch(() => 'lost');
    await eventually(
      () => held.length,
      (count) => count === 1,
    );
    const all = await first.json<KeysPage>('list', '--oldest');
    expect(all).toMatchObject({
      ...{ total: 3, matching: 3 },
      keys: [
        { upstream: 'till', state: 'answered', finalFor: 1 },
        { upstream: 'till', state: 'unresolved' },
        { upstream: 'till', state: 'in_progress', requests: 1 },
      ],
    });
    const [paid, lost, busy] = all.keys.map(({ id }) => id);
    const list = await first.keys('list', '--state', 'open', '--limit', '1');
    expect(list.stdout.split('\n')).toEqual([
      expect.stringMatching(
        /^id {16}state {8}upstream {2}first sent {16}endpoint +requests {2}responses {2}final for$/,
      ),
      expect.stringMatching(new RegExp(`^${busy} {2}in_progress {2}till {6}20\\S+Z {2}127\\.0\\.0\\.1:\\d+ +1 +0 +0$`)),
      'and 1 more',
      '',
    ]);
    const shown = await first.keys('show', '--key', 'lost');
    const host = new URL(upstream.url).host;
    expect(shown.stdout).toMatch(
      new RegExp(
        `^${lost}: unresolved\n {2}upstream {3}till\n {2}first sent 20\\S+Z\n {2}endpoint {3}${host}\n {2}requests {3}0 in progress\n` +
          ' {2}responses {2}0 being sent\n {2}final for {2}0 credentials\n$',
      ),
    );
    expect(await first.json<KeyRow>('show', String(lost).slice(0, 8))).toMatchObject({ id: lost });
    // A log line of the request names its write.
    expect(first.gate.log().find(({ msg, status }) => msg === 'request' && status === 504)).toMatchObject({
      write: lost,
    });

    expect(await first.keys('forget', String(busy))).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: `tidegate: ${busy}: The key is in use: 1 request has it. It can be forgotten after that.\n`,
    });
    const forgotten = await first.keys('forget', '--key', 'lost', '--upstream', 'till');
    expect({ ...forgotten, stdout: forgotten.stdout.split('\n').at(-2) }).toEqual({
      ...{ code: 0, stderr: '' },
      stdout:
        'Forgotten. A request with this key is sent as a new write, whether or not the forgotten one took effect.',
    });
    expect(await first.json<ForgottenKey>('forget', String(paid))).toMatchObject({ id: paid, state: 'answered' });
    for (const pid of [first.gate.child.pid ?? 0, ...first.gate.pids()]) process.kill(pid, 'SIGKILL');
    await first.gate.ended;
    expect(await pending).toBe('lost');

    const second = await start();
    expect((await second.json<KeysPage>('list')).keys).toMatchObject([{ id: busy, state: 'unresolved', requests: 0 }]);
    expect((await second.keys('forget', String(busy))).code).toBe(0);
    expect((await second.keys('list')).stdout).toBe('no key matches\n');
  },
  PATIENCE,
);

test(
  'an error is one line that names the cause',
  async () => {
    const { start } = await setUp();
    const { gate, pay, keys } = await start();
    expect((await pay('paid')).status).toBe(200);
    expect((await pay('paid', '/refund')).status).toBe(200);
    const errors = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await keys(...args);
      expect(stdout).toBe('');
      return [code, stderr];
    };
    expect(await errors('show', '0123456789abcdef')).toEqual([1, 'tidegate: 0123456789abcdef: No such key.\n']);
    expect(await errors('show', '--key', 'other')).toEqual([1, 'tidegate: no request with this key is known\n']);
    expect(await errors('forget', '--key', 'paid', '--upstream', 'bank')).toEqual([
      1,
      'tidegate: no request with this key at bank is known\n',
    ]);
    expect(await errors('forget', '--key', 'paid')).toEqual([
      1,
      expect.stringMatching(
        /^tidegate: several writes have this key; forget one by its id: \w{16} \(till\), \w{16} \(till\)\n$/,
      ),
    ]);
    const denied = await run(['keys', 'forget', '0123456789abcdef', '--admin', gate.adminUrl]);
    expect(denied.stderr).toContain('requires a token: set it with --token or TIDEGATE_ADMIN_TOKEN');
    const usage = await keys('remove', 'x');
    expect([usage.code, usage.stderr.startsWith("tidegate: keys has no action 'remove'")]).toEqual([2, true]);
  },
  PATIENCE,
);

test(
  'workers that share keys over Redis, and other replicas, list, show and forget the same keys',
  async () => {
    const redis = await startRedis();
    const held: ServerResponse[] = [];
    const upstream = await startHttpUpstream((_nth, response, { body }) => {
      if (body.toString() === 'held') held.push(response);
      else if (body.toString() === 'lost') response.destroy();
      else response.end('paid');
    });
    const start = async (workers: number) => {
      const gate = await startWorkers(`
workers: ${workers}
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
state: {store: redis, url: "${redis.url}", timeout: 240ms}
upstreams:
  till: {url: "${upstream.url}", timeout: 60s, perTryTimeout: 60s, retry: {attempts: 1}, idempotency: {ttl: 1h, concurrent: refuse}}
`);
      const pay = (key: string) =>
        send(gate.url, '/pay', { method: 'POST', body: key, headers: ['idempotency-key', key] });
      const keys = (...args: readonly string[]) =>
        run(['keys', ...args], { TIDEGATE_ADMIN: gate.adminUrl, TIDEGATE_ADMIN_TOKEN: TOKEN });
      const json = async <T>(...args: readonly string[]): Promise<T> => {
        const { code, stdout, stderr } = await keys(...args, '--json');
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        return JSON.parse(stdout) as T;
      };
      return { gate, pay, keys, json };
    };
    const [one, two] = await Promise.all([start(1), start(2)]);
    expect((await one.keys('list')).stdout).toBe('no key matches\n');
    expect((await two.pay('paid')).status).toBe(200);
    expect((await one.pay('lost')).status).toBe(504);
    const pending = two.pay('held');
    await eventually(
      () => held.length,
      (count) => count === 1,
    );
    const all = await eventually(
      () => one.json<KeysPage>('list', '--oldest'),
      ({ keys }) => keys.map(({ state }) => state).join() === 'answered,unresolved,in_progress',
    );
    expect(all).toMatchObject({ total: 3, matching: 3, truncated: false });
    expect(await two.json<KeysPage>('list', '--oldest')).toEqual(all);
    const [paid, lost, busy] = all.keys.map(({ id }) => id);
    for (const { keys, json } of [one, two]) {
      expect((await json<KeysPage>('list', '--state', 'open')).keys.map(({ id }) => id)).toEqual([busy, lost]);
      expect((await keys('show', '--key', 'lost')).stdout).toMatch(new RegExp(`^${lost}: unresolved\n`));
      expect((await json<KeyRow>('show', String(lost).slice(0, 8))).id).toBe(lost);
      expect(await keys('show', '0123456789abcdef')).toEqual({
        ...{ code: 1, stdout: '' },
        stderr: 'tidegate: 0123456789abcdef: No such key.\n',
      });
      expect(await keys('forget', String(busy))).toEqual({
        ...{ code: 1, stdout: '' },
        stderr: `tidegate: ${busy}: The key is in use: 1 request has it. It can be forgotten after that.\n`,
      });
    }
    expect((await two.keys('forget', '--key', 'lost')).stdout.split('\n').at(-2)).toMatch(
      /^Forgotten\. A request with/,
    );
    expect(await one.json<ForgottenKey>('forget', String(paid))).toMatchObject({ id: paid, state: 'answered' });
    held[0]?.end('paid');
    expect((await pending).status).toBe(200);
    await redis.kill();
    for (const { keys } of [one, two]) {
      const { code, stderr } = await keys('list');
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^tidegate: keys: Redis, which has the keys of all replicas, does not respond: .+\.\n$/),
      ]);
    }
  },
  PATIENCE,
);
