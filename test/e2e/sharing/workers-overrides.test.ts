/** The admin API combines several workers. */
import { expect, test } from 'vitest';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { pause } from '../../support/pause.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { watchEvents } from '../../support/admin/event-viewer.ts';

const PATIENCE = 90_000;
const CONFIG = `workers: 2
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
clients: {key: [header:x-api-key, ip]}
`;

async function start(settings = '') {
  const upstream = await startUpstream({ latency: { kind: 'constant', mean: 5 } });
  const gate = await startWorkers(`${CONFIG}upstreams: {till: {url: "${upstream.url}"${settings}}}`);
  return { upstream, gate, api: await openAdminApi(gate.adminUrl) };
}

type Row = Readonly<Record<string, unknown>>;

test(
  'the admin API reports the requests, clients and status of all workers',
  async () => {
    const { gate, api } = await start();
    const viewer = watchEvents(gate.adminUrl);
    // Separate connections reach both workers.
    await Promise.all(
      Array.from({ length: 60 }, (_, i) => send(gate.url, `/r${i}`, { headers: ['x-api-key', `k${i % 5}`] })),
    );
    const ids: string[] = [];
    for (let cursor = ''; ; ) {
      const page = (await api.get(`/api/requests?limit=25${cursor}`)).json() as {
        requests: { id: string; path: string }[];
        next: string | null;
      };
      ids.push(...page.requests.map(({ id }) => id));
      if (page.next === null) break;
      cursor = `&cursor=${page.next}`;
    }
    expect(new Set(ids).size).toBe(60);
    expect(new Set(ids.map((id) => id.split('-')[1])).size).toBe(2); // both workers
    for (const id of ids.slice(0, 10)) expect((await api.get(`/explain/${id}`)).json()).toMatchObject({ id });
    const status = (await api.get('/api/status')).json() as { requests: { outcomes: Row }; workers: number };
    expect(status).toMatchObject({ workers: 2, phase: 'ready', requests: { outcomes: { forwarded: 60 } } });
    // A client of both workers is listed once.
    const { clients } = (await api.get('/api/clients')).json() as { clients: { key: string }[] };
    expect(clients).toHaveLength(5);
    await eventually(
      () => viewer.of('status').length,
      (seen) => seen > 1,
    );
    const batches = viewer.of('requests') as { requests: Row[]; more: number }[];
    expect(batches.reduce((sum, { requests, more }) => sum + requests.length + more, 0)).toBeLessThanOrEqual(60);
    expect(await send(gate.adminUrl, '/metrics').then(({ status: code }) => code)).toBe(200);
  },
  PATIENCE,
);

test(
  'a pinned rate applies to all workers together, and a block to each, including a restarted one',
  async () => {
    const { upstream, gate, api } = await start();
    const clients = Array.from({ length: 10 }, (_, i) => ({ name: `c${i}`, rate: 20 }));
    const traffic = startTraffic({ target: gate.url, clients });
    const passedIn = async (ms: number): Promise<number> => {
      const [since, before] = [performance.now(), upstream.stats().accepted];
      await pause(ms);
      return (1000 * (upstream.stats().accepted - before)) / (performance.now() - since);
    };
    try {
      await eventually(
        () => upstream.stats().accepted,
        (accepted) => accepted > 50,
      );
      expect((await api.post('/api/upstreams/till/pin?rate=40/s')).json()).toMatchObject({ rate: 40, pinned: 40 });
      await pause(300);
      const pinned: number[] = [];
      await eventually(
        async () => {
          pinned.push(await passedIn(3000));
          return pinned;
        },
        () => (pinned.at(-1) ?? 0) > 30,
      );
      expect(Math.max(...pinned)).toBeLessThan(43);

      expect((await api.post('/api/upstreams/till/block')).json()).toMatchObject({
        state: 'blocked',
        blockedBy: 'operator',
      });
      await pause(300);
      expect(await passedIn(1000)).toBe(0);
      const [victim = 0] = gate.pids();
      process.kill(victim, 'SIGKILL');
      await eventually(
        () => gate.pids().length,
        (count) => count === 3,
      );
      expect(await passedIn(1000)).toBe(0);
      const refused = await Promise.all(Array.from({ length: 10 }, () => send(gate.url, '/')));
      expect(refused.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 503));
      for (const answer of refused) expect(Number(answer.header('retry-after'))).toBeGreaterThanOrEqual(25);

      await api.post('/api/upstreams/till/unblock');
      await eventually(
        () => passedIn(1000),
        (rate) => rate > 25,
      );
      expect(await passedIn(2000)).toBeLessThan(44); // still pinned
      expect((await api.post('/api/upstreams/till/unpin')).json()).toMatchObject({ pinned: null });
      await eventually(
        () => passedIn(1000),
        (rate) => rate > 100,
      );
      const { events } = (await api.get('/api/timeline')).json() as { events: { kind: string }[] };
      const kinds = events.map(({ kind }) => kind).filter((kind) => kind !== 'state' && kind !== 'cut');
      expect(kinds).toEqual(['unpin', 'unblocked', 'blocked', 'pin']);
    } finally {
      await traffic.stop();
    }
  },
  PATIENCE,
);
