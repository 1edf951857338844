/** Through accounts, the upstream sees one credential for all clients: two clients that choose the same key still make two writes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fetchExplanation } from '../../support/admin/explanations.ts';
import { atEnd } from '../../support/at-end.ts';
import { makeKeyFile } from '../../support/clients/api-keys.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { type Received, send } from '../../support/clients/send.ts';
import { refusingPort } from '../../support/free-port.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { type KeyedProvider, startKeyedProvider } from '../../support/upstreams/keyed-provider.ts';

const UUID_8 = /^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
const ONE_ACCOUNT = 'accounts: [{name: main, value: "Bearer of-main"}]';
const QUICK = 'timeout: 400ms, perTryTimeout: 400ms, retry: {attempts: 1}';

interface Settings {
  readonly idempotency?: string;
  /** Of the upstream. */
  readonly rest?: string;
  readonly routes?: string;
  readonly more?: string;
}

/** Two clients with names, and whoever has none. */
async function setUp(settings: Settings = {}) {
  const provider = await startKeyedProvider();
  const file = makeKeyFile('alice', 'bob');
  const [alice = '', bob = ''] = file.keys;
  const yaml = ({ idempotency = '{}', rest = '', routes = '[{upstream: psp}]', more = '' }: Settings): string => `
clients: {auth: {apiKeys: {file: ${file.path}}}}
upstreams: {psp: {url: "${provider.url}", ${ONE_ACCOUNT}, idempotency: ${idempotency}${rest}}}
routes: ${routes}
${more}`;
  const gate = await startTidegate(yaml(settings));
  const pay = (credential: string | undefined, sent: Payment = {}): Promise<Received> =>
    send(gate.url, sent.path ?? '/v1/charges', {
      method: 'POST',
      body: sent.body ?? '{"amount":1}',
      headers: [
        ...(credential === undefined ? [] : ['Tidegate-Key', credential]),
        ...(sent.key === '' ? [] : ['Idempotency-Key', sent.key ?? 'order-1']),
        ...(sent.headers ?? []),
      ],
    });
  return { provider, gate, alice, bob, pay, rewrite: (next: Settings) => gate.rewrite(yaml({ ...settings, ...next })) };
}

interface Payment {
  readonly key?: string | undefined;
  readonly body?: string;
  readonly path?: string;
  readonly headers?: readonly string[];
}

function idOf({ body }: Received): unknown {
  return (JSON.parse(body.toString()) as { readonly id?: unknown }).id;
}

function distinctKeys(provider: KeyedProvider): number {
  return new Set(provider.keys()).size;
}

describe('two clients that choose the same key', () => {
  test('make two charges with equal parameters, and get their own responses, also to their repeats', async () => {
    const { provider, alice, bob, pay } = await setUp();
    const first = [await pay(alice), await pay(bob)];
    expect(first.map(idOf)).toEqual(['ch_1', 'ch_2']);
    expect(first.map((each) => each.header('idempotent-replayed'))).toEqual([undefined, undefined]);
    const repeats = [await pay(alice), await pay(bob)];
    expect(repeats.map(idOf)).toEqual(['ch_1', 'ch_2']);
    expect(repeats.map((each) => each.header('idempotent-replayed'))).toEqual(['true', 'true']);
    expect([...first, ...repeats].map((each) => each.header('idempotency-key'))).toEqual(Array(4).fill('order-1'));
    expect(provider.charges).toHaveLength(2);
    expect(provider.keys()).toEqual(Array(4).fill(expect.stringMatching(UUID_8)));
    expect(distinctKeys(provider)).toBe(2);
  });

  test('do not wait for each other', async () => {
    const { provider, alice, bob, pay } = await setUp({ idempotency: '{concurrent: refuse}' });
    provider.hold(true);
    const first = pay(alice);
    await eventually(
      () => provider.received.length,
      (count) => count === 1,
    );
    const second = pay(bob);
    await eventually(
      () => provider.received.length,
      (count) => count === 2,
    );
    const repeat = await pay(alice);
    expect([repeat.status, provider.received.length]).toEqual([409, 2]);
    provider.hold(false);
    expect([idOf(await first), idOf(await second)]).toEqual(['ch_1', 'ch_2']);
  });

  test('do not get the kept response of the other', async () => {
    const { provider, alice, bob, pay } = await setUp({ idempotency: '{replayAnswers: 1h, ttl: 24h}' });
    expect(idOf(await pay(alice))).toBe('ch_1');
    expect(idOf(await pay(bob))).toBe('ch_2');
    const repeat = await pay(alice);
    expect([idOf(repeat), repeat.header('idempotency-key')]).toEqual(['ch_1', 'order-1']);
    expect(provider.received).toHaveLength(2);
  });

  test('make two charges in observe mode, with the keys that they have in enforce', async () => {
    const { provider, alice, bob, pay, rewrite } = await setUp({ more: 'mode: observe' });
    expect([idOf(await pay(alice)), idOf(await pay(bob))]).toEqual(['ch_1', 'ch_2']);
    await rewrite({ more: '' });
    expect([idOf(await pay(alice)), idOf(await pay(bob))]).toEqual(['ch_1', 'ch_2']);
    expect(distinctKeys(provider)).toBe(2);
  });

  test('share a key if each key is sent as it is', async () => {
    const { provider, alice, bob, pay } = await setUp({ idempotency: '{keyScope: shared}' });
    expect([idOf(await pay(alice)), idOf(await pay(bob))]).toEqual(['ch_1', 'ch_1']);
    expect(provider.keys()).toEqual(['order-1', 'order-1']);
  });
});

