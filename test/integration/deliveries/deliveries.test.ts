/** Requests that are stored and delivered later, over real sockets, with a real database file. */
import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { type Received, send } from '../../support/clients/send.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { type Hit, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const SECRET = 'a-secret-of-the-tests-0123456789abcdef';

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-deliveries-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function config(upstream: string, folder: string, deliver = '{}', rest = ''): string {
  return `
secret: ${SECRET}
state: {store: sqlite, file: ${join(folder, 'state.db')}}
upstreams: {shop: {url: ${upstream}}}
routes: [{path: /hooks, upstream: shop, deliver: ${deliver}}, {path: /, upstream: shop}]
${rest}
`;
}

function notify(
  gate: Tidegate,
  body: string,
  headers: readonly string[] = [],
  path = '/hooks/pay?x=1',
): Promise<Received> {
  return send(gate.url, path, { method: 'POST', body, headers: ['Content-Type', 'application/json', ...headers] });
}

async function stateOf(gate: Tidegate, accepted: Received): Promise<Record<string, unknown>> {
  return (await send(gate.url, accepted.header('location') ?? '')).json();
}

async function untilState(gate: Tidegate, accepted: Received, state: string): Promise<Record<string, unknown>> {
  return eventually(
    () => stateOf(gate, accepted),
    (seen) => seen['state'] === state,
  );
}

const answer = (status: number, body = ''): ((n: number, response: ServerResponse) => void) => {
  return (_n, response) => void response.writeHead(status).end(body);
};

function headerOf({ headers }: Hit, name: string): string | undefined {
  const at = headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name);
  return at < 0 ? undefined : headers[at + 1];
}

test('a request is answered with 202 and the location of its state, and sent as it came', async () => {
  const shop = await startHttpUpstream(answer(200, 'ok'));
  const gate = await startTidegate(config(shop.url, makeFolder()));
  const accepted = await notify(gate, '{"id":"evt_1"}', ['X-Event', 'paid', 'X-Event', 'twice']);
  expect([accepted.status, accepted.body.toString()]).toEqual([202, '']);
  const id = accepted.header('tidegate-delivery-id') ?? '';
  expect(accepted.header('location')).toBe(`/.well-known/tidegate/deliveries/${id}`);
  const done = await untilState(gate, accepted, 'delivered');
  expect(done).toMatchObject({ id, attempts: 1, lastAttempt: { status: 200 } });
  const [hit] = shop.hits;
  expect(shop.hits).toHaveLength(1);
  expect([hit?.method, hit?.target, hit?.body.toString()]).toEqual(['POST', '/hooks/pay?x=1', '{"id":"evt_1"}']);
  expect(hit?.headers.filter((name, i) => i % 2 === 0 && name === 'X-Event')).toHaveLength(2);
  expect(hit && headerOf(hit, 'webhook-id')).toBe(id);
  expect(hit && headerOf(hit, 'tidegate-delivery-attempt')).toBe('1');
});

test('an attempt that is not acknowledged is repeated with the same id', async () => {
  const shop = await startHttpUpstream((n, response) => void response.writeHead(n === 1 ? 500 : 204).end());
  const gate = await startTidegate(config(shop.url, makeFolder(), '{schedule: {delays: [1s, 1s]}}'));
  const accepted = await notify(gate, '{}');
  const waiting = await untilState(gate, accepted, 'waiting');
  expect(waiting).toMatchObject({ attempts: 1, lastAttempt: { status: 500, reason: 'status_500' } });
  expect(await untilState(gate, accepted, 'delivered')).toMatchObject({ attempts: 2 });
  const ids = shop.hits.map((hit) => headerOf(hit, 'webhook-id'));
  expect(new Set(ids).size).toBe(1);
  expect(shop.hits.map((hit) => headerOf(hit, 'tidegate-delivery-attempt'))).toEqual(['1', '2']);
  expect(await gate.metric('tidegate_deliveries_total{route="/hooks",event="delivered"}')).toBe(1);
  expect(await gate.metric('tidegate_delivery_attempts_total{route="/hooks",result="status_500"}')).toBe(1);
});

