/** What was learned outlives the process that learned it. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { openAdminApi, TOKEN } from '../support/admin-api.ts';
import { startHttpUpstream } from '../support/http-upstream.ts';
import { startReloadable } from '../support/reloadable.ts';
import { send } from '../support/send.ts';
import { eventually } from '../support/tidegate.ts';

const PATIENCE = 90_000;
const IGNORED = 'the state file is ignored: everything is learned anew';
const RATE = 'tidegate_ratelimit_rate_requests_per_second{upstream="api",scope="upstream"}';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'tidegate-state-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Accepts thirty, then turns away. */
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
  'a limit that was felt is known to the next process, with %d worker(s)',
  async (workers) => {
    const upstream = await startLimited();
    const file = join(folder(), 'state.json');
    const yaml = `workers: ${workers}\nstate: {store: memory, file: ${file}}\nupstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
    const first = await startReloadable(yaml);
    await reachLimit(first.url);
    const felt = await eventually(
      () => first.metric(RATE),
      (rate) => rate !== undefined && Number.isFinite(rate),
    );
    first.child.kill('SIGTERM');
    expect((await first.ended).code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(existsSync(`${file}.tmp`)).toBe(false);

    const second = await startReloadable(yaml);
    const known = Number(await second.metric(RATE));
    expect(known).toBeGreaterThan(0.5 * Number(felt));
    expect(known).toBeLessThan(2 * Number(felt));
    expect(second.log()).toContainEqual(expect.objectContaining({ msg: 'what was learned before is known again' }));
  },
  PATIENCE,
);

test(
  'an upstream that asked us to wait is waited for, and so is a client that was held',
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
  'it is written while the process runs: one that is killed leaves what it knew',
  async () => {
    const upstream = await startLimited();
    const file = join(folder(), 'state.json');
    const yaml = `state: {store: memory, file: ${file}}\nupstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
    const first = await startReloadable(yaml);
    await reachLimit(first.url);
    await eventually(
      () => existsSync(file) && readFileSync(file, 'utf8').includes('"rate":'),
      (isThere) => isThere,
      20_000,
    );
    first.child.kill('SIGKILL');
    await first.ended;
    const second = await startReloadable(yaml);
    expect(Number.isFinite(await second.metric(RATE))).toBe(true);
  },
  PATIENCE,
);

test(
  'a file that is broken, or that cannot be written, is told of in a line, and all is learned anew',
  async () => {
    const upstream = await startLimited();
    const place = folder();
    const file = join(place, 'state.json');
    writeFileSync(file, '{"version": 1, "writ');
    const yaml = (at: string) =>
      `state: {store: memory, file: ${at}}\nupstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
    const gate = await startReloadable(yaml(file));
    expect(gate.log()).toContainEqual(
      expect.objectContaining({ level: 'warn', file, why: 'it is broken', msg: IGNORED }),
    );
    expect((await send(gate.url, '/')).status).toBe(200);
    const other = await startReloadable(yaml(join(place, 'missing', 'state.json')));
    expect((await send(other.url, '/')).status).toBe(200);
    other.child.kill('SIGTERM');
    const { code } = await other.ended;
    expect(code).toBe(0);
    expect(other.log()).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: 'the state file cannot be written', why: 'no such file' }),
    );
  },
  PATIENCE,
);

test(
  'whoever is killed while writing leaves the old text or the new one, whole',
  async () => {
    const file = join(folder(), 'state.json');
    const program = fileURLToPath(new URL('../support/replace-files.ts', import.meta.url));
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

// Seen: a pin of 500/s was, to the next process, a limit that had been felt at 500/s.
test.each([1, 2])(
  'what an operator has ordered is not learned, and ends with the process, with %d worker(s)',
  async (workers) => {
    const upstream = await startLimited();
    const file = join(folder(), 'state.json');
    const given = `listen: 127.0.0.1:0\nadmin: {listen: "127.0.0.1:0", token: ${TOKEN}}\ndrain: {delay: 0, timeout: 5s}\n`;
    const yaml = `workers: ${workers}\nstate: {store: memory, file: ${file}}\nupstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
    const first = await startReloadable(yaml, { given });
    await reachLimit(first.url);
    const felt = await eventually(
      () => first.metric(RATE),
      (rate) => rate !== undefined && Number.isFinite(rate),
    );
    const api = await openAdminApi(first.adminUrl);
    await api.post('/api/upstreams/api/pin?rate=500/s');
    await api.post('/api/upstreams/api/block?for=10m');
    first.child.kill('SIGTERM');
    expect((await first.ended).code).toBe(0);
    const second = await startReloadable(yaml, { given });
    expect(await second.metric(RATE)).toBeLessThan(1.5 * (felt ?? 0));
    const status = (await (await openAdminApi(second.adminUrl)).get('/api/status')).json();
    expect(status).toMatchObject({ upstreams: [{ pinned: null, blockedBy: null }] });
  },
  PATIENCE,
);
