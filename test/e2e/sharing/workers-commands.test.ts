/** Operator commands while workers start, exit or reload. */
import { expect, onTestFinished, test } from 'vitest';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { startReloadable } from '../../support/proxy/reloadable.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';
import { isAlive, startWorkers } from '../../support/proxy/workers.ts';

const PATIENCE = 120_000;
const ADMIN = `admin: {listen: "127.0.0.1:0", token: ${TOKEN}}\n`;
const GIVEN = `listen: 127.0.0.1:0\n${ADMIN}drain: {delay: 0, timeout: 5s}\nworkers: 2\n`;

interface Status {
  readonly requests: { readonly inFlight: number; readonly outcomes: Readonly<Record<string, number>> };
  readonly upstreams: readonly { readonly name: string; readonly pinned: number | null; readonly state: string }[];
}

/** Starts two workers with a rewritable configuration that routes `/b/…` to upstream b, everything else to a. */
async function startTwo() {
  const upstream = await startHttpUpstream((_n, response, request) => {
    if (request.target === '/b/slow') setTimeout(() => response.end('late'), 4000);
    else response.end('at once');
  });
  const a = `a: {url: "${upstream.url}"}`;
  const both = `upstreams: {${a}, b: {url: "${upstream.url}"}}\nroutes: [{path: /b/, upstream: b}, {path: /, upstream: a}]`;
  const one = `upstreams: {${a}}\nroutes: [{path: /, upstream: a}]`;
  const gate = await startReloadable(both, { given: GIVEN });
  const api = await openAdminApi(gate.adminUrl);
  const status = async () => (await api.get('/api/status')).json() as unknown as Status;
  return {
    upstream,
    gate,
    api,
    status,
    both,
    one,
    rewrite: async (yaml: string) => {
      const before = gate.reloads();
      gate.rewrite(yaml);
      await eventually(gate.reloads, (count) => count > before);
    },
    row: async (name: string) => (await status()).upstreams.find((each) => each.name === name),
    serving: () => pidsIn(gate.log()),
    /** Sends a request with a slow response, and returns it with the pids of its worker (`own`) and of the other one. */
    askSlowly: async () => {
      const agent = keepAlive();
      await send(gate.url, '/b/', { agent });
      const [first] = await eventually(
        () => gate.log().filter(({ msg }) => msg === 'request'),
        ({ length }) => length > 0,
      );
      const slow = send(gate.url, '/b/slow', { agent });
      await eventually(
        () => upstream.hits,
        ({ length }) => length === 2,
      );
      const pidOf = (isOwn: boolean) => {
        const serves = gate.log().filter(({ msg }) => msg === 'worker is serving');
        return Number(serves.find(({ worker }) => (worker === first?.['worker']) === isOwn)?.['pid']);
      };
      return { slow, own: pidOf(true), other: pidOf(false) };
    },
    ended: () => gate.log().filter(({ msg }) => String(msg).startsWith('worker exited')),
  };
}

function pidsIn(log: readonly Record<string, unknown>[]): number[] {
  return log.flatMap(({ msg, pid }) => (msg === 'worker is serving' ? [Number(pid)] : []));
}

test(
  'a pinned rate applies to all workers together, including a restarted one',
  async () => {
    const upstream = await startUpstream({ latency: { kind: 'constant', mean: 5 } });
    const gate = await startWorkers(
      `workers: 2\n${ADMIN}clients: {key: [header:x-api-key, ip]}\nupstreams: {till: {url: "${upstream.url}"}}`,
    );
    const api = await openAdminApi(gate.adminUrl);
    expect((await api.post('/api/upstreams/till/pin?rate=10/s')).json()).toMatchObject({ pinned: 10 });
    process.kill(gate.pids()[0] ?? 0, 'SIGKILL');
    await eventually(gate.pids, ({ length }) => length === 3);
    const clients = Array.from({ length: 8 }, (_, i) => ({ name: `c${i}`, rate: 20 }));
    const began = performance.now();
    const traffic = startTraffic({ target: gate.url, clients });
    onTestFinished(() => traffic.stop());
    await eventually(
      () => upstream.stats().accepted,
      (accepted) => accepted > 10,
    );
    const nextRate = async (): Promise<number> => {
      const [since, before] = [performance.now(), upstream.stats().accepted];
      await pause(3000);
      const { accepted } = upstream.stats();
      const now = performance.now();
      // Since the beginning: a delay may move requests from one interval to the next, but none before it.
      expect(accepted).toBeLessThan(1 + (12 * (now - began)) / 1000);
      return (1000 * (accepted - before)) / (now - since);
    };
    await eventually(nextRate, (rate) => rate > 6, 90_000); // a busy machine may not send that many at first
  },
  PATIENCE,
);

test(
  'a held client is held by restarted workers',
  async () => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 1) response.writeHead(429, { 'retry-after': '60' });
      response.end();
    });
    const api = `{url: "${upstream.url}", retry: {attempts: 1}}`;
    const gate = await startWorkers(`workers: 2\nclients: {key: [header:x-api-key, ip]}\nupstreams: {api: ${api}}`);
    const ask = async () => (await send(gate.url, '/', { agent: keepAlive(), headers: ['x-api-key', 'held'] })).status;
    expect(await ask()).toBe(429);
    await pause(300);
    for (const pid of gate.pids()) process.kill(pid, 'SIGKILL');
    await eventually(gate.pids, ({ length }) => length === 4);
    for (let n = 0; n < 6; n += 1) expect(await ask()).toBe(429);
    expect(upstream.hits).toHaveLength(1);
  },
  PATIENCE,
);

