/** The keys that replicas share over Redis in the admin API: each replica lists, finds and forgets them. */
import { expect, test } from 'vitest';
import { runKeys } from '../../../src/cli/keys/keys-command.ts';
import { TOKEN } from '../../support/admin/admin-api.ts';
import { startTill } from '../../support/admin/till.ts';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { REDIS_ENDED, startRedis } from '../../support/redis/redis-server.ts';

const PREFIX = 'a*[b]';

/** Two replicas. */
async function setUp() {
  const redis = await startRedis();
  const { upstream, held, start } = await startTill();
  const state = `state: {store: redis, url: "${redis.url}", prefix: "${PREFIX}", timeout: 240ms}`;
  const [one, other] = [await start(state), await start(state)];
  /** Ends of requests are stored after their responses. */
  const settled = (...states: readonly string[]) =>
    eventually(
      () => other.list('?order=oldest'),
      ({ keys }) => keys.map(({ state }) => state).join() === states.join(),
    );
  return { redis, upstream, held, one, other, settled };
}

test('lists the same keys at each replica, by upstream, state, key and id, without keys and credentials', async () => {
  const { redis, upstream, held, one, other, settled } = await setUp();
  const nothing = { matching: 0, truncated: false, keys: [] };
  expect(await one.list()).toEqual({ ...nothing, total: 0 });
  expect(await one.list('?state=open')).toEqual({ ...nothing, total: null });
  expect((await one.pay('paid-1')).status).toBe(200);
  expect((await other.pay('lost-1', '/pay', ['Authorization', 'Bearer secret-credential'])).status).toBe(504);
  expect((await one.pay('lost-1', '/bank/pay')).status).toBe(504);
  const pending = one.pay('held-1');
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  // Another installation in the same Redis, and something that is none of these.
  await redis.client().set('axb:{till/keys}:k3:name:00', 'x');
  await redis.client().set(`${PREFIX}:{till/keys}:k1:name:00`, 'x');

  await settled('answered', 'unresolved', 'unresolved', 'in_progress');
  const endpoint = new URL(upstream.url).host;
  const known = { endpoint, requests: 0, responses: 0, finalFor: 0 };
  const all = await one.list();
  expect(all).toMatchObject({
    ...{ total: 4, matching: 4, truncated: false },
    keys: [
      { ...known, upstream: 'till', state: 'in_progress', requests: 1 },
      { ...known, upstream: 'bank', state: 'unresolved' },
      { ...known, upstream: 'till', state: 'unresolved' },
      { ...known, upstream: 'till', state: 'answered', finalFor: 1 },
    ],
  });
  expect(await other.list()).toEqual(all);
  expect(JSON.stringify(all)).not.toMatch(/paid-1|lost-1|held-1|secret/);
  for (const { firstSentAt } of all.keys) {
    expect(Math.abs(Date.parse(firstSentAt ?? '') - Date.now())).toBeLessThan(60_000);
  }
  const [inProgress, atBank, lost, paid] = all.keys;
  for (const { list } of [one, other]) {
    expect(await list('?upstream=bank')).toMatchObject({ total: null, matching: 1, keys: [atBank] });
    expect((await list('?upstream=b*')).keys).toEqual([]);
    expect((await list('?state=open&order=oldest')).keys).toEqual([lost, atBank, inProgress]);
    expect((await list('?state=in_progress')).keys).toEqual([inProgress]);
    expect((await list('?state=answered')).keys).toEqual([paid]);
    expect((await list('?state=unresolved&upstream=till')).keys).toEqual([lost]);
    expect(await list('?state=unresolved&limit=1')).toEqual({
      ...{ total: null, matching: 2, truncated: false },
      keys: [atBank],
    });
    expect((await list('?key=lost-1')).keys).toEqual([atBank, lost]);
    expect((await list('?key=lost-1&upstream=till')).keys).toEqual([lost]);
    expect((await list('?key=lost')).keys).toEqual([]);
    expect((await list(`?id=${paid?.id.slice(0, 9).toUpperCase()}`)).keys).toEqual([paid]);
    expect((await list(`?id=${lost?.id}&state=answered`)).keys).toEqual([]);
    expect((await list('?id=paid-1')).keys).toEqual([]);
  }
  expect((await other.api.get(`/api/keys/${paid?.id.slice(0, 8)}`)).json()).toEqual(paid);
  expect((await other.api.get('/api/keys/0123456789abcdef')).status).toBe(404);
  expect((await other.api.get('/api/keys/paid')).status).toBe(404);
  // The log line of each request has the id of its write.
  held[0]?.end('paid');
  expect((await pending).status).toBe(200);
  const logged = await eventually(
    () => [...one.gate.requests(), ...other.gate.requests()],
    ({ length }) => length === 4,
  );
  expect(new Set(logged.map(({ write }) => write))).toEqual(new Set(all.keys.map(({ id }) => id)));
  const stats = await redis.client().info('commandstats');
  expect(stats).toContain('cmdstat_scan:');
  expect(stats).not.toContain('cmdstat_keys:');
});