describe('a request that is refused before it claims its key', () => {
  const MALFORMED = 'Transfer-Encoding: chunked\r\n\r\nZZ\r\n';

  /** Alice's write has no known outcome. */
  async function leaveOpen(settings: Settings) {
    const set = await setUp(settings);
    set.provider.beSilent(true);
    expect((await set.pay(set.alice)).status).toBe(504);
    return set;
  }

  test('has a plain response while another client has an unresolved write with its key', async () => {
    const { gate, alice, bob } = await leaveOpen({ rest: `, ${QUICK}` });
    const refused = async (credential: string): Promise<string> => {
      const client = await openRaw(gate.url);
      client.write('POST /v1/charges HTTP/1.1\r\nHost: a\r\nIdempotency-Key: order-1\r\n');
      client.write(`Tidegate-Key: ${credential}\r\n${MALFORMED}`);
      return (await client.until('\r\n\r\n')).slice(0, 12);
    };
    expect([await refused(alice), await refused(bob)]).toEqual(['HTTP/1.1 504', 'HTTP/1.1 400']);
  });
});

test('the upstream still sees a reused key of one client as one', async () => {
  const { alice, pay } = await setUp();
  await pay(alice);
  const other = await pay(alice, { body: '{"amount":2}' });
  expect([other.status, other.body.toString()]).toEqual([400, expect.stringContaining('idempotency_error')]);
});

describe('a key header that the upstream may read in another way', () => {
  test.each([
    ['the key of another client', (used: string) => ({ key: used })],
    ['a name with an underscore', (used: string) => ({ key: '', headers: ['Idempotency_Key', used] })],
    ['a second line', (used: string) => ({ key: 'a', headers: ['Idempotency-Key', used] })],
  ])('cannot name the write of another client by %s', async (_, paymentWith) => {
    const { provider, gate, alice, bob, pay } = await setUp();
    await pay(alice);
    const [used] = provider.keys();
    const { status, header } = await pay(bob, paymentWith(String(used)));
    expect([status, provider.received.length, provider.charges.length]).toEqual([200, 2, 2]);
    const lines = provider.received[1]?.rawHeaders ?? [];
    const keys = lines.filter((_text, n) => n % 2 === 1 && /^idempotency[-_]key$/i.test(lines[n - 1] ?? ''));
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) expect(key).toMatch(UUID_8);
    expect(lines).not.toContain(used);
    // Nor does the client get a derived key, and an operator finds each.
    for (const key of keys) expect(String(header('idempotency-key'))).not.toContain(key);
    const requests = await eventually(gate.requests, ({ length }) => length === 2);
    const entry = requests.find(({ clientName }) => clientName === 'bob');
    expect(entry?.upstreamKey).toBe(keys.join(', '));
  });
});

test('clients without a name share keys that no client with a name can use', async () => {
  const { provider, alice, pay } = await setUp({
    routes: '[{path: /open, upstream: psp, auth: none}, {upstream: psp}]',
  });
  await pay(alice, { path: '/open' });
  await pay(undefined, { path: '/open' });
  await pay(alice);
  const [one, other, named] = provider.keys();
  expect(one).toBe(other);
  expect(named).not.toBe(one);
  expect(provider.keys()).toEqual(Array(3).fill(expect.stringMatching(UUID_8)));
});

