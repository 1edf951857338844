/** The keys of writes in the admin API: listed, found and forgotten. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { KeyRow } from '../../../src/admin/api/key-schemas.ts';
import { TOKEN } from '../../support/admin/admin-api.ts';
import { startTill } from '../../support/admin/till.ts';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

test('lists keys by upstream, state and key, without keys and credentials', async () => {
  const { upstream, held, start } = await startTill();
  const { gate, pay, list } = await start();
  expect(await list()).toEqual({ total: 0, matching: 0, truncated: false, keys: [] });
  expect((await pay('paid-1')).status).toBe(200);
  expect((await pay('lost-1', '/pay', ['Authorization', 'Bearer secret-credential'])).status).toBe(504);
  expect((await pay('lost-1', '/bank/pay')).status).toBe(504);
  const pending = pay('held-1');
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  const endpoint = new URL(upstream.url).host;
  const known = { endpoint, requests: 0, responses: 0, finalFor: 0 };
  const all = await list();
  expect(all).toMatchObject({
    ...{ total: 4, matching: 4, truncated: false },
    keys: [
      { ...known, upstream: 'till', state: 'in_progress', requests: 1 },
      { ...known, upstream: 'bank', state: 'unresolved' },
      { ...known, upstream: 'till', state: 'unresolved' },
      { ...known, upstream: 'till', state: 'answered', finalFor: 1 },
    ],
  });
  expect(JSON.stringify(all)).not.toMatch(/paid-1|lost-1|held-1|secret/);
  for (const { firstSentAt } of all.keys) {
    expect(Math.abs(Date.parse(firstSentAt ?? '') - Date.now())).toBeLessThan(60_000);
  }
  const [inProgress, atBank, lost, paid] = all.keys;
  expect((await list('?upstream=bank')).keys).toEqual([atBank]);
  expect((await list('?state=open&order=oldest')).keys).toEqual([lost, atBank, inProgress]);
  expect(await list('?state=unresolved&limit=1')).toEqual({
    ...{ total: 4, matching: 2, truncated: false },
    keys: [atBank],
  });
  expect((await list('?key=lost-1')).keys).toEqual([atBank, lost]);
  expect((await list('?key=lost-1&upstream=till')).keys).toEqual([lost]);
  expect((await list(`?id=${paid?.id.slice(0, 8)}`)).keys).toEqual([paid]);
  expect((await list('?id=paid-1')).keys).toEqual([]);
  held[0]?.end('paid');
  expect((await pending).status).toBe(200);
  // The log line of each request has the id of its write.
  const logged = await eventually(gate.requests, ({ length }) => length === 4);
  expect(new Set(logged.map(({ write }) => write))).toEqual(new Set(all.keys.map(({ id }) => id)));
  expect((await send(gate.url, '/pay')).status).toBe(200);
  expect((await eventually(gate.requests, ({ length }) => length === 5)).at(-1)).not.toHaveProperty('write');
});

test('forgets a key, so that its next request is a new write, and reports who did it', async () => {
  const { upstream, start } = await startTill();
  const { gate, api, pay, list, outcome } = await start();
  await pay('lost-1');
  const [row] = (await list('?key=lost-1')).keys;
  const path = `/api/keys/${row?.id}`;
  expect((await api.get(path)).json()).toEqual(row);
  expect((await send(gate.adminUrl ?? '', path, { method: 'DELETE' })).status).toBe(401);
  const foreign = ['Authorization', `Bearer ${TOKEN}`, 'Origin', 'https://elsewhere.example'];
  expect((await send(gate.adminUrl ?? '', path, { method: 'DELETE', headers: foreign })).status).toBe(403);
  expect((await api.get(path)).status).toBe(200);
  expect(await outcome('lost-1')).toBe('unknown');
  const forgotten = await api.delete(path);
  expect(forgotten.status).toBe(200);
  expect(forgotten.json()).toEqual({
    ...row,
    notes: ['A request with this key is sent as a new write, whether or not the forgotten one took effect.'],
  });
  for (const again of [await api.delete(path), await api.get(path)]) {
    expect([again.status, again.json()['detail']]).toEqual([404, 'No such key.']);
  }
  expect(await outcome('lost-1')).toBeUndefined();
  expect((await list()).total).toBe(0);
  expect(upstream.hits.length).toBe(1);
  expect(gate.log().filter(({ msg }) => msg === 'operator action')).toMatchObject([
    {
      ...{ action: 'forget', upstream: 'till', write: row?.id, by: '127.0.0.1' },
      ...{ before: { state: 'unresolved' }, after: { state: 'forgotten' } },
    },
  ]);
  const { events } = (await api.get('/api/timeline')).json() as { events: object[] };
  expect(events).toMatchObject([
    { kind: 'forget', upstream: 'till', text: `idempotency key ${row?.id} forgotten, by 127.0.0.1` },
  ]);
});

test('does not forget a key in use, and says by what', async () => {
  const { held, start } = await startTill();
  const { gate, api, pay, list } = await start();
  const pending = pay('held-1');
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  const [row] = (await list()).keys;
  const refused = await api.delete(`/api/keys/${row?.id}`);
  expect([refused.status, refused.json()['detail']]).toEqual([
    409,
    'The key is in use: 1 request has it. It can be forgotten after that.',
  ]);
  expect(gate.log().filter(({ msg }) => msg === 'operator action')).toEqual([]);
  held[0]?.end('paid');
  await pending;
  await eventually(
    async () => (await list('?state=answered')).matching,
    (count) => count === 1,
  );
  expect((await api.delete(`/api/keys/${row?.id}`)).status).toBe(200);
});

test('rejects unclear ids, unknown parameters and other methods', async () => {
  const { start } = await startTill();
  const { gate, api, pay, list } = await start();
  const bodies = [
    ['alice', 'one'],
    ['bob', 'two'],
  ] as const;
  for (const [credential, body] of bodies) {
    const headers = ['Idempotency-Key', 'order', 'Authorization', credential];
    await send(gate.url, '/pay', { method: 'POST', body, headers });
  }
  const ids = (await list()).keys.map(({ id }) => id);
  expect(ids.map((id) => /^[0-9a-f]{16}-[0-9a-f]{8}$/.test(id))).toEqual([true, true]);
  const ambiguous = await api.delete(`/api/keys/${ids[0]?.slice(0, 16)}`);
  expect([ambiguous.status, ambiguous.json()['detail']]).toEqual([
    409,
    `Several keys have this id. Choose one of ${ids.join(', ')}.`,
  ]);
  expect((await api.delete(`/api/keys/${ids[0]}`)).status).toBe(200);
  expect((await api.get(`/api/keys/${ids[0]?.slice(0, 16)}`)).json()).toMatchObject({ id: ids[1]?.slice(0, 16) });
  for (const [target, problem] of [
    ['?state=lost', /^state: /],
    ['?limit=501', /^limit: expected 1 to 500/],
    ['?cursor=x', /^unknown parameter 'cursor'/],
  ] as const) {
    const { status, json } = await api.get(`/api/keys${target}`);
    expect(status).toBe(400);
    expect(json()['detail']).toMatch(problem);
  }
  await pay('x');
  for (const [path, allow] of [
    ['/api/keys', 'GET, HEAD'],
    [`/api/keys/${ids[1]}`, 'GET, HEAD, DELETE'],
  ] as const) {
    const answer = await api.post(path);
    expect([answer.status, answer.header('allow')]).toEqual([405, allow]);
  }
});

test('forgets a key in the database before the response, which a restart shows', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-keys-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { start } = await startTill();
  const state = `state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: normal}`;
  const first = await start(state);
  for (const key of ['lost-1', 'lost-2', 'paid-1', 'paid-2']) await first.pay(key);
  const rows = 'tidegate_state_writes';
  await eventually(
    () => first.gate.metric(`${rows}{state="answered"}`),
    (count) => count === 2,
  );
  expect(await first.gate.metric(`${rows}{state="unresolved"}`)).toBe(2);
  const before = (await first.list('?order=oldest')).keys;
  const forget = async (key: string) => {
    const [row] = (await first.list(`?key=${key}`)).keys;
    expect((await first.api.delete(`/api/keys/${row?.id}`)).status).toBe(200);
  };
  await forget('lost-1');
  await forget('paid-1');
  expect([
    await first.gate.metric(`${rows}{state="unresolved"}`),
    await first.gate.metric(`${rows}{state="answered"}`),
    await first.gate.metric('tidegate_state_commit_failures_total'),
  ]).toEqual([1, 1, 0]);
  expect(await first.gate.metric('tidegate_state_commit_duration_seconds_count')).toBeGreaterThan(4);
  await first.gate.close();
  const second = await start(state);
  const after = (await second.list('?order=oldest')).keys;
  const kept = before.filter((_, i) => i % 2 === 1);
  const fields = ({ id, state, endpoint, finalFor }: KeyRow) => [id, state, endpoint, finalFor];
  expect(after.map(fields)).toEqual(kept.map(fields));
  expect((await second.list('?key=lost-2')).keys).toMatchObject([{ state: 'unresolved' }]);
  expect(await second.gate.metric(`${rows}{state="unresolved"}`)).toBe(1);
});
