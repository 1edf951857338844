/** Quotas that several worker processes share: the primary counts them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { type Received, send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers, type Workers } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;
const DAY_SECONDS = 86_400;

/** Sends requests, `concurrency` at a time. A connection that a killed worker has closed counts as no response. */
async function sendMany(url: string, count: number, concurrency: number): Promise<Received[]> {
  const responses: Received[] = [];
  let next = 0;
  const sendInTurn = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      const response = await send(url, '/').catch(() => undefined);
      if (response !== undefined) responses.push(response);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, sendInTurn));
  return responses;
}

const forwarded = (responses: readonly Received[]): number => responses.filter(({ status }) => status === 200).length;

const remaining = (workers: Workers): Promise<number> => workers.sum('tidegate_quota_remaining{upstream="api"');

function configure(url: string, quota: string, rest = ''): string {
  return `workers: 2\nupstreams: {api: {url: "${url}", quotas: [{per: rolling 24h, ${quota}}]}}\n${rest}`;
}

test(
  'sends exactly the quota, and states the reset and what is left',
  async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startWorkers(configure(upstream.url, 'limit: 100'));
    const responses = await sendMany(gate.url, 60, 6);
    expect(forwarded(responses)).toBe(60);
    await eventually(
      () => remaining(gate),
      (left) => left === 40, // once unused parts are returned
    );
    const status = (await (await fetch(`${gate.adminUrl}/api/status`)).json()) as { upstreams: { quotas: unknown }[] };
    expect(status.upstreams[0]?.quotas).toMatchObject([{ name: 'rolling-24h', limit: 100, remaining: 40 }]);
    // What one worker holds for a moment, another one gets within two seconds.
    const all = await eventually(
      async () => {
        await sendMany(gate.url, 20, 6);
        return upstream.hits.length;
      },
      (hits) => hits >= 100,
    );
    expect(all).toBe(100);
    await eventually(
      async () => {
        const refused = await send(gate.url, '/');
        expect([refused.status, (refused.json() as { reason: string }).reason]).toEqual([429, 'quota_exceeded']);
        return Number(refused.header('retry-after'));
      },
      (retryAfter) => retryAfter > DAY_SECONDS - 60,
    );
    expect(upstream.hits).toHaveLength(100);
    expect(await remaining(gate)).toBe(0);
    // A reload that raises the limit keeps the count.
    const file = gate.child.spawnargs.find((each) => each.endsWith('.yaml')) ?? '';
    writeFileSync(file, readFileSync(file, 'utf8').replace('limit: 100', 'limit: 104'));
    gate.child.kill('SIGHUP');
    const raised = await eventually(
      async () => {
        await sendMany(gate.url, 4, 2);
        return upstream.hits.length;
      },
      (hits) => hits >= 104,
    );
    expect(raised).toBe(104);
  },
  PATIENCE,
);

test(
  'never exceeds the quota although a worker is killed, and keeps the count over a restart',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-quotas-'));
    atEnd(() => rmSync(folder, { recursive: true }));
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const state = `state: {store: sqlite, file: ${join(folder, 'state.db')}}`;
    const yaml = configure(upstream.url, 'limit: 300', state);
    const first = await startWorkers(yaml);
    const sending = sendMany(first.url, 200, 8);
    await eventually(
      () => upstream.hits.length,
      (hits) => hits >= 100,
    );
    process.kill(first.pids()[0] ?? 0, 'SIGKILL');
    await sending;
    await eventually(
      () => first.pids().length,
      (pids) => pids === 3,
    );
    await eventually(
      async () => {
        await sendMany(first.url, 20, 4);
        return remaining(first);
      },
      (left) => left <= 20,
    );
    first.child.kill('SIGTERM');
    await first.ended;

    const second = await startWorkers(yaml);
    const left = await remaining(second);
    const hits = upstream.hits.length;
    expect(hits + left).toBeLessThanOrEqual(300);
    expect(hits + left).toBeGreaterThanOrEqual(250); // the killed worker had leased at most a 16th of what was left
    await eventually(
      async () => {
        await sendMany(second.url, 10, 2);
        return upstream.hits.length;
      },
      (all) => all >= hits + left,
    );
    await sendMany(second.url, 20, 4);
    expect(upstream.hits).toHaveLength(hits + left);
  },
  PATIENCE,
);