test('forgets a key at all replicas, so that its next request is a new write', async () => {
  const { redis, upstream, one, other, settled } = await setUp();
  await one.pay('lost-1');
  await one.pay('paid-1');
  await settled('unresolved', 'answered');
  const [row] = (await other.list('?key=lost-1')).keys;
  const path = `/api/keys/${row?.id}`;
  expect([await one.outcome('lost-1'), await other.outcome('lost-1')]).toEqual(['unknown', 'unknown']);
  expect((await send(other.gate.adminUrl ?? '', path, { method: 'DELETE' })).status).toBe(401);
  const forgotten = await other.api.delete(path);
  expect([forgotten.status, forgotten.json()]).toEqual([
    200,
    {
      ...row,
      notes: ['A request with this key is sent as a new write, whether or not the forgotten one took effect.'],
    },
  ]);
  for (const again of [await one.api.delete(path), await one.api.get(path)]) {
    expect([again.status, again.json()['detail']]).toEqual([404, 'No such key.']);
  }
  expect([await one.outcome('lost-1'), await other.outcome('lost-1')]).toEqual([undefined, undefined]);
  expect((await one.list()).total).toBe(1);
  expect((await one.list('?state=open')).keys).toEqual([]);
  const operator = (gate: typeof one.gate) => gate.log().filter(({ msg }) => msg === 'operator action');
  expect(operator(one.gate)).toEqual([]);
  expect(operator(other.gate)).toMatchObject([{ action: 'forget', upstream: 'till', write: row?.id, by: '127.0.0.1' }]);
  expect(upstream.hits.length).toBe(2);
  // It is stored, listed and forgotten like any other from then on.
  expect((await one.pay('lost-1')).status).toBe(504);
  await eventually(
    async () => (await other.list('?state=unresolved')).keys,
    ([found]) => found?.id === row?.id,
  );
  expect((await one.api.delete(path)).status).toBe(200);
  expect((await other.list('?state=unresolved')).keys).toEqual([]);
  expect(await redis.client().keys('*:open')).toEqual([]);
});

test('does not forget a key that a request uses at another replica, and says by what', async () => {
  const { held, one, other, settled } = await setUp();
  const pending = one.pay('held-1');
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  const [row] = (await other.list('?state=in_progress')).keys;
  for (const { api, gate } of [one, other]) {
    const refused = await api.delete(`/api/keys/${row?.id}`);
    expect([refused.status, refused.json()['detail']]).toEqual([
      409,
      'The key is in use: 1 request has it. It can be forgotten after that.',
    ]);
    expect(gate.log().filter(({ msg }) => msg === 'operator action')).toEqual([]);
  }
  expect(await other.outcome('held-1')).toBe('unknown');
  held[0]?.end('paid');
  expect((await pending).status).toBe(200);
  await settled('answered');
  expect((await other.api.delete(`/api/keys/${row?.id}`)).status).toBe(200);
  expect((await one.list()).total).toBe(0);
});

test('a response that is being sent keeps its key in use', async () => {
  const { held, one, other, settled } = await setUp();
  const pending = one.pay('held-1');
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  held[0]?.writeHead(200);
  held[0]?.write('pa');
  const [row] = (
    await eventually(
      () => other.list('?state=open'),
      ({ keys }) => keys[0]?.responses === 1,
    )
  ).keys;
  expect(row).toMatchObject({ state: 'in_progress', requests: 0, finalFor: 1 });
  const refused = await other.api.delete(`/api/keys/${row?.id}`);
  expect([refused.status, refused.json()['detail']]).toEqual([
    409,
    'The key is in use: 1 response is being sent. It can be forgotten after that.',
  ]);
  held[0]?.end('id');
  expect((await pending).status).toBe(200);
  await settled('answered');
  expect((await other.list('?state=open')).keys).toEqual([]);
});

