/** Writes that are accepted now and sent later (`Prefer: respond-async`), over real sockets, with a real database file, or a real Redis. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { type Received, send } from '../../support/clients/send.ts';
import { headerOf, startLedger } from '../../support/deliveries/ledger-upstream.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

interface Settings {
  readonly async?: string;
  readonly idempotency?: string;
  /** Of the upstream. */
  readonly rest?: string;
}

const STORES = ['SQLite', 'Redis'] as const;
/** `state` of the configuration of the present test. */
let state = '';

async function makeState(store: (typeof STORES)[number]): Promise<string> {
  if (store === 'Redis') return `{store: redis, url: "${(await startRedis()).url}", timeout: 240ms}`;
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-async-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return `{store: sqlite, file: ${join(folder, 'state.db')}}`;
}

function config(
  url: string,
  {
    async: written = '{schedule: {delays: [1s, 1s, 1s, 1s, 1s]}}',
    idempotency = '{ttl: 24h}',
    rest = '',
  }: Settings = {},
): string {
  return `
secret: a-secret-of-the-tests-0123456789abcdef
state: ${state}
clients: {key: ["header:X-Client", ip]}
upstreams: {psp: {url: "${url}", retry: {attempts: 1}, idempotency: ${idempotency}${rest}}}
routes: [{path: /v1, upstream: psp, async: ${written}}, {path: /, upstream: psp}]
`;
}

interface Charge {
  readonly key?: string;
  readonly client?: string;
  readonly body?: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly string[];
}

/** On a busy machine, Redis may respond too late to a request: its client sends it again. */
function untilKeyStored(sendIt: () => Promise<Received>): Promise<Received> {
  return eventually(sendIt, ({ status, body }) => status !== 503 || !body.includes('key_store_lost'));
}

function charge(gate: Tidegate, { key = 'k1', client = 'shop', ...sent }: Charge = {}): Promise<Received> {
  const { body = '{"amount":1}', method = 'POST', path = '/v1/charges', headers = [] } = sent;
  const own = ['Content-Type', 'application/json', 'X-Client', client, ...(key === '' ? [] : ['Idempotency-Key', key])];
  const prefer = headers.some((name) => name === 'Prefer') ? [] : ['Prefer', 'respond-async'];
  return untilKeyStored(() => send(gate.url, path, { method, body, headers: [...own, ...prefer, ...headers] }));
}

function readStatus(gate: Tidegate, accepted: Received, client = 'shop'): Promise<Received> {
  return send(gate.url, accepted.header('location') ?? '', { headers: ['X-Client', client] });
}

function untilState(gate: Tidegate, accepted: Received, state: string): Promise<Record<string, unknown>> {
  return eventually(
    async () => (await readStatus(gate, accepted)).json(),
    (seen) => seen['state'] === state,
  );
}

