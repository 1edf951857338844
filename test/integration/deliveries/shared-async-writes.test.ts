/** Replicas that accept and send writes of one Redis, over real sockets. */
import { expect, test } from 'vitest';
import { type Received, send } from '../../support/clients/send.ts';
import { startLedger } from '../../support/deliveries/ledger-upstream.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';

async function startReplicas() {
  const redis = await startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } });
  const ledger = await startLedger();
  const start = () =>
    startTidegate(`
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: redis, url: "${redis.url}", timeout: 240ms}
clients: {key: ["header:X-Client", ip]}
upstreams: {psp: {url: "${ledger.url}", retry: {attempts: 1}, idempotency: {ttl: 24h}}}
routes: [{path: /v1, upstream: psp, async: {schedule: {delays: [1s, 1s, 1s, 1s, 1s]}}}]
`);
  return { redis, ledger, one: await start(), other: await start() };
}

/** On a busy machine, Redis may respond too late to a request: its client sends it again. */
function untilKeyStored(sendIt: () => Promise<Received>): Promise<Received> {
  return eventually(sendIt, ({ status, body }) => status !== 503 || !body.includes('key_store_lost'));
}

function charge(gate: Tidegate, key: string, body = '{}', prefer = 'respond-async'): Promise<Received> {
  const headers = ['X-Client', 'shop', 'Idempotency-Key', key, 'Prefer', prefer];
  return untilKeyStored(() => send(gate.url, '/v1/charges', { method: 'POST', headers, body }));
}

function readStatus(gate: Tidegate, { header }: Received, client = 'shop'): Promise<Received> {
  return send(gate.url, header('location') ?? '', { headers: ['X-Client', client] });
}

function untilState(gate: Tidegate, accepted: Received, state: string): Promise<Record<string, unknown>> {
  return eventually(
    async () => (await readStatus(gate, accepted)).json(),
    (seen) => seen['state'] === state,
  );
}

test('a write that its client repeats at another replica is the same write, and is sent once', async () => {
  const { ledger, one, other } = await startReplicas();
  const first = await charge(one, 'k1');
  const second = await charge(other, 'k1');
  expect([first.status, second.status, second.header('location')]).toEqual([202, 202, first.header('location')]);
  const reused = await charge(other, 'k1', '{"amount":2}');
  expect([reused.status, reused.json()['reason']]).toEqual([422, 'key_reused']);
  const done = await untilState(other, first, 'done');
  expect(done).toMatchObject({ attempts: 1, response: { status: 201, body: '{"charge":"k1"}' } });
  expect((await charge(other, 'k1')).json()).toEqual(done);
  expect([ledger.hits.length, [...ledger.charges]]).toEqual([1, [['k1', 1]]]);
});

test('each replica shows the state of a write, and its response, to its client only', async () => {
  const { one, other } = await startReplicas();
  const accepted = await charge(one, 'k1');
  const done = await untilState(one, accepted, 'done');
  expect((await readStatus(other, accepted)).json()).toEqual(done);
  for (const gate of [one, other]) expect((await readStatus(gate, accepted, 'another')).status).toBe(404);
});

test('a write is unknown, and not failed, if another replica has sent a request with its key that was answered', async () => {
  const { ledger, one, other } = await startReplicas();
  expect((await charge(other, 'k1', '{}', 'return=minimal')).status).toBe(201);
  ledger.state.mode = 'unavailable';
  const unknown = await untilState(other, await charge(one, 'k1'), 'unknown');
  expect(unknown).toMatchObject({ lastAttempt: { status: 503, reason: 'answered_before' } });
  expect([...ledger.charges]).toEqual([['k1', 1]]);
});

test('while Redis is away a write may be stored or not, and its client repeats it when Redis is back', async () => {
  const { redis, ledger, one, other } = await startReplicas();
  ledger.state.mode = 'unavailable';
  const first = await charge(one, 'k1');
  await redis.kill();
  const refused = await charge(one, 'k2');
  expect([refused.json()['reason'], refused.header('location')]).toEqual(['deliveries_unavailable', undefined]);
  expect((await readStatus(one, first)).status).toBe(503);
  await redis.restart();
  ledger.state.mode = 'charge';
  const [again, second] = await Promise.all(
    ['k1', 'k2'].map((key) =>
      eventually(
        () => charge(other, key),
        ({ status }) => status === 202,
      ),
    ),
  );
  expect(again?.header('location')).toBe(first.header('location'));
  for (const accepted of [again, second]) expect(accepted && (await untilState(one, accepted, 'done'))).toBeDefined();
  expect(ledger.charges.size).toBe(2);
});
