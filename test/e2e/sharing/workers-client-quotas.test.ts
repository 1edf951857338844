/** Quotas of classes and of single clients that several worker processes share: the primary counts them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TOKEN } from '../../support/admin/admin-api.ts';
import { atEnd } from '../../support/at-end.ts';
import { makeKeyFile } from '../../support/clients/api-keys.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { forwarded, resetQuotas, sendAs, useUpAs } from '../../support/quotas/client-requests.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;

test(
  'each client gets exactly its quota, the class no more than that of all, and a restart keeps the counts',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-quotas-'));
    atEnd(() => rmSync(folder, { recursive: true }));
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const file = makeKeyFile('partner-a', 'partner-b', 'partner-c', 'slow-a', 'slow-b');
    const [a = '', b = '', c = '', ...slow] = file.keys;
    const yaml = `workers: 2
upstreams: {api: {url: "${upstream.url}"}}
state: {store: sqlite, file: ${join(folder, 'state.db')}}
clients:
  auth: {apiKeys: {file: ${file.path}}}
  classes:
    partners: {match: {key: ["partner-*"]}, quota: 100/rolling 24h, perClient: {quota: 40/rolling 24h}}
    slow: {match: {key: ["slow-*"]}, perClient: {maxRate: 1/h}}`;
    const first = await startWorkers(yaml);
    // A request is refused if the primary has not responded in time, because this machine is busy.
    const [ofA, ofB] = await Promise.all([useUpAs([first], a), sendAs([first], b, 20).then(forwarded)]);
    expect(ofA).toBe(40);
    expect(ofB).toBeGreaterThan(0);
    first.child.kill('SIGTERM');
    await first.ended;

    const second = await startWorkers(yaml);
    expect(await useUpAs([second], a)).toBe(0);
    expect(ofB + (await useUpAs([second], b))).toBe(40);
    expect(await useUpAs([second], c)).toBe(20); // the rest of the class
    expect(upstream.hits).toHaveLength(100);
    for (const key of slow) expect(forwarded(await sendAs([second], key, 12))).toBe(1);
    await eventually(
      () => second.sum('tidegate_quota_remaining{upstream="api",quota="class:partners/rolling-24h"}'),
      (left) => left === 0,
    );
  },
  PATIENCE,
);

test(
  'no client exceeds its quota although a worker is killed',
  async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const file = makeKeyFile('shop');
    const [key = ''] = file.keys;
    const gate = await startWorkers(`workers: 2
upstreams: {api: {url: "${upstream.url}"}}
clients:
  auth: {apiKeys: {file: ${file.path}}}
  classes: {all: {match: {key: ["*"]}, perClient: {quota: 200/rolling 24h}}}`);
    const sending = sendAs([gate], key, 100);
    await eventually(
      () => upstream.hits.length,
      (hits) => hits >= 50,
    );
    process.kill(gate.pids()[0] ?? 0, 'SIGKILL');
    await sending;
    await useUpAs([gate], key);
    expect(upstream.hits.length).toBeLessThanOrEqual(200);
    expect(upstream.hits.length).toBeGreaterThan(150); // what the killed worker had leased counts
  },
  PATIENCE,
);

test(
  'a reset by an operator holds in all workers and after a restart',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-quotas-'));
    atEnd(() => rmSync(folder, { recursive: true }));
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const file = makeKeyFile('shop', 'other');
    const [key = '', other = ''] = file.keys;
    const yaml = `workers: 2
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
upstreams: {api: {url: "${upstream.url}"}}
state: {store: sqlite, file: ${join(folder, 'state.db')}}
clients:
  auth: {apiKeys: {file: ${file.path}}}
  classes: {all: {match: {key: ["*"]}, perClient: {quota: 30/rolling 24h}}}`;
    const first = await startWorkers(yaml);
    expect(await useUpAs([first], key)).toBe(30);
    expect(await useUpAs([first], other)).toBe(30);
    await resetQuotas(first, 'shop');
    expect(await useUpAs([first], key)).toBe(30);
    expect(await useUpAs([first], other)).toBe(0);
    await resetQuotas(first, 'shop');
    first.child.kill('SIGKILL');
    await first.ended;
    const second = await startWorkers(yaml);
    expect(await useUpAs([second], key)).toBe(30);
  },
  PATIENCE,
);