describe.each(STORES)('a write with Prefer: respond-async, stored in %s,', (store) => {
  beforeEach(async () => {
    state = await makeState(store);
  });

  test('is answered with 202 and its state, sent once, and its client reads the response later', async () => {
    const ledger = await startLedger();
    const gate = await startTidegate(config(ledger.url));
    const accepted = await charge(gate, { headers: ['Prefer', 'respond-async, wait=5, return=minimal'] });
    const id = accepted.header('tidegate-delivery-id') ?? '';
    expect([accepted.status, accepted.header('location')]).toEqual([202, `/.well-known/tidegate/deliveries/${id}`]);
    expect([accepted.header('preference-applied'), accepted.header('retry-after')]).toEqual(['respond-async', '1']);
    expect(accepted.header('cache-control')).toBe('no-store');
    expect(accepted.json()).toMatchObject({ id, state: 'waiting', attempts: 0 });
    const done = await untilState(gate, accepted, 'done');
    expect(done).toMatchObject({ attempts: 1, lastAttempt: { status: 201 }, response: { status: 201 } });
    const response = done['response'] as { headers: [string, string][]; encoding: string; body: string };
    expect([response.encoding, response.body]).toEqual(['text', '{"charge":"k1"}']);
    const names = response.headers.map(([name]) => name.toLowerCase());
    expect(names).toEqual(expect.arrayContaining(['content-type', 'x-charge']));
    for (const absent of ['set-cookie', 'connection', 'via', 'tidegate-attempts']) expect(names).not.toContain(absent);
    const [hit] = ledger.hits;
    expect([ledger.hits.length, hit?.method, hit?.target, hit?.body.toString()]).toEqual([
      ...[1, 'POST', '/v1/charges', '{"amount":1}'],
    ]);
    expect(hit && headerOf(hit, 'idempotency-key')).toBe('k1');
    expect(hit && [headerOf(hit, 'prefer'), headerOf(hit, 'webhook-id')]).toEqual(['return=minimal', undefined]);
    const status = await readStatus(gate, accepted);
    expect([status.header('cache-control'), status.header('retry-after')]).toEqual(['no-store', undefined]);
  });

  test('is visible to its client only', async () => {
    const ledger = await startLedger();
    const gate = await startTidegate(config(ledger.url));
    const accepted = await charge(gate);
    await untilState(gate, accepted, 'done');
    expect((await readStatus(gate, accepted, 'another')).status).toBe(404);
  });

  test('is charged once after an outage of the provider', async () => {
    const ledger = await startLedger();
    ledger.state.mode = 'unavailable';
    const gate = await startTidegate(config(ledger.url));
    const keys = ['a', 'b', 'c'];
    const accepted = await Promise.all(keys.map((key) => charge(gate, { key })));
    for (const each of accepted) {
      const waiting = await eventually(
        () => readStatus(gate, each),
        (status) => status.json()['attempts'] !== 0 && status.json()['state'] === 'waiting',
      );
      expect(waiting.json()).toMatchObject({ lastAttempt: { status: 503, reason: 'status_503' } });
      expect(Number(waiting.header('retry-after'))).toBeGreaterThanOrEqual(1);
    }
    ledger.state.mode = 'charge';
    for (const each of accepted) await untilState(gate, each, 'done');
    expect([...ledger.charges]).toEqual(expect.arrayContaining(keys.map((key) => [key, 1])));
    expect(await gate.metric('tidegate_deliveries_total{route="/v1",event="delivered"}')).toBe(3);
  });

  test('is charged once if the connection breaks after the charge, and gets the response to it', async () => {
    const ledger = await startLedger();
    ledger.state.mode = 'break';
    const gate = await startTidegate(config(ledger.url));
    const accepted = await charge(gate);
    const done = await untilState(gate, accepted, 'done');
    expect(done).toMatchObject({ attempts: 2, response: { status: 201, body: '{"charge":"k1"}' } });
    expect([...ledger.charges]).toEqual([['k1', 1]]);
  });

  test('is unknown, and not failed, if its schedule ends before its outcome is known', async () => {
    const psp = await startHttpUpstream((_n, response) => void response.destroy());
    const gate = await startTidegate(config(psp.url, { async: '{schedule: {delays: [1s]}}' }));
    const accepted = await charge(gate);
    const state = await untilState(gate, accepted, 'unknown');
    expect(state).toMatchObject({ attempts: 2, lastAttempt: { reason: 'unknown_reset' } });
    expect(await gate.metric('tidegate_deliveries_total{route="/v1",event="unknown"}')).toBe(1);
  });

  test('stays unknown if the last attempts were certainly not processed', async () => {
    const psp = await startHttpUpstream((n, response) => {
      if (n === 1) response.destroy();
      else response.writeHead(503).end();
    });
    const gate = await startTidegate(config(psp.url, { async: '{schedule: {delays: [1s]}}' }));
    expect(await untilState(gate, await charge(gate), 'unknown')).toMatchObject({ attempts: 2 });
  });

  test('has failed if no attempt was processed', async () => {
    const psp = await startHttpUpstream((_n, response) => void response.writeHead(503).end());
    const gate = await startTidegate(config(psp.url, { async: '{schedule: {delays: [1s]}}' }));
    const failed = await untilState(gate, await charge(gate), 'failed');
    expect(failed).toMatchObject({ attempts: 2, lastAttempt: { status: 503 } });
    expect(failed['response']).toBeUndefined();
  });

  test.each(['before it', 'between its attempts'])(
    'is unknown, and not failed, if the upstream has answered another request with its key %s',
    async (when) => {
      const ledger = await startLedger();
      const gate = await startTidegate(config(ledger.url, { async: '{schedule: {delays: [1s]}}' }));
      const sendNow = () => charge(gate, { headers: ['Prefer', 'return=minimal'] });
      if (when === 'before it') expect((await sendNow()).status).toBe(201);
      ledger.state.mode = 'unavailable';
      const accepted = await charge(gate);
      if (when !== 'before it') {
        await eventually(
          () => ledger.hits.length,
          (hits) => hits === 1,
        );
        ledger.state.mode = 'charge';
        expect((await sendNow()).status).toBe(201);
        ledger.state.mode = 'unavailable';
      }
      expect(await untilState(gate, accepted, 'unknown')).toMatchObject({
        lastAttempt: { status: 503, reason: 'answered_before' },
      });
      expect([...ledger.charges]).toEqual([['k1', 1]]);
    },
  );

  test('is not refused as if nothing had happened while its outcome is unknown', async () => {
    const psp = await startHttpUpstream((_n, response) => void response.destroy());
    const gate = await startTidegate(config(psp.url));
    const now = await charge(gate, { headers: ['Prefer', 'return=minimal'] });
    expect([now.status, now.header('tidegate-outcome')]).toEqual([504, 'unknown']);
    for (const changed of [{ headers: ['Tidegate-Callback', '/nowhere'] }, { body: 'x'.repeat(2 ** 21) }]) {
      const refused = await charge(gate, changed);
      expect([refused.status, refused.header('tidegate-outcome')]).toEqual([504, 'unknown']);
    }
    expect((await charge(gate, { key: 'k2', headers: ['Tidegate-Callback', '/nowhere'] })).status).toBe(400);
  });

  test('is sent again if it was removed to make room, and its client repeats it', async () => {
    const ledger = await startLedger();
    const gate = await startTidegate(`${config(ledger.url)}limits: {deliveries: 2}\n`);
    const first = await charge(gate);
    await untilState(gate, first, 'done');
    for (const key of ['k2', 'k3']) await untilState(gate, await charge(gate, { key }), 'done');
    expect((await readStatus(gate, first)).status).toBe(404);
    const again = await charge(gate);
    expect(again.json()).toMatchObject({ state: 'waiting' });
    expect(await untilState(gate, again, 'done')).toMatchObject({ response: { body: '{"charge":"k1"}' } });
    expect(ledger.charges.get('k1')).toBe(1);
  });

  test('that has failed is sent again when its client repeats it', async () => {
    const ledger = await startLedger();
    ledger.state.mode = 'unavailable';
    const gate = await startTidegate(config(ledger.url, { async: '{schedule: {delays: [1s]}}' }));
    const first = await charge(gate);
    await untilState(gate, first, 'failed');
    ledger.state.mode = 'charge';
    const second = await charge(gate);
    expect([second.status, second.header('location')]).toEqual([202, first.header('location')]);
    expect(second.json()).toMatchObject({ state: 'waiting', attempts: 0 });
    expect(await untilState(gate, first, 'done')).toMatchObject({ response: { status: 201 } });
  });

  test.each([402, 400, 404])('is done with a %i, which is the decision of the provider', async (status) => {
    const psp = await startHttpUpstream((_n, response) => void response.writeHead(status).end('no'));
    const gate = await startTidegate(config(psp.url));
    const done = await untilState(gate, await charge(gate), 'done');
    expect(done).toMatchObject({ attempts: 1, response: { status, body: 'no' } });
  });

  test('that is repeated with its key is the same write, for the same client', async () => {
    const ledger = await startLedger();
    ledger.state.mode = 'unavailable';
    const gate = await startTidegate(config(ledger.url));
    const first = await charge(gate);
    const second = await charge(gate);
    expect([second.status, second.header('location')]).toEqual([202, first.header('location')]);
    expect(second.json()).toMatchObject({ id: first.header('tidegate-delivery-id') });
    const other = await charge(gate, { client: 'another' });
    const token = await charge(gate, { headers: ['Authorization', 'Bearer another'] });
    const elsewhere = await charge(gate, { path: '/v1/refunds' });
    const locations = [first, other, token, elsewhere].map((each) => each.header('location'));
    expect(new Set(locations).size).toBe(4);
    ledger.state.mode = 'charge';
    await untilState(gate, first, 'done');
    const late = await charge(gate);
    expect([late.status, late.header('location')]).toEqual([202, first.header('location')]);
    expect(late.json()).toMatchObject({ state: 'done', response: { status: 201 } });
  });

  test.each([
    ['body', { body: '{"amount":2}' }],
    ['query', { path: '/v1/charges?x=1' }],
  ])('is rejected with 422 if its key was used with another %s', async (_what, changed) => {
    const ledger = await startLedger();
    const gate = await startTidegate(config(ledger.url));
    const first = await charge(gate);
    const other = await charge(gate, changed);
    expect([other.status, other.json()['reason'], other.header('location')]).toEqual([422, 'key_reused', undefined]);
    await untilState(gate, first, 'done');
    expect(ledger.hits).toHaveLength(1);
  });

  test('needs a key', async () => {
    const ledger = await startLedger();
    const gate = await startTidegate(config(ledger.url));
    const refused = await charge(gate, { key: '' });
    expect([refused.status, refused.json()['reason'], ledger.hits.length]).toEqual([400, 'key_missing', 0]);
  });

  test('gets a key if the upstream is configured so: each attempt has the same, and the client learns it', async () => {
    const ledger = await startLedger();
    ledger.state.mode = 'break';
    const gate = await startTidegate(config(ledger.url, { idempotency: '{ttl: 24h, generate: true}' }));
    const accepted = await charge(gate, { key: '' });
    const key = accepted.header('tidegate-idempotency-key') ?? '';
    expect(key).toMatch(/^[\da-f-]{36}$/);
    await untilState(gate, accepted, 'done');
    expect([...ledger.charges]).toEqual([[key, 1]]);
    expect(ledger.hits).toHaveLength(2);
  });

  test('may have its key in the body', async () => {
    const ledger = await startLedger();
    const gate = await startTidegate(config(ledger.url, { idempotency: '{jsonField: id, ttl: 24h}' }));
    const [first, second, without] = [
      await charge(gate, { key: '', body: '{"id":"a"}' }),
      await charge(gate, { key: '', body: '{"id":"a"}' }),
      await charge(gate, { body: '{}' }),
    ];
    expect([second.header('location'), without.status]).toEqual([first.header('location'), 400]);
    await untilState(gate, first, 'done');
  });

  test('has its response without the body if that is longer than what is kept', async () => {
    const psp = await startHttpUpstream((_n, response) => void response.writeHead(200).end('x'.repeat(5000)));
    const gate = await startTidegate(config(psp.url, { async: '{maxResponse: 4KiB}' }));
    const done = await untilState(gate, await charge(gate), 'done');
    expect(done).toMatchObject({ response: { status: 200 } });
    expect(done['response']).not.toHaveProperty('body');
  });

  test('is rejected with 413 if its body is longer than what is kept for retries', async () => {
    const ledger = await startLedger();
    const yaml = config(ledger.url).replace('retry: {attempts: 1}', 'retry: {attempts: 1, replayLimit: 1KiB}');
    const gate = await startTidegate(yaml);
    const refused = await charge(gate, { body: JSON.stringify({ text: 'x'.repeat(2000) }) });
    expect([refused.status, refused.json()['reason']]).toEqual([413, 'body_too_large']);
  });
});

