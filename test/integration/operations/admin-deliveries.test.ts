/** The stored deliveries in the admin API: listed, shown, retried and canceled. */
import { expect, test } from 'vitest';
import type { DeliveryRow } from '../../../src/admin/api/delivery-schemas.ts';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { send } from '../../support/clients/send.ts';
import { startShop } from '../../support/deliveries/admin-shop.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const UNKNOWN_ID = '0199f3b0-0000-7000-8000-000000000000';

test('lists deliveries by state and route, in the order of acceptance, with totals', async () => {
  const { held, api, notify, list, until } = await startShop();
  const none = { waiting: 0, sending: 0, delivered: 0, dead: 0, canceled: 0, unknown: 0 };
  expect(await list()).toEqual({ totals: { counts: none, bytes: 0, oldestAt: null }, deliveries: [], next: null });
  const [dead, delivered, waiting] = [
    await notify('dead-1', '/hooks', ['X-Event', 'evt_1', 'Authorization', 'Bearer secret-credential']),
    await notify('paid-2'),
    await notify('dead-3', '/slow'),
  ];
  const sending = await notify('held-4', '/slow');
  await until(dead, 'dead');
  await until(delivered, 'delivered');
  await eventually(
    async () => (await list('?state=waiting')).deliveries[0]?.attempts,
    (attempts) => attempts === 1,
  );
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  const all = await list();
  expect(all).toMatchObject({
    totals: { counts: { ...none, waiting: 1, sending: 1, delivered: 1, dead: 1 } },
    deliveries: [
      { ...{ id: dead, route: '/hooks', upstream: 'shop', state: 'dead', attempts: 2, eventId: 'evt_1' } },
      { id: delivered, state: 'delivered', attempts: 1, eventId: null, lastAttempt: { status: 200, reason: null } },
      { id: waiting, route: '/slow', state: 'waiting', lastAttempt: { status: 400, reason: 'status_400' } },
      { id: sending, state: 'sending', attempts: 0, lastAttempt: null },
    ],
    next: null,
  });
  const [first, , third, fourth] = all.deliveries;
  expect(all.totals.oldestAt).toBe(third?.acceptedAt);
  const status = await api.get('/api/status');
  expect(status.json()['deliveries']).toEqual(all.totals);
  expect(Date.parse(third?.nextAttemptAt ?? '') - Date.parse(third?.acceptedAt ?? '')).toBeGreaterThan(3_000_000);
  expect([first?.nextAttemptAt, first?.sendingSince, typeof first?.endedAt]).toEqual([null, null, 'string']);
  expect([fourth?.nextAttemptAt, typeof fourth?.sendingSince, fourth?.endedAt]).toEqual([null, 'string', null]);
  expect(JSON.stringify(all)).not.toMatch(/dead-1|secret/);

  const ids = async (query: string) => (await list(query)).deliveries.map(({ id }) => id);
  expect(await ids('?state=dead')).toEqual([dead]);
  expect(await ids('?state=open')).toEqual([waiting, sending]);
  expect(await ids('?route=/hooks')).toEqual([dead, delivered]);
  expect(await ids('?route=/slow&state=dead')).toEqual([]);
  expect(await ids('?order=newest&limit=2')).toEqual([sending, waiting]);
  expect(await ids(`?order=newest&after=${waiting}`)).toEqual([delivered, dead]);
  const pages: DeliveryRow[] = [];
  for (let next: string | null = ''; next !== null; ) {
    const page = await list(`?limit=3${next === '' ? '' : `&after=${next}`}`);
    pages.push(...page.deliveries);
    next = page.next;
  }
  expect(pages).toEqual(all.deliveries);
  expect((await api.get(`/api/deliveries/${dead}`)).json()).toEqual(first);
  held[0]?.end();
  await until(sending, 'delivered');
});

test('shows the message of a delivery only with the token', async () => {
  const { gate, notify, until } = await startShop();
  const text = await notify('{"paid": "süß"}', '/hooks/a?x=1', ['X-Event', 'evt_1', 'X-Event', 'twice']);
  const bytes = await notify(Buffer.from([0xff, 0, 1]));
  await until(text, 'delivered');
  const read = (target: string, headers: readonly string[] = ['Authorization', `Bearer ${TOKEN}`]) =>
    send(gate.adminUrl ?? '', target, { headers });
  const shown = await read(`/api/deliveries/${text}?message=true`);
  expect(shown.json()).toMatchObject({
    id: text,
    message: {
      ...{ method: 'POST', target: '/hooks/a?x=1', encoding: 'text', body: '{"paid": "süß"}', peer: '127.0.0.1' },
      headers: expect.arrayContaining([
        ['X-Event', 'evt_1'],
        ['X-Event', 'twice'],
      ]) as unknown,
    },
  });
  (await openAdminApi(gate.adminUrl ?? '')).fits('DeliveryDetails', shown.json());
  expect((await read(`/api/deliveries/${bytes}?message=true`)).json()).toMatchObject({
    message: { encoding: 'base64', body: '/wAB' },
  });
  for (const query of ['?message=true', '?message=true&message=false', '?%6dessage=true']) {
    expect((await read(`/api/deliveries/${text}${query}`, [])).status).toBe(401);
  }
  const foreign = ['Authorization', `Bearer ${TOKEN}`, 'Origin', 'https://elsewhere.example'];
  expect((await read(`/api/deliveries/${text}?message=true`, foreign)).status).toBe(403);
  expect((await read(`/api/deliveries/${text}?message=false`, [])).json()).not.toHaveProperty('message');
  expect((await read(`/api/deliveries/${text}`)).json()).not.toHaveProperty('message');
});