test.each([
  ['clients that a header names have keys of their own', '["header:X-Client", ip]', ''],
  [
    'the first header or path names a client, also if its token identifies it',
    '[bearer, "header:X-Client", ip]',
    ', idempotency: {keyScope: client}',
  ],
])('%s', async (_, key, settings) => {
  const provider = await startKeyedProvider();
  const gate = await startTidegate(`
clients: {key: ${key}}
upstreams: {psp: {url: "${provider.url}", ${ONE_ACCOUNT}${settings}}}`);
  const ids: unknown[] = [];
  for (const [client, token] of [
    ['alice', 'a'],
    ['bob', 'b'],
    ['alice', 'refreshed'],
  ]) {
    const headers = ['X-Client', `${client}`, 'Authorization', `Bearer ${token}`, 'Idempotency-Key', 'order-1'];
    ids.push(idOf(await send(gate.url, '/', { method: 'POST', body: '{}', headers })));
  }
  expect(ids).toEqual(['ch_1', 'ch_2', 'ch_1']);
});

test('clients without a name wait for each other, whatever their tokens and bodies are', async () => {
  const provider = await startKeyedProvider();
  const gate = await startTidegate(`
clients: {key: ["header:X-Client", ip]}
upstreams: {psp: {url: "${provider.url}", ${ONE_ACCOUNT}, idempotency: {concurrent: refuse}}}`);
  const pay = (token: string): Promise<Received> => {
    const headers = ['Authorization', `Bearer ${token}`, 'Idempotency-Key', 'order-1'];
    return send(gate.url, '/', { method: 'POST', body: JSON.stringify({ token }), headers });
  };
  provider.hold(true);
  const first = pay('a');
  await eventually(
    () => provider.received.length,
    (count) => count === 1,
  );
  expect((await pay('b')).status).toBe(409);
  provider.hold(false);
  expect(idOf(await first)).toBe('ch_1');
});

test('one client that uses two accounts of its provider has a key for each', async () => {
  const { provider, alice, pay } = await setUp({ idempotency: '{account: "header:X-Account"}' });
  const ids = [];
  for (const account of ['one', 'two', 'one']) ids.push(idOf(await pay(alice, { headers: ['X-Account', account] })));
  expect(ids).toEqual(['ch_1', 'ch_2', 'ch_1']);
  expect(distinctKeys(provider)).toBe(2);
});

test('equal paths name one client, however they are escaped', async () => {
  const provider = await startKeyedProvider();
  const gate = await startTidegate(`
clients: {key: ["path:2"]}
upstreams: {psp: {url: "${provider.url}", ${ONE_ACCOUNT}}}`);
  for (const path of ['/of/alice', '/of/%61lice', '/of/bob']) {
    await send(gate.url, path, { method: 'POST', body: '{}', headers: ['Idempotency-Key', 'order-1'] });
  }
  const [alice, escaped, bob] = provider.keys();
  expect(escaped).toBe(alice);
  expect(bob).not.toBe(alice);
});

test('a client that writes its key in quotes gets it back in quotes, and the upstream gets quotes too', async () => {
  const { provider, alice, pay } = await setUp();
  const response = await pay(alice, { key: '"order-1"' });
  expect(response.header('idempotency-key')).toBe('"order-1"');
  expect(provider.keys()[0]).toMatch(/^"[\da-f-]{36}"$/);
});

test('a client repeats its write with the generated key that it was given', async () => {
  const { provider, alice, pay } = await setUp({ idempotency: '{generate: true}' });
  const first = await pay(alice, { key: '' });
  const key = first.header('tidegate-idempotency-key');
  expect(first.header('idempotency-key')).toBe(key);
  const repeat = await pay(alice, { key });
  expect([idOf(repeat), repeat.header('idempotent-replayed')]).toEqual(['ch_1', 'true']);
  expect(distinctKeys(provider)).toBe(1);
  expect(provider.keys()[0]).not.toBe(key);
});

describe('a write whose outcome is unknown', () => {
  test.each([
    ['client', 'shared'],
    ['shared', 'client'],
  ])('keeps the key that it was sent with when a reload changes keyScope from %s to %s', async (before, after) => {
    const { provider, alice, bob, pay, rewrite } = await setUp({
      idempotency: `{keyScope: ${before}}`,
      rest: `, ${QUICK}`,
    });
    provider.beSilent(true);
    expect((await pay(alice)).header('tidegate-outcome')).toBe('unknown');
    provider.beSilent(false);
    await rewrite({ idempotency: `{keyScope: ${after}}` });
    const repeat = await pay(alice);
    expect([idOf(repeat), repeat.header('idempotent-replayed'), repeat.header('idempotency-key')]).toEqual([
      'ch_1',
      'true',
      'order-1',
    ]);
    expect(idOf(await pay(alice))).toBe('ch_1');
    expect(distinctKeys(provider)).toBe(1);
    const before2 = provider.charges.length;
    await pay(bob, { key: 'order-2' });
    expect(provider.charges).toHaveLength(before2 + 1);
  });

  test('is found by the key of the client when its repeat is refused on arrival', async () => {
    const { provider, alice, pay } = await setUp({ rest: `, ${QUICK}` });
    provider.beSilent(true);
    await pay(alice);
    const refused = await pay(alice, { headers: ['Expect', 'something-else'] });
    expect([refused.status, refused.header('tidegate-outcome')]).toEqual([504, 'unknown']);
    const other = await pay(alice, { key: 'order-2', headers: ['Expect', 'something-else'] });
    expect([other.status, other.header('tidegate-outcome')]).toEqual([417, undefined]);
  });
});

