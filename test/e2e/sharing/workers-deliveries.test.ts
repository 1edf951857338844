/** Workers deliver what their primary stores. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { atEnd } from '../../support/at-end.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { freePort } from '../../support/free-port.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers, type Workers, workerOf } from '../../support/proxy/workers.ts';
import { startHolding } from '../../support/upstreams/holding-upstream.ts';
import { type Hit, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 600_000;
/** Milliseconds. Only what hangs takes as long. */
const WITHIN = 240_000;

const WORKERS = 2;
const OBJECTS = 6;
const EVENTS_OF_OBJECT = 5;
const NOTIFICATIONS = 300;

/** @param deliver keys of the delivering route. @param more keys of the configuration */
async function prepare(upstream: string, deliver: string, more = ''): Promise<() => Promise<Workers>> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-workers-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const port = await freePort();
  const yaml = `
listen: 127.0.0.1:${port}
workers: ${WORKERS}
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(folder, 'state.db')}}
upstreams: {shop: {url: "${upstream}"}}
routes:
  - {path: /hooks, upstream: shop, deliver: {${deliver}}}
${more}`;
  return () => startWorkers(yaml);
}

/** The pids of the workers that serve, by number. */
function pidsOf(gate: Workers): ReadonlyMap<string, number> {
  const serving = gate.log().filter(({ msg }) => msg === 'worker is serving');
  return new Map(serving.map(({ worker, pid }) => [String(worker), Number(pid)]));
}

interface Notification {
  readonly id: string;
  readonly object?: string;
  readonly n: number;
}

/** As a provider does: again until it is answered with a 2xx. Returns the id of the delivery. */
async function notify(url: string, notification: Notification): Promise<string> {
  const body = JSON.stringify(notification);
  const headers = ['Content-Type', 'application/json'];
  const accepted = await eventually(
    () => send(url, '/hooks', { method: 'POST', headers, body }).catch(() => undefined),
    (response) => response?.status === 202,
    WITHIN,
  );
  return accepted?.header('tidegate-delivery-id') ?? '';
}

const attemptOf = ({ headers }: Hit) => headerOf(headers, 'tidegate-delivery-attempt');
const deliveryOf = ({ headers }: Hit) => headerOf(headers, 'tidegate-delivery-id') ?? '';

test(
  'kill -9 of a worker and of the primary loses no notification, repeats only under the same id, and keeps the order of each object',
  async () => {
    const random = seededRandom(11);
    const acknowledged: Notification[] = [];
    const senders = new Set<string>();
    const deliveryIds = new Map<string, Set<string>>();
    const shop = await startHttpUpstream((_nth, response, hit) => {
      const notification = JSON.parse(hit.body.toString()) as Notification;
      const ids = deliveryIds.get(notification.id) ?? new Set();
      deliveryIds.set(notification.id, ids.add(deliveryOf(hit)));
      senders.add(workerOf(hit));
      const isTaken = random() < 0.5;
      if (isTaken) acknowledged.push(notification);
      response.writeHead(isTaken ? 200 : 500).end();
    });
    const delays = Array.from({ length: 60 }, () => '1s').join(', ');
    const keys = `schedule: {delays: [${delays}]}, eventId: {json: id}, orderBy: {json: object}, concurrency: 50`;
    const start = await prepare(shop.url, keys);
    let gate = await start();
    const { url } = gate;

    const ordered = Array.from({ length: OBJECTS }, async (_, each) => {
      const object = `object-${each}`;
      for (let n = 0; n < EVENTS_OF_OBJECT; n += 1) await notify(url, { id: `${object}-${n}`, object, n });
    });
    let next = 0;
    const unordered = Array.from({ length: 8 }, async () => {
      while (next < NOTIFICATIONS - OBJECTS * EVENTS_OF_OBJECT) {
        const n = (next += 1);
        await notify(url, { id: `event-${n}`, n });
      }
    });
    const untilSent = (count: number) =>
      eventually(
        () => next,
        (sent) => sent >= count,
        WITHIN,
      );
    await untilSent(60);
    process.kill([...pidsOf(gate).values()][0] ?? 0, 'SIGKILL');
    await untilSent(140);
    gate.child.kill('SIGKILL');
    await gate.ended;
    gate = await start();
    await Promise.all([...ordered, ...unordered]);

    await eventually(
      () => new Set(acknowledged.map(({ id }) => id)).size,
      (count) => count === NOTIFICATIONS,
      WITHIN,
    );
    expect([...deliveryIds.values()].filter(({ size }) => size !== 1)).toEqual([]);
    expect(senders.size).toBeGreaterThan(1);
    for (let each = 0; each < OBJECTS; each += 1) {
      const order = acknowledged.filter(({ object }) => object === `object-${each}`).map(({ n }) => n);
      expect(order).toEqual(order.toSorted((a, b) => a - b));
    }
    await eventually(
      () => gate.sum('tidegate_deliveries{state="delivered"}'),
      (count) => count === NOTIFICATIONS,
      WITHIN,
    );
  },
  PATIENCE,
);

