/** Learned state persists across restarts. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startReloadable } from '../../support/proxy/reloadable.ts';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const PATIENCE = 90_000;
const IGNORED = 'state file ignored: starting without learned state';
const RATE = 'tidegate_ratelimit_rate_requests_per_second{upstream="api",scope="upstream"}';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'tidegate-state-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Accepts thirty requests, then answers 429. */
function startLimited(headers: Record<string, string> = {}) {
  return startHttpUpstream((n, response) => {
    if (n > 30) response.writeHead(429, headers);
    response.end();
  });
}

async function reachLimit(url: string): Promise<void> {
  for (let n = 0; n < 31; n += 1) await send(url, '/');
}

test.each([1, 2])(
  'a learned rate is restored by the next process, with %d worker(s)',
  async (workers) => {
    const upstream = await startLimited();
    const file = join(folder(), 'state.json');
    const yaml = `workers: ${workers}\nstate: {store: memory, file: ${file}}\nupstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
    const first = await startReloadable(yaml);
    await reachLimit(first.url);
    const learnedRate = await eventually(
      () => first.metric(RATE),
      (rate) => rate !== undefined && Number.isFinite(rate),
    );
    first.child.kill('SIGTERM');
    expect((await first.ended).code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(existsSync(`${file}.tmp`)).toBe(false);

    const second = await startReloadable(yaml);
    const known = Number(await second.metric(RATE));
    expect(known).toBeGreaterThan(0.5 * Number(learnedRate));
    expect(known).toBeLessThan(2 * Number(learnedRate));
    expect(second.log()).toContainEqual(expect.objectContaining({ msg: 'restored learned state' }));
  },
  PATIENCE,
);

test(
  'a restarted process still honours the Retry-After of the upstream and holds the client',
  async () => {
    const upstream = await startLimited({ 'Retry-After': '30' });
    const file = join(folder(), 'state.json');
    const yaml = `secret: a-secret-that-is-kept\nstate: {store: memory, file: ${file}}\nupstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
    const first = await startReloadable(yaml);
    await reachLimit(first.url);
    first.child.kill('SIGTERM');
    await first.ended;
    const sent = upstream.hits.length;
    const second = await startReloadable(yaml);
    const { status, header } = await send(second.url, '/');
    expect(status).toBe(429);
    expect(Number(header('retry-after'))).toBeGreaterThan(5);
    expect(upstream.hits).toHaveLength(sent);
  },
  PATIENCE,
);

test(
  'the file is written while the process runs, so a killed process leaves its state',
  async () => {
    const upstream = await startLimited();
    const file = join(folder(), 'state.json');
    const yaml = `state: {store: memory, file: ${file}}\nupstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
    const first = await startReloadable(yaml);
    await reachLimit(first.url);
    await eventually(
      () => existsSync(file) && readFileSync(file, 'utf8').includes('"rate":'),
      (isThere) => isThere,
    );
    first.child.kill('SIGKILL');
    await first.ended;
    const second = await startReloadable(yaml);
    expect(Number.isFinite(await second.metric(RATE))).toBe(true);
  },
  PATIENCE,
);

test(
  'an invalid or unwritable file is logged, and the process starts without learned state',
  async () => {
    const upstream = await startLimited();
    const place = folder();
    const file = join(place, 'state.json');
    writeFileSync(file, '{"version": 1, "writ');
    const yaml = (at: string) =>
      `state: {store: memory, file: ${at}}\nupstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
    const gate = await startReloadable(yaml(file));
    expect(gate.log()).toContainEqual(
      expect.objectContaining({ level: 'warn', file, why: 'its content is invalid', msg: IGNORED }),
    );
    expect((await send(gate.url, '/')).status).toBe(200);
    const other = await startReloadable(yaml(join(place, 'missing', 'state.json')));
    expect((await send(other.url, '/')).status).toBe(200);
    other.child.kill('SIGTERM');
    const { code } = await other.ended;
    expect(code).toBe(0);
    expect(other.log()).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: 'cannot write the state file', why: 'no such file' }),
    );
  },
  PATIENCE,
);

test(
  'a process killed while writing leaves either the old file or the new one, complete',
  async () => {
    const file = join(folder(), 'state.json');
    const program = fileURLToPath(new URL('../../support/replace-files.ts', import.meta.url));
    for (let round = 0; round < 12; round += 1) {
      const child = fork(program, [file]);
      await once(child, 'message');
      await new Promise((resolve) => {
        setTimeout(resolve, 3 * round);
      });
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      const { n, again } = JSON.parse(readFileSync(file, 'utf8')) as { n: number; again: number };
      expect(again).toBe(n);
    }
  },
  PATIENCE,
);

// Regression: the next process took a rate pinned at 500/s for a learned rate.
test.each([1, 2])(
  'pins and blocks of an operator are not stored in the file, with %d worker(s)',
  async (workers) => {
    const upstream = await startLimited();
    const file = join(folder(), 'state.json');
    const given = `listen: 127.0.0.1:0\nadmin: {listen: "127.0.0.1:0", token: ${TOKEN}}\ndrain: {delay: 0, timeout: 5s}\n`;
    const yaml = `workers: ${workers}\nstate: {store: memory, file: ${file}}\nupstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
    const first = await startReloadable(yaml, { given });
    await reachLimit(first.url);
    const learnedRate = await eventually(
      () => first.metric(RATE),
      (rate) => rate !== undefined && Number.isFinite(rate),
    );
    const api = await openAdminApi(first.adminUrl);
    await api.post('/api/upstreams/api/pin?rate=500/s');
    await api.post('/api/upstreams/api/block?for=10m');
    first.child.kill('SIGTERM');
    expect((await first.ended).code).toBe(0);
    const second = await startReloadable(yaml, { given });
    expect(await second.metric(RATE)).toBeLessThan(1.5 * (learnedRate ?? 0));
    const status = (await (await openAdminApi(second.adminUrl)).get('/api/status')).json();
    expect(status).toMatchObject({ upstreams: [{ pinned: null, blockedBy: null }] });
  },
  PATIENCE,
);