test('an operator finds the key that the upstream got by the key of the client', async () => {
  const { provider, gate, alice, bob, pay } = await setUp();
  const first = await pay(alice);
  await pay(bob);
  const [sent, sentForBob] = provider.keys();
  const [entry] = await eventually(gate.requests, ({ length }) => length === 2);
  expect(entry).toMatchObject({ clientName: 'alice', upstreamKey: sent });
  const explanation = JSON.stringify(await fetchExplanation(gate, first.header('tidegate-request-id')));
  expect(explanation).toContain(`idempotency key: in Idempotency-Key, sent as ${sent}`);
  const { keys } = (await (await fetch(`${gate.adminUrl}/api/keys?key=order-1&order=oldest`)).json()) as {
    readonly keys: readonly { readonly upstreamKey: string; readonly endpoint: string }[];
  };
  expect(keys.map(({ upstreamKey }) => upstreamKey)).toEqual([sent, sentForBob]);
  expect(keys[0]?.endpoint).toBe(`main@${new URL(provider.url).host}`);
});

test('a write that is sent later has the key of its client, also after a reload that names clients by another header', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-keys-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const provider = await startKeyedProvider();
  const yaml = (header: string, url: string): string => `
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(folder, 'state.db')}}
clients: {key: ["header:${header}", ip]}
upstreams: {psp: {url: "${url}", ${ONE_ACCOUNT}, idempotency: {ttl: 24h, generate: true}}}
routes: [{upstream: psp, async: {schedule: {delays: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s]}}}]`;
  const gate = await startTidegate(yaml('X-Client', `http://127.0.0.1:${await refusingPort()}`));
  const pay = (client: string, key: string | undefined, more: readonly string[] = []): Promise<Received> => {
    const keyed = key === undefined ? [] : ['Idempotency-Key', key];
    const headers = ['X-Client', client, 'X-Shop', 'one', ...keyed, ...more];
    return send(gate.url, '/v1/charges', { method: 'POST', body: '{}', headers });
  };
  const later = ['Prefer', 'respond-async'];
  const accepted = [await pay('alice', 'order-1', later), await pay('bob', 'order-1', later)];
  expect(accepted.map(({ status }) => status)).toEqual([202, 202]);
  const generated = (await pay('alice', undefined, later)).header('tidegate-idempotency-key');
  await gate.rewrite(yaml('X-Shop', provider.url));
  await eventually(
    () => provider.charges.length,
    (count) => count === 3,
  );
  await gate.rewrite(yaml('X-Client', provider.url));
  const repeats = [await pay('alice', 'order-1'), await pay('bob', 'order-1'), await pay('alice', generated)];
  expect(repeats.map((each) => each.header('idempotent-replayed'))).toEqual(['true', 'true', 'true']);
  expect(new Set(repeats.map(idOf)).size).toBe(3);
  expect(provider.charges).toHaveLength(3);
});

test('two clients with one token and one key get a write each that is sent later', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-keys-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const provider = await startKeyedProvider();
  const gate = await startTidegate(`
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(folder, 'state.db')}}
clients: {key: [bearer, "header:X-Client", ip]}
upstreams: {psp: {url: "${provider.url}", ${ONE_ACCOUNT}}}
routes: [{upstream: psp, async: {}}]`);
  const pay = (client: string) =>
    send(gate.url, '/v1/charges', {
      method: 'POST',
      body: '{}',
      headers: [
        ...['Authorization', 'Bearer platform', 'X-Client', client],
        ...['Idempotency-Key', 'order-1', 'Prefer', 'respond-async'],
      ],
    });
  const [alice, bob, again] = [await pay('alice'), await pay('bob'), await pay('alice')];
  expect([alice, bob, again].map(({ status }) => status)).toEqual([202, 202, 202]);
  expect(bob.header('location')).not.toBe(alice.header('location'));
  expect(again.header('location')).toBe(alice.header('location'));
  await eventually(
    () => provider.charges.length,
    (count) => count === 2,
  );
});
