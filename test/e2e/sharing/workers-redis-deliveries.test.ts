/** Workers that are replicas of one Redis deliver from it. */
import { expect, test } from 'vitest';
import { startLedger } from '../../support/deliveries/ledger-upstream.ts';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers, type Workers, workerOf } from '../../support/proxy/workers.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHolding } from '../../support/upstreams/holding-upstream.ts';
import { type Hit, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 600_000;
/** Milliseconds. Only what hangs takes as long. */
const WITHIN = 120_000;

/** @param route the keys of a route */
async function start(upstream: string, route: string): Promise<Workers> {
  const redis = await startRedis();
  return startWorkers(`
workers: 2
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: redis, url: "${redis.url}", timeout: 240ms}
upstreams: {shop: {url: "${upstream}", timeout: 1h, perTryTimeout: 1h, idempotency: {ttl: 24h}}}
routes: [{path: /hooks, upstream: shop, ${route}}]
`);
}

async function notify(url: string): Promise<string> {
  const accepted = await send(url, '/hooks', { method: 'POST', body: '{}' });
  expect(accepted.status).toBe(202);
  return accepted.header('tidegate-delivery-id') ?? '';
}

const deliveryOf = ({ headers }: Hit) => headerOf(headers, 'tidegate-delivery-id') ?? '';
const attemptOf = ({ headers }: Hit) => headerOf(headers, 'tidegate-delivery-attempt');

test(
  'another worker sends what a killed one was sending once its lease has ended, and all together no more than allowed',
  async () => {
    const { upstream: shop, held, hold } = await startHolding();
    const gate = await start(shop.url, 'deliver: {schedule: {delays: [1h]}, concurrency: 4}');
    const ids: string[] = [];
    for (let n = 0; n < 6; n += 1) ids.push(await notify(gate.url));
    await hold(4);
    const by = Map.groupBy(held.values(), workerOf);
    expect([...by.values()].map(({ length }) => length)).toEqual([2, 2]);
    const [victim = ''] = by.keys();
    const cut = by.get(victim)?.map(deliveryOf) ?? [];
    const serving = gate.log().find(({ msg, worker }) => msg === 'worker is serving' && String(worker) === victim);
    process.kill(Number(serving?.['pid']), 'SIGKILL');
    const release = setInterval(() => [...held.keys()].forEach((response) => void response.end()), 10);
    await eventually(
      () => shop.hits.slice(4).filter((hit) => cut.includes(deliveryOf(hit))),
      ({ length }) => length === 2,
      WITHIN,
    );
    const repeated = shop.hits.slice(4).filter((hit) => cut.includes(deliveryOf(hit)));
    expect(repeated.map((hit) => [attemptOf(hit), workerOf(hit) === victim])).toEqual([
      ['1', false],
      ['1', false],
    ]);
    const states = () =>
      Promise.all(
        ids.map(async (id) => (await send(gate.url, `/.well-known/tidegate/deliveries/${id}`)).json()['state']),
      );
    await eventually(states, (all) => all.every((state) => state === 'delivered'), WITHIN);
    clearInterval(release);
    expect(shop.hits).toHaveLength(8);
    await eventually(
      () => gate.sum('tidegate_deliveries{state="delivered"}'),
      (count) => count === 6,
      WITHIN,
    );
  },
  PATIENCE,
);

test(
  'operators see, retry and cancel the deliveries in Redis at the primary',
  async () => {
    const shop = await startHttpUpstream((n, response) => void response.writeHead(n <= 2 ? 404 : 200).end());
    const gate = await start(shop.url, 'deliver: {schedule: {delays: [1s]}}');
    const first = await notify(gate.url);
    const api = await openAdminApi(gate.adminUrl);
    const headers = { Authorization: `Bearer ${TOKEN}` };
    const read = async (id: string) =>
      (await fetch(`${gate.adminUrl}/api/deliveries/${id}?message=true`, { headers })).json();
    const until = (id: string, state: string) =>
      eventually(
        () => read(id) as Promise<Record<string, unknown>>,
        (row) => row['state'] === state,
        WITHIN,
      );
    expect(await until(first, 'dead')).toMatchObject({ attempts: 2, message: { method: 'POST', body: '{}' } });
    const totals = async () => {
      const { deliveries } = (await api.get('/api/status')).json() as { deliveries?: { counts: { dead?: number } } };
      return deliveries?.counts;
    };
    await eventually(totals, (counts) => counts?.dead === 1, WITHIN);
    expect((await api.post(`/api/deliveries/${first}/cancel`)).status).toBe(409);
    expect((await api.post(`/api/deliveries/${first}/retry`)).status).toBe(200);
    await until(first, 'delivered');
    const listed = (await api.get('/api/deliveries?state=delivered')).json() as {
      deliveries: readonly { id: string }[];
    };
    expect(listed.deliveries.map(({ id }) => id)).toEqual([first]);
    expect((await api.get('/api/deliveries/01a22afa-a8ca-75ac-9a42-e2c834e10ad1')).status).toBe(404);
    const ends = () =>
      gate.log().flatMap(({ msg, outcome, delivery }) => (msg === 'delivery ended' ? [[outcome, delivery]] : []));
    const ended = await eventually(ends, ({ length }) => length === 2, WITHIN);
    expect(ended).toEqual([
      ['dead', first],
      ['delivered', first],
    ]);
  },
  PATIENCE,
);

test(
  'a write is the same one at any worker, and is done although one of them is killed',
  async () => {
    const ledger = await startLedger();
    const delays = Array.from({ length: 60 }, () => '1s').join(', ');
    const gate = await start(ledger.url, `async: {schedule: {delays: [${delays}]}}`);
    const charge = (key: string) => {
      const headers = ['Idempotency-Key', key, 'Prefer', 'respond-async'];
      return eventually(
        () => send(gate.url, '/hooks', { method: 'POST', headers, body: '{}' }).catch(() => undefined),
        (response) => response?.status === 202,
        WITHIN,
      );
    };
    const locations: string[] = [];
    for (let n = 0; n < 20; n += 1) {
      const [first, second] = [await charge(`k${n}`), await charge(`k${n}`)];
      expect(second?.header('location')).toBe(first?.header('location'));
      locations.push(first?.header('location') ?? '');
      if (n === 10) process.kill(gate.pids()[0] ?? 0, 'SIGKILL');
    }
    const states = () => Promise.all(locations.map(async (each) => (await send(gate.url, each)).json()['state']));
    await eventually(states, (all) => all.every((state) => state === 'done'), WITHIN);
    expect([...ledger.charges.values()]).toEqual(Array<number>(20).fill(1));
  },
  PATIENCE,
);