test(
  'a worker applies commands given during its start before it serves',
  async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startWorkers(
      `workers: 2\n${ADMIN}upstreams: {till: {url: "${upstream.url}", rateLimit: {scope: client}}}`,
    );
    const api = await openAdminApi(gate.adminUrl);
    const [victim = 0, other = 0] = gate.pids();
    process.kill(victim, 'SIGKILL');
    await eventually(
      () => gate.sum('tidegate_worker_restarts_total'),
      (count) => count === 1,
    );
    expect(gate.pids()).toHaveLength(2); // the command is given before the new worker serves
    expect((await api.post('/api/upstreams/till/block')).status).toBe(200);
    await eventually(gate.pids, ({ length }) => length === 3);
    process.kill(other, 'SIGSTOP'); // one of two connections goes to it
    onTestFinished(() => void (isAlive(other) && process.kill(other, 'SIGKILL')));
    const asked = [1, 2].map(() => send(gate.url, '/', { agent: keepAlive(), signal: AbortSignal.timeout(20_000) }));
    expect((await Promise.any(asked)).status).toBe(503);
    process.kill(other, 'SIGCONT');
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([503, 503]);
    expect(upstream.hits).toHaveLength(0);
  },
  PATIENCE,
);

test(
  'commands for an upstream are discarded when it is removed, and restarted workers serve',
  async () => {
    const { gate, api, both, one, rewrite, row, serving, ended } = await startTwo();
    await api.post('/api/upstreams/b/pin?rate=5/s');
    await api.post('/api/upstreams/b/block');
    await rewrite(one);
    await eventually(
      () => row('b'),
      (seen) => seen === undefined,
    );
    process.kill(serving()[0] ?? 0, 'SIGKILL');
    await eventually(serving, ({ length }) => length === 3);
    expect(ended()).toHaveLength(1);
    expect((await send(gate.url, '/')).status).toBe(200);
    await rewrite(both);
    for (let n = 0; n < 6; n += 1) expect((await send(gate.url, '/b/', { agent: keepAlive() })).status).toBe(200);
    expect(await row('b')).toMatchObject({ pinned: null, state: 'open' });
  },
  PATIENCE,
);

test(
  'a command for an upstream being removed applies to workers that still have it',
  async () => {
    const { gate, api, both, one, rewrite, row, serving, ended, askSlowly } = await startTwo();
    const { slow, other } = await askSlowly();
    await rewrite(one);
    await pause(500); // the other worker has discarded it
    expect((await api.post('/api/upstreams/b/block')).status).toBe(200);
    expect(ended()).toEqual([]);
    expect(gate.log().filter(({ msg }) => String(msg).startsWith('a query of the primary'))).toEqual([]);
    // A worker that starts now never had this upstream.
    process.kill(other, 'SIGKILL');
    expect((await slow).body.toString()).toBe('late');
    await eventually(serving, ({ length }) => length === 3);
    await eventually(
      () => row('b'),
      (seen) => seen === undefined,
    );
    await rewrite(both);
    for (let n = 0; n < 6; n += 1) expect((await send(gate.url, '/b/', { agent: keepAlive() })).status).toBe(200);
    expect(ended()).toHaveLength(1);
  },
  PATIENCE,
);

test(
  'a block survives at all workers when the upstream is added again before it was discarded',
  async () => {
    const { gate, api, both, one, rewrite, serving, askSlowly } = await startTwo();
    const { slow } = await askSlowly();
    await api.post('/api/upstreams/b/block');
    await rewrite(one);
    await pause(500);
    await rewrite(both);
    for (let n = 0; n < 6; n += 1) expect((await send(gate.url, '/b/', { agent: keepAlive() })).status).toBe(503);
    expect((await slow).status).toBe(200);
    expect(serving()).toHaveLength(2);
  },
  PATIENCE,
);

test('the counts of a worker survive its exit, and a scrape does not wait for a dead worker', {
  ...AGAIN_IF_STALLED,
  timeout: PATIENCE,
}, async () => {
  const stalls = watchStalls();
  const { gate, status, serving, ended, askSlowly } = await startTwo();
  const ask = (count: number) => Promise.all(Array.from({ length: count }, () => send(gate.url, '/')));
  const count = async () => {
    const { requests } = await status();
    return [requests.inFlight, requests.outcomes['forwarded']];
  };
  const { slow, own: victim } = await askSlowly();
  slow.catch(() => undefined);
  await ask(19);
  expect(await count()).toEqual([1, 20]);
  process.kill(victim, 'SIGSTOP');
  onTestFinished(() => void (isAlive(victim) && process.kill(victim, 'SIGKILL')));
  const since = performance.now();
  const scrape = send(gate.adminUrl, '/metrics');
  await pause(100);
  process.kill(victim, 'SIGKILL');
  expect((await scrape).status).toBe(200);
  const took = performance.now() - since;
  stalls.unlessStalled(() => expect(took).toBeLessThan(990)); // a silent worker times out after 1 s
  await eventually(serving, ({ length }) => length === 3);
  expect(ended()).toHaveLength(1);
  expect(await count()).toEqual([0, 20]);
  await ask(10);
  expect(await count()).toEqual([0, 30]);
});