test('each attempt is signed with its own time, in place of the signature of the sender', async () => {
  const key = Buffer.alloc(24, 7);
  const shop = await startHttpUpstream((n, response) => void response.writeHead(n === 1 ? 500 : 204).end());
  const deliver = `{schedule: {delays: [1s]}, sign: {secrets: [whsec_${key.toString('base64')}]}}`;
  const gate = await startTidegate(config(shop.url, makeFolder(), deliver));
  const theirs = ['webhook-id', 'msg_1', 'webhook-timestamp', '1614265330', 'webhook-signature', 'v1,AAAA'];
  const accepted = await notify(gate, '{"id":"evt_1"}', theirs);
  await untilState(gate, accepted, 'delivered');
  const id = accepted.header('tidegate-delivery-id');
  const times = shop.hits.map((hit) => {
    const time = headerOf(hit, 'webhook-timestamp');
    const expected = createHmac('sha256', key).update(`${id}.${time}.`).update(hit.body).digest('base64');
    expect([headerOf(hit, 'webhook-id'), headerOf(hit, 'webhook-signature')]).toEqual([id, `v1,${expected}`]);
    expect(hit.headers.filter((name, i) => i % 2 === 0 && /^webhook-/i.test(name))).toHaveLength(3);
    return Number(time);
  });
  expect(times).toHaveLength(2);
  expect(times[1]).toBeGreaterThan(times[0] ?? Infinity);
});

test('a delivery whose schedule is used up is dead, and kept', async () => {
  const shop = await startHttpUpstream(answer(400));
  const gate = await startTidegate(config(shop.url, makeFolder(), '{schedule: {delays: [1s]}}'));
  const accepted = await notify(gate, '{}');
  expect(await untilState(gate, accepted, 'dead')).toMatchObject({ attempts: 2, lastAttempt: { status: 400 } });
  expect(await gate.metric('tidegate_deliveries{state="dead"}')).toBe(1);
});

test('the body decides where the receiver has its own word', async () => {
  const shop = await startHttpUpstream((n, response) => void response.end(n === 1 ? 'fail' : ' success\n'));
  const deliver = `{schedule: {delays: [1s]}, acknowledgedBy: {body: {equals: success}}, respond: {status: 200, body: success}}`;
  const gate = await startTidegate(config(shop.url, makeFolder(), deliver));
  const accepted = await notify(gate, 'trade_status=TRADE_SUCCESS');
  expect([accepted.status, accepted.body.toString()]).toEqual([200, 'success']);
  expect(accepted.header('content-type')).toMatch(/^text\/plain/);
  expect(await untilState(gate, accepted, 'delivered')).toMatchObject({ attempts: 2 });
});

test('a second request for an event is answered as the first, and not sent', async () => {
  const shop = await startHttpUpstream(answer(200));
  const gate = await startTidegate(config(shop.url, makeFolder(), '{eventId: {json: id}}'));
  const first = await notify(gate, '{"id":"evt_1"}');
  await untilState(gate, first, 'delivered');
  const second = await notify(gate, '{"id":"evt_1"}');
  const other = await notify(gate, '{"id":"evt_2"}');
  expect([second.status, second.header('location')]).toEqual([202, first.header('location')]);
  await untilState(gate, other, 'delivered');
  expect(shop.hits).toHaveLength(2);
  expect(await gate.metric('tidegate_deliveries_total{route="/hooks",event="duplicate"}')).toBe(1);
});

test('requests about one object are sent one after the other, in order', async () => {
  const shop = await startHttpUpstream((n, response) => void response.writeHead(n === 1 ? 503 : 200).end());
  const deliver = '{schedule: {delays: [1s, 1s]}, orderBy: {json: object}}';
  const gate = await startTidegate(config(shop.url, makeFolder(), deliver));
  const sent: Received[] = [];
  for (const [object, n] of [
    ['a', 1],
    ['a', 2],
    ['a', 3],
    ['b', 4],
  ] as const) {
    sent.push(await notify(gate, JSON.stringify({ object, n })));
  }
  for (const each of sent) await untilState(gate, each, 'delivered');
  const bodies = shop.hits.map(({ body }) => JSON.parse(body.toString()) as { object: string; n: number });
  expect(bodies.filter(({ object }) => object === 'a').map(({ n }) => n)).toEqual([1, 1, 2, 3]);
});

test('what was accepted survives a restart, and a receiver that is down is no loss', async () => {
  const folder = makeFolder();
  let isUp = false;
  const shop = await startHttpUpstream((_n, response) => void response.writeHead(isUp ? 200 : 503).end());
  const deliver = '{schedule: {delays: [1s, 1s, 1s, 1s, 1s]}}';
  const first = await startTidegate(config(shop.url, folder, deliver));
  const accepted: Received[] = [];
  for (let n = 0; n < 5; n += 1) accepted.push(await notify(first, `{"n":${n}}`));
  await first.close();
  isUp = true;
  const second = await startTidegate(config(shop.url, folder, deliver));
  for (const each of accepted) await untilState(second, each, 'delivered');
  const acknowledged = new Set(shop.hits.map(({ body }) => body.toString()));
  expect(acknowledged.size).toBe(5);
});