describe.each(STORES)('a route with async, and %s, sends at once', (store) => {
  beforeEach(async () => {
    state = await makeState(store);
  });

  test('a write without the preference, a read with it, and a write of another route', async () => {
    const ledger = await startLedger();
    const gate = await startTidegate(config(ledger.url));
    const without = await charge(gate, { headers: ['Prefer', 'return=minimal'] });
    const read = await charge(gate, { method: 'GET', key: 'k2' });
    const other = await charge(gate, { path: '/charges', key: 'k3' });
    expect([without.status, read.status, other.status]).toEqual([201, 201, 201]);
    expect(await gate.metric('tidegate_deliveries_total{route="/v1",event="accepted"}')).toBe(0);
  });
});

describe.each(STORES)('the state of a write in %s that is over', (store) => {
  beforeEach(async () => {
    state = await makeState(store);
  });

  /** A receiver that rejects the first callback. */
  async function start(provider: string) {
    const shop = await startHttpUpstream((n, response) => response.writeHead(n === 1 ? 503 : 204).end());
    const gate = await startTidegate(`
secret: a-secret-of-the-tests-0123456789abcdef
state: ${state}
clients: {key: ["header:X-Client", ip]}
upstreams: {psp: {url: "${provider}", retry: {attempts: 1}, idempotency: {ttl: 24h}}, shop: {url: "${shop.url}", retry: {attempts: 1}}}
routes:
  - {path: /v1, upstream: psp, async: {schedule: {delays: [1s]}, callback: /callbacks}}
  - {path: /callbacks, upstream: shop, verify: {scheme: standard-webhooks, secrets: ["whsec_${Buffer.alloc(32, 2).toString('base64')}"]}, deliver: {schedule: {delays: [1s, 1s]}, sign: {secrets: ["whsec_${Buffer.alloc(32, 1).toString('base64')}"]}}}
`);
    return { gate, shop };
  }

  test('is sent to its client, signed, until that acknowledges it', async () => {
    const ledger = await startLedger();
    const { gate, shop } = await start(ledger.url);
    const accepted = await charge(gate, { headers: ['Tidegate-Callback', '/callbacks/orders/4711'] });
    expect(accepted.status).toBe(202);
    await eventually(
      () => shop.hits.length,
      (callbacks) => callbacks === 2,
    );
    const status = (await readStatus(gate, accepted)).json();
    expect(status).toMatchObject({ state: 'done', response: { status: 201, body: '{"charge":"k1"}' } });
    for (const { method, target, body, headers } of shop.hits) {
      expect([method, target]).toEqual(['POST', '/callbacks/orders/4711']);
      expect(JSON.parse(body.toString())).toEqual(status);
      expect(headers.map((name) => name.toLowerCase())).toEqual(
        expect.arrayContaining(['webhook-signature', 'webhook-id']),
      );
    }
    expect([...ledger.charges]).toEqual([['k1', 1]]);
    expect((await send(gate.url, '/callbacks', { method: 'POST', body: '{}' })).status).toBe(401);
    expect(await gate.metric('tidegate_deliveries_total{route="/callbacks",event="accepted"}')).toBe(1);
  });

  test('is sent too if it has failed, and to nobody who has not asked for it', async () => {
    const psp = await startHttpUpstream((_n, response) => void response.writeHead(503).end());
    const { gate, shop } = await start(psp.url);
    const silent = await charge(gate, { key: 'silent' });
    const asking = await charge(gate, { key: 'asking', headers: ['Tidegate-Callback', '/callbacks'] });
    for (const each of [silent, asking]) await untilState(gate, each, 'failed');
    await eventually(
      () => shop.hits.length,
      (callbacks) => callbacks === 2,
    );
    const id = asking.json()['id'];
    for (const { body } of shop.hits) expect(JSON.parse(body.toString())).toMatchObject({ id, state: 'failed' });
    expect(psp.hits.flatMap(({ headers }) => headers).some((name) => /callback/i.test(name))).toBe(false);
  });

  test('is sent to no other path: the write is rejected', async () => {
    const ledger = await startLedger();
    const { gate } = await start(ledger.url);
    for (const path of ['/v1/charges', 'http://evil.test/callbacks', '/callbacks/../v1']) {
      const rejected = await charge(gate, { headers: ['Tidegate-Callback', path] });
      expect([rejected.status, rejected.json()['reason']]).toEqual([400, 'callback_rejected']);
    }
    expect(ledger.charges.size).toBe(0);
  });
});