test(
  'another worker sends at once what a killed one was sending, as the same attempt, and all together no more than allowed',
  async () => {
    const { upstream, held, hold, release } = await startHolding();
    const start = await prepare(upstream.url, 'schedule: {delays: [1h]}, concurrency: 4');
    const gate = await start();
    const ids = await Promise.all(Array.from({ length: 6 }, (_, n) => notify(gate.url, { id: `event-${n}`, n })));
    await hold(4);
    const [victim = ''] = [...held.values()].map(workerOf);
    const cut = [...held.values()].filter((hit) => workerOf(hit) === victim).map(deliveryOf);
    process.kill(pidsOf(gate).get(victim) ?? 0, 'SIGKILL');
    await eventually(
      () => upstream.hits.length,
      (count) => count === 4 + cut.length,
      WITHIN,
    );
    const repeated = upstream.hits.slice(4);
    expect(repeated.map(deliveryOf).toSorted()).toEqual(cut.toSorted());
    expect(repeated.map((hit) => [attemptOf(hit), workerOf(hit) === victim])).toEqual(cut.map(() => ['1', false]));
    await hold(4);
    const states = async () =>
      Promise.all(
        ids.map(async (id) => (await send(gate.url, `/.well-known/tidegate/deliveries/${id}`)).json()['state']),
      );
    expect((await states()).map(String).toSorted()).toEqual([
      ...Array<string>(4).fill('sending'),
      'waiting',
      'waiting',
    ]);
    release();
    await eventually(
      () => upstream.hits.length,
      (count) => count === 6 + cut.length,
      WITHIN,
    );
    await hold(2);
    release();
    await eventually(states, (all) => all.every((state) => state === 'delivered'), WITHIN);
  },
  PATIENCE,
);

test(
  'a drain stores how its last attempts end, and each event and total counts once',
  async () => {
    const { upstream, hold, release } = await startHolding();
    const start = await prepare(upstream.url, 'schedule: {delays: [1h]}, eventId: {json: id}');
    const gate = await start();
    const ids: string[] = [];
    for (let n = 1; n <= 4; n += 1) ids.push(await notify(gate.url, { id: `event-${n}`, n }));
    for (let n = 1; n <= 4; n += 1) expect(await notify(gate.url, { id: `event-${n}`, n })).toBe(ids[n - 1]);
    await hold(4);
    const series = [
      ...['tidegate_deliveries{state="sending"}', 'tidegate_deliveries{state="waiting"}'],
      ...['accepted', 'duplicate', 'delivered'].map(
        (event) => `tidegate_deliveries_total{route="/hooks",event="${event}"}`,
      ),
    ];
    expect(await Promise.all(series.map((each) => gate.sum(each)))).toEqual([4, 0, 4, 4, 0]);
    const exposition = await (await fetch(`${gate.adminUrl}/metrics`)).text();
    expect(
      exposition.split('\n').filter((line) => line.startsWith('tidegate_bound_used_ratio{bound="deliver')),
    ).toHaveLength(3);
    const api = await openAdminApi(gate.adminUrl);
    const listed = (await api.get('/api/deliveries?state=sending')).json() as { deliveries?: { id: string }[] };
    expect(listed.deliveries?.map(({ id }) => id)).toEqual(ids);
    gate.child.kill('SIGTERM');
    await eventually(
      () => gate.log().some(({ msg }) => String(msg).startsWith('drain: waits for requests in flight')),
      (isDraining) => isDraining,
      WITHIN,
    );
    release();
    expect((await gate.ended).code).toBe(0);

    const after = await start();
    const state = await openAdminApi(after.adminUrl);
    const { totals } = (await state.get('/api/deliveries')).json() as { totals?: { counts: object } };
    expect(totals?.counts).toMatchObject({ waiting: 0, sending: 0, delivered: 4 });
    expect(upstream.hits).toHaveLength(4);
    expect(await notify(after.url, { id: 'event-5', n: 5 })).not.toBe('');
    await hold(1);
    release(500);
    const [waiting = { id: '' }] = await eventually(
      async () =>
        ((await state.get('/api/deliveries?state=waiting')).json() as { deliveries?: { id: string }[] }).deliveries ??
        [],
      (rows) => rows.length === 1,
      WITHIN,
    );
    expect((await state.post(`/api/deliveries/${waiting.id}/retry`)).status).toBe(200);
    await hold(1);
    release(500);
    await eventually(
      async () => (await state.post(`/api/deliveries/${waiting.id}/cancel`)).status,
      (status) => status === 200,
      WITHIN,
    );
    expect(await after.sum('tidegate_deliveries{state="canceled"}')).toBe(1);
    expect(await after.sum('tidegate_deliveries_total{route="/hooks",event="canceled"}')).toBe(1);
  },
  PATIENCE,
);

test(
  'no attempt begins once a drain has begun, although workers serve until drain.delay is over',
  async () => {
    const { upstream, hold, release } = await startHolding();
    const keys = 'schedule: {delays: [1h]}, concurrency: 1';
    const start = await prepare(upstream.url, keys, 'drain: {delay: 2s, timeout: 60s}\n');
    const gate = await start();
    for (let n = 1; n <= 2; n += 1) await notify(gate.url, { id: `event-${n}`, n });
    await hold(1);
    gate.child.kill('SIGTERM');
    await eventually(
      async () => (await fetch(`${gate.adminUrl}/readyz`)).status,
      (status) => status === 503,
      WITHIN,
    );
    release();
    expect((await gate.ended).code).toBe(0);
    expect(upstream.hits).toHaveLength(1);
    await start();
    await hold(1);
    release();
    expect(JSON.parse(upstream.hits[1]?.body.toString() ?? '')).toMatchObject({ n: 2 });
  },
  PATIENCE,
);
