/** The count of a quota survives the end of the process, however it ends. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { send } from '../../support/clients/send.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;

/** Sends requests one after another. Returns how many were forwarded. */
async function sendMany(url: string, count: number): Promise<number> {
  let forwarded = 0;
  for (let i = 0; i < count; i += 1) if ((await send(url, '/')).status === 200) forwarded += 1;
  return forwarded;
}

test.each([
  ['SIGKILL', 45], // 45 of 50 000 were written ahead in blocks of 50, so 50 count
  ['SIGTERM', 45],
] as const)(
  'never sends more than the quota after %s',
  async (signal, firstRun) => {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-quotas-'));
    atEnd(() => rmSync(folder, { recursive: true }));
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const quotas = '[{limit: 100, per: rolling 24h}, {name: large, limit: 50000, per: rolling 24h}]';
    const yaml = `upstreams: {api: {url: "${upstream.url}", quotas: ${quotas}}}
state: {store: sqlite, file: ${join(folder, 'state.db')}}`;
    const first = await startWorkers(yaml);
    expect(await sendMany(first.url, firstRun)).toBe(firstRun);
    first.child.kill(signal);
    await first.ended;

    const second = await startWorkers(yaml);
    const large = await second.sum('tidegate_quota_remaining{upstream="api",quota="large"}');
    expect(large).toBe(signal === 'SIGKILL' ? 49_950 : 50_000 - firstRun);
    expect(await second.sum('tidegate_quota_remaining{upstream="api",quota="rolling-24h"}')).toBe(100 - firstRun);
    expect(await sendMany(second.url, 70)).toBe(100 - firstRun);
    expect(upstream.hits).toHaveLength(100);
  },
  PATIENCE,
);