test('retries a dead delivery at once with a new schedule, and reports who did it', async () => {
  const { upstream, repair, gate, api, notify, until } = await startShop();
  const id = await notify('dead-1');
  const dead = await until(id, 'dead');
  const path = `/api/deliveries/${id}/retry`;
  expect((await send(gate.adminUrl ?? '', path, { method: 'POST' })).status).toBe(401);
  repair();
  const retried = await api.post(path);
  expect(retried.status).toBe(200);
  expect(retried.json()).toMatchObject({ id, attempts: 0, notes: ['It is due now, with a new schedule.'] });
  expect(await until(id, 'delivered')).toMatchObject({ acceptedAt: dead.acceptedAt, attempts: 1 });
  expect(upstream.hits.map(({ body }) => body.toString())).toEqual(['dead-1', 'dead-1', 'dead-1']);
  const refused = await api.post(path);
  expect([refused.status, refused.json()['detail']]).toEqual([409, 'It is already delivered: it cannot be retried.']);
  expect(gate.log().filter(({ msg }) => msg === 'operator action')).toMatchObject([
    {
      ...{ action: 'retry', upstream: 'shop', route: '/hooks', delivery: id, by: '127.0.0.1' },
      ...{
        before: { state: 'dead' },
        after: { state: expect.stringMatching(/^(?:waiting|sending|delivered)$/) as string },
      },
    },
  ]);
  const { events } = (await api.get('/api/timeline')).json() as { events: object[] };
  expect(events).toMatchObject([
    { kind: 'retry', upstream: 'shop', text: `delivery ${id} of /hooks retried, by 127.0.0.1` },
  ]);
});

test('cancels a delivery that waits, and none that is sent or over', async () => {
  const { upstream, held, repair, gate, api, notify, show, until } = await startShop();
  const id = await notify('dead-1', '/slow');
  await eventually(
    () => show(id),
    ({ state, attempts }) => state === 'waiting' && attempts === 1,
  );
  const canceled = await api.post(`/api/deliveries/${id}/cancel`);
  expect(canceled.json()).toMatchObject({
    ...{ id, state: 'canceled', nextAttemptAt: null },
    notes: ['It is not sent, unless it is retried before it is removed (keepFor).'],
  });
  expect(await gate.metric('tidegate_deliveries_total{route="/slow",event="canceled"}')).toBe(1);
  expect(await gate.metric('tidegate_deliveries{state="canceled"}')).toBe(1);
  const again = await api.post(`/api/deliveries/${id}/cancel`);
  expect([again.status, again.json()['detail']]).toEqual([
    409,
    'It is already canceled: only a waiting delivery can be canceled.',
  ]);

  const busy = await notify('held-2');
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  for (const action of ['cancel', 'retry']) {
    const refused = await api.post(`/api/deliveries/${busy}/${action}`);
    expect([refused.status, refused.json()['detail']]).toEqual([
      409,
      'An attempt is in progress. Try again when it has ended.',
    ]);
  }
  held[0]?.end();
  await until(busy, 'delivered');
  repair();
  expect((await api.post(`/api/deliveries/${id}/retry`)).status).toBe(200);
  await until(id, 'delivered');
  expect(upstream.hits.length).toBe(3);
  expect(await gate.metric('tidegate_deliveries_total{route="/slow",event="canceled"}')).toBe(1);
});

test('rejects unknown ids, parameters and methods', async () => {
  const { gate, api } = await startShop();
  const missing = `/api/deliveries/${UNKNOWN_ID}`;
  for (const answer of [
    await api.get(missing),
    await api.post(`${missing}/retry`),
    await api.post(`${missing}/cancel`),
    await send(gate.adminUrl ?? '', `${missing}?message=true`, { headers: ['Authorization', `Bearer ${TOKEN}`] }),
  ]) {
    expect([answer.status, answer.json()['detail']]).toEqual([404, 'No such delivery.']);
  }
  for (const [target, problem] of [
    ['?state=died', /^state: /],
    ['?limit=501', /^limit: expected 1 to 500/],
    ['?order=latest', /^order: /],
    ['?after=1', /^after: expected the id of a delivery/],
    ['?cursor=x', /^unknown parameter 'cursor'/],
    [`/${UNKNOWN_ID}?body=true`, /^unknown parameter 'body'/],
    [`/${UNKNOWN_ID}?message=false&message=false`, /^message: /],
  ] as const) {
    const { status, json } = await send(gate.adminUrl ?? '', `/api/deliveries${target}`, {
      headers: ['Authorization', `Bearer ${TOKEN}`],
    });
    expect(status).toBe(400);
    expect(json()['detail']).toMatch(problem);
  }
  for (const [answer, allow] of [
    [await api.delete(missing), 'GET, HEAD'],
    [await api.get(`${missing}/retry`), 'POST'],
  ] as const) {
    expect([answer.status, answer.header('allow')]).toEqual([405, allow]);
  }
});

test('a process without a store of deliveries says so', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(
    `admin: {listen: "127.0.0.1:0", token: ${TOKEN}}\nupstreams: {till: {url: "${upstream.url}"}}\n`,
  );
  const api = await openAdminApi(gate.adminUrl ?? '');
  expect((await api.get('/api/status')).json()['deliveries']).toBeNull();
  const one = `/api/deliveries/${UNKNOWN_ID}`;
  const answers = [await api.get('/api/deliveries'), await api.get(one), await api.post(`${one}/retry`)];
  for (const answer of [...answers, await api.post(`${one}/cancel`)]) {
    expect([answer.status, answer.json()['detail']]).toEqual([
      404,
      'This process stores no deliveries: they need secret, and state: {store: sqlite} or {store: redis}.',
    ]);
  }
});