test('a delivery that cannot be decrypted is dead, and counted as such', async () => {
  const folder = makeFolder();
  let isUp = false;
  const shop = await startHttpUpstream((_n, response) => void response.writeHead(isUp ? 200 : 503).end());
  const before = config(shop.url, folder, '{schedule: {delays: [1s, 1h]}}');
  const first = await startTidegate(before);
  const accepted = await notify(first, '{}');
  await untilState(first, accepted, 'waiting');
  await first.close();
  isUp = true;
  const second = await startTidegate(before.replace(SECRET, 'another-secret-of-the-tests-0123456789'));
  await eventually(
    () => second.metric('tidegate_deliveries{state="dead"}'),
    (dead) => dead === 1,
  );
  expect(await second.metric('tidegate_deliveries_total{route="/hooks",event="dead"}')).toBe(1);
  expect(shop.hits).toHaveLength(1);
});

test('only the client that sent a request can read its state', async () => {
  const shop = await startHttpUpstream(answer(200));
  const keyed = 'clients: {key: [header:x-api-key, ip]}';
  const gate = await startTidegate(config(shop.url, makeFolder(), '{}', keyed));
  const accepted = await notify(gate, '{}', ['X-API-Key', 'a']);
  const path = accepted.header('location') ?? '';
  const read = async (key: string, method = 'GET'): Promise<number> =>
    (await send(gate.url, path, { method, headers: ['X-API-Key', key] })).status;
  expect([await read('a'), await read('b'), await read('a', 'DELETE')]).toEqual([200, 404, 405]);
});

test('a body that is too long, or too much to store, is refused before anything is stored', async () => {
  const shop = await startHttpUpstream(answer(503));
  const gate = await startTidegate(
    config(shop.url, makeFolder(), '{maxBody: 10B, schedule: {delays: [1h]}}', 'limits: {deliveries: 2}'),
  );
  expect((await notify(gate, '{"n":"12345"}')).status).toBe(413);
  expect([(await notify(gate, '{}')).status, (await notify(gate, '{}')).status]).toEqual([202, 202]);
  const refused = await notify(gate, '{}');
  expect([refused.status, refused.json()['reason']]).toEqual([503, 'deliveries_full']);
  expect(Number(refused.header('retry-after'))).toBeGreaterThan(0);
});

test('a reload changes how waiting deliveries are sent', async () => {
  const folder = makeFolder();
  const before = await startHttpUpstream(answer(503));
  const after = await startHttpUpstream(answer(200));
  const deliver = '{schedule: {delays: [1s, 1s, 1s]}}';
  const gate = await startTidegate(config(before.url, folder, deliver));
  const accepted = await notify(gate, '{}');
  await untilState(gate, accepted, 'waiting');
  await gate.rewrite(config(after.url, folder, deliver));
  await untilState(gate, accepted, 'delivered');
  expect(after.hits).toHaveLength(1);
});

test('a key of the sender does not end a delivery, however long that takes', async () => {
  const shop = await startHttpUpstream((n, response) => void response.writeHead(n < 3 ? 500 : 204).end());
  const yaml = config(shop.url, makeFolder(), '{schedule: {delays: [1s, 1s, 1s]}}');
  const gate = await startTidegate(
    yaml.replace(`url: ${shop.url}`, `url: ${shop.url}, retry: {attempts: 1}, idempotency: {ttl: 1s}`),
  );
  const accepted = await notify(gate, '{}', ['Idempotency-Key', 'of the sender']);
  expect(await untilState(gate, accepted, 'delivered')).toMatchObject({ attempts: 3 });
  expect(shop.hits.map((hit) => headerOf(hit, 'idempotency-key'))).toEqual(Array(3).fill('of the sender'));
});

test('a key that is generated is the same in all attempts', async () => {
  const shop = await startHttpUpstream((n, response) => void response.writeHead(n < 3 ? 500 : 204).end());
  const yaml = config(shop.url, makeFolder(), '{schedule: {delays: [1s, 1s, 1s]}}');
  const gate = await startTidegate(yaml.replace(`url: ${shop.url}`, `url: ${shop.url}, idempotency: {generate: true}`));
  const accepted = await notify(gate, '{}');
  await untilState(gate, accepted, 'delivered');
  const id = accepted.header('tidegate-delivery-id');
  expect(shop.hits.map((hit) => headerOf(hit, 'idempotency-key'))).toEqual([id, id, id]);
});
