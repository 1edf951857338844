/** Signals and orders to drain, one after the other: only a second signal cuts requests in flight. */
import type { ServerResponse } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { AdminApi } from '../../support/admin/admin-api.ts';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { atEnd } from '../../support/at-end.ts';
import type { Received } from '../../support/clients/send.ts';
import { send } from '../../support/clients/send.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import type { RunningProcess } from '../../support/proxy/process.ts';
import { signalGroup, startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

/** Milliseconds. A little longer than that of src/process/signals.ts. */
const DUPLICATE_SIGNAL_WINDOW = 700;

interface Busy extends RunningProcess {
  /** The response to the request that is in flight. */
  readonly last: Promise<Received>;
  readonly api: AdminApi;
  /** Returns when a signal or order before it has been handled and another one is no duplicate of it. */
  readonly settled: () => Promise<void>;
  /** Ends that response, which takes until then. */
  readonly respond: () => void;
}

/** Starts it, with a request in flight. */
async function startBusy(workers: number, npm = false): Promise<Busy> {
  const held: ServerResponse[] = [];
  const upstream = await startHttpUpstream((_n, response) => held.push(response));
  const file = writeConfigFile(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
drain: {delay: 0, timeout: 2m}
workers: ${workers}
upstreams: {api: {url: "${upstream.url}", timeout: 2m, perTryTimeout: 2m}}
`);
  const home = mkdtempSync(join(tmpdir(), 'tidegate-npm-'));
  atEnd(() => rmSync(home, { recursive: true, force: true }));
  const env = { HOME: home, npm_config_update_notifier: 'false', npm_config_offline: 'true' };
  const running = startProcess(['serve', '--config', file], npm ? { npm, env } : {});
  const lines = await eventually(running.log, (seen) => seen.some(({ msg }) => msg === 'listening'), 120_000);
  const { url, admin } = lines.find(({ msg }) => msg === 'listening') ?? {};
  const last = send(String(url), '/');
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  const api = await openAdminApi(String(admin));
  const settled = async (): Promise<void> => {
    await api.get('/api/status');
    await sleep(DUPLICATE_SIGNAL_WINDOW);
  };
  return { ...running, api, last, settled, respond: () => held[0]?.end() };
}

describe.concurrent.each([1, 2])('with workers: %i', (workers) => {
  test('a signal to the whole group of npm start does no harm', async () => {
    const busy = await startBusy(workers, true);
    signalGroup(busy.child, 'SIGTERM');
    await busy.settled();
    busy.respond();
    expect((await busy.last).status).toBe(200);
    expect((await busy.ended).code).toBe(0);
  });

  test('a second signal to the group cuts requests in flight', async () => {
    const busy = await startBusy(workers, true);
    const cut = busy.last.catch(() => 'cut');
    signalGroup(busy.child, 'SIGTERM');
    await busy.settled();
    signalGroup(busy.child, 'SIGTERM');
    expect(await cut).toBe('cut');
    expect((await busy.ended).code).toBe(1);
  });

  test('SIGTERM joins the drain that the admin API began, and a second one ends it', async () => {
    const busy = await startBusy(workers);
    const cut = busy.last.catch(() => 'cut');
    expect((await busy.api.post('/drain')).status).toBe(200);
    await busy.settled();
    busy.child.kill('SIGTERM');
    await busy.settled();
    expect(busy.child.exitCode).toBeNull();
    busy.child.kill('SIGTERM');
    expect(await cut).toBe('cut');
    expect((await busy.ended).code).toBe(1);
  });

  test.each(['SIGTERM', '/drain'])('requests in flight survive an order after the other, %s first', async (first) => {
    const busy = await startBusy(workers);
    for (const order of first === 'SIGTERM' ? [first, '/drain'] : [first, 'SIGTERM']) {
      if (order === 'SIGTERM') busy.child.kill(order);
      else expect((await busy.api.post(order)).status).toBe(200);
      await busy.settled();
    }
    busy.respond();
    expect((await busy.last).status).toBe(200);
    expect((await busy.ended).code).toBe(0);
    expect(busy.log().filter(({ msg }) => msg === 'draining')).toHaveLength(1);
  });
});