test('names the writes of two credentials apart, and forgets one of them', async () => {
  const { one, other, settled } = await setUp();
  for (const [credential, body] of [
    ['alice', 'one'],
    ['bob', 'two'],
  ] as const) {
    const headers = ['Idempotency-Key', 'order', 'Authorization', credential];
    await send(one.gate.url, '/pay', { method: 'POST', body, headers });
  }
  await settled('answered', 'answered');
  const ids = (await other.list()).keys.map(({ id }) => id);
  expect(ids.map((id) => /^[0-9a-f]{16}-[0-9a-f]{8}$/.test(id))).toEqual([true, true]);
  const ambiguous = await other.api.delete(`/api/keys/${ids[0]?.slice(0, 16)}`);
  expect([ambiguous.status, ambiguous.json()['detail']]).toEqual([
    409,
    expect.stringMatching(/^Several keys have this id\. Choose one of \w{16}-\w{8}, \w{16}-\w{8}\.$/),
  ]);
  expect((await other.api.delete(`/api/keys/${ids[0]}`)).json()).toMatchObject({ id: ids[0], state: 'answered' });
  expect(await one.list()).toMatchObject({ total: 1, keys: [{ id: ids[1]?.slice(0, 16), state: 'answered' }] });
});

test.each(['ended', 'frozen'] as const)('says that Redis does not respond, with the cause: %s', async (how) => {
  const { redis, one, settled } = await setUp();
  await one.pay('paid-1');
  const [row] = (await settled('answered')).keys;
  if (how === 'ended') await redis.kill();
  else redis.freeze();
  const path = `/api/keys/${row?.id}`;
  const cause = how === 'ended' ? REDIS_ENDED : 'no response within 240 ms';
  const problems = [await one.api.get('/api/keys'), await one.api.get(path), await one.api.delete(path)];
  for (const { status, json } of problems) {
    expect([status, json()]).toMatchObject([
      503,
      {
        title: 'Service Unavailable',
        detail: expect.stringMatching(
          new RegExp(`^Redis, which has the keys of all replicas, does not respond: ${cause}\\.$`),
        ) as unknown,
      },
    ]);
  }
  if (how === 'ended') await redis.restart();
  else redis.thaw();
  await eventually(
    async () => (await one.api.get('/api/keys')).status,
    (status) => status === 200,
  );
  expect((await one.list()).total).toBe(how === 'ended' ? 0 : 1);
});

test('finds open keys among more names than one request reads, and says that others may be missing', async () => {
  const { redis, one, other, settled } = await setUp();
  await one.pay('paid-1');
  await one.pay('lost-1');
  await settled('answered', 'unresolved');
  const [open, answered] = (await one.list()).keys;
  const client = redis.client();
  const [stored = ''] = await client.keys(`*name:${answered?.id}*`);
  const state = await client.hgetall(stored);
  // The names of one key at many paths end alike.
  const [base, ending] = [stored.slice(0, -48), stored.slice(-16)];
  const pipeline = client.pipeline();
  for (let i = 0; i < 20_000; i += 1) pipeline.hset(`${base}${i.toString(16).padStart(32, '0')}${ending}`, state);
  await pipeline.exec();

  const all = await other.list('?limit=500&order=oldest');
  // How many it reads in its time is for redis-key-inspection.test.ts, whose bounds are small.
  expect(all).toMatchObject({ total: null, truncated: true });
  expect(all.matching).toBeGreaterThanOrEqual(500);
  expect(all.keys).toHaveLength(500);
  expect(await other.list('?state=open')).toEqual({ total: null, matching: 1, truncated: false, keys: [open] });
  expect((await other.api.get(`/api/keys/${answered?.id}`)).json()).toEqual(answered);

  const command = { admin: other.gate.adminUrl, token: TOKEN, json: false };
  // On a busy machine, Redis may respond too late to one of many steps.
  const run = (action: Parameters<typeof runKeys>[0]['action']) =>
    eventually(
      () => runKeys({ ...command, action }),
      (result) => result.kind === 'done' || !result.message.includes('does not respond'),
    );
  const list = await run({ name: 'list', query: { key: 'paid-1', limit: '1' } });
  expect(list).toMatchObject({
    kind: 'done',
    text: expect.stringMatching(/\nand \d+ more\nRedis has more keys/) as string,
  });
  const which = { by: 'key', key: 'paid-1', upstream: undefined } as const;
  expect(await run({ name: 'forget', which })).toEqual({
    ...{ kind: 'failed', exitCode: 1 },
    message: 'Redis has more keys than one request searches, and others may have this key; forget one by its id',
  });
  const none = { by: 'key', key: 'lost-1', upstream: 'bank' } as const;
  expect(await run({ name: 'show', which: none })).toMatchObject({
    message: 'no request with this key at bank is known',
  });
  expect((await other.api.delete(`/api/keys/${open?.id}`)).status).toBe(200);
});
