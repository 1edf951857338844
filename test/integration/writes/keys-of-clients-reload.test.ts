/** A write keeps the key that it was sent with, whatever a reload changes: `keyScope`, what names clients, or the credential header. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { type Received, send } from '../../support/clients/send.ts';
import { refusingPort } from '../../support/free-port.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startKeyedProvider } from '../../support/upstreams/keyed-provider.ts';

const QUICK = 'timeout: 400ms, perTryTimeout: 400ms, retry: {attempts: 1}';
const BY_NAME = '["header:X-Client", ip]';

const ONE_ACCOUNT = 'accounts: [{name: main, value: "Bearer of-main"}],';

interface Settings {
  /** `clients.key`. */
  readonly names?: string;
  readonly idempotency?: string;
  readonly credentialHeader?: string;
  readonly routes?: string;
  readonly url?: string;
  readonly accounts?: string;
  /** An outcome is unknown after 400 ms. */
  readonly rest?: string;
}

interface Payment {
  readonly key?: string;
  readonly body?: string;
  readonly path?: string;
  readonly headers?: readonly string[];
}

async function setUp(settings: Settings) {
  const provider = await startKeyedProvider();
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-keys-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const yaml = ({
    names = '[ip]',
    idempotency = 'ttl: 24h',
    credentialHeader = 'Authorization',
    routes = '{upstream: psp}',
    url = provider.url,
    accounts = ONE_ACCOUNT,
    rest = QUICK,
  }: Settings): string => `
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: normal}
clients: {key: ${names}}
upstreams:
  psp:
    {url: "${url}", ${accounts} idempotency: {${idempotency}}, rateLimit: {credentialHeader: ${credentialHeader}}, ${rest}}
routes: [${routes}]`;
  const gate = await startTidegate(yaml(settings));
  const pay = (client: string, { key = 'order-1', body = '{"amount":1}', path, headers = [] }: Payment = {}) =>
    send(gate.url, path ?? '/v1/charges', {
      method: 'POST',
      body,
      headers: ['X-Client', client, 'X-Shop', 'one', 'Idempotency-Key', key, ...headers],
    });
  return { provider, gate, pay, reload: (next: Settings) => gate.rewrite(yaml({ ...settings, ...next })) };
}

function idOf({ body }: Received): unknown {
  return (JSON.parse(body.toString()) as { readonly id?: unknown }).id;
}

function resultOf(response: Received): unknown[] {
  return [response.status, response.header('tidegate-outcome')];
}

function reasonOf({ body }: Received): unknown {
  return (JSON.parse(body.toString()) as { readonly reason?: unknown }).reason;
}

/** Of a delivery, as its client reads it. */
async function stateAt(location: string): Promise<string> {
  const response = await fetch(location, { headers: { 'X-Client': 'alice', 'X-Shop': 'one' } });
  return response.text();
}

const UNKNOWN = [504, 'unknown'];

describe('a write that is sent later', () => {
  const ROUTES = '{upstream: psp, async: {schedule: {delays: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s]}}}';
  const LATER = { headers: ['Prefer', 'respond-async'] };

  test.each([
    ['names clients', { names: '[ip]' }, { names: BY_NAME }],
    ['names them no more', { names: BY_NAME }, { names: '[ip]' }],
    ['names them by another header', { names: BY_NAME }, { names: '["header:X-Shop", ip]' }],
    [
      'changes keyScope to client',
      { names: BY_NAME, idempotency: 'keyScope: shared' },
      { idempotency: 'keyScope: client' },
    ],
    [
      'changes keyScope to shared',
      { names: BY_NAME, idempotency: 'keyScope: client' },
      { idempotency: 'keyScope: shared' },
    ],
  ])('has one key in all attempts when a reload %s', async (_, before, after) => {
    const { provider, gate, pay, reload } = await setUp({ routes: ROUTES, ...before });
    provider.beSilent(true);
    const accepted = await pay('alice', LATER);
    expect(accepted.status).toBe(202);
    await eventually(
      () => provider.received.length,
      (count) => count > 0,
    );
    await reload(after);
    provider.beSilent(false);
    const location = `${gate.url}${accepted.header('location')}`;
    const end = await eventually(
      () => stateAt(location),
      (text) => provider.received.length > 1 && !text.includes('"waiting"') && !text.includes('"sending"'),
    );
    expect(end).not.toContain('unknown');
    expect(provider.charges).toHaveLength(1);
    expect(new Set(provider.keys()).size).toBe(1);
  });

  test('is known to its client after a reload that adds accounts', async () => {
    const { provider, pay, reload } = await setUp({
      ...{ names: BY_NAME, routes: ROUTES, accounts: '', url: `http://127.0.0.1:${await refusingPort()}` },
    });
    const accepted = await pay('alice', LATER);
    await reload({ accounts: ONE_ACCOUNT });
    const repeat = await pay('alice', LATER);
    expect([accepted.status, repeat.status]).toEqual([202, 202]);
    expect(repeat.header('location')).toBe(accepted.header('location'));
    await reload({ accounts: ONE_ACCOUNT, url: provider.url });
    await eventually(
      () => provider.charges.length,
      (count) => count === 1,
    );
    expect(provider.keys()).toEqual(['order-1']);
  });

  test('is refused plainly while another client has an unresolved write with its key', async () => {
    const { provider, pay } = await setUp({
      ...{ names: BY_NAME, routes: ROUTES },
      rest: 'timeout: 400ms, perTryTimeout: 400ms, retry: {attempts: 1, replayLimit: 1KiB}',
    });
    provider.beSilent(true);
    expect(resultOf(await pay('alice'))).toEqual(UNKNOWN);
    const tooLong = { ...LATER, body: ' '.repeat(2000) };
    expect(resultOf(await pay('bob', tooLong))).toEqual([413, undefined]);
    expect(resultOf(await pay('alice', tooLong))).toEqual(UNKNOWN);
  });

  test('gets its own response if a reload gives all clients one name', async () => {
    const settings = { routes: ROUTES, names: BY_NAME, idempotency: 'ttl: 24h, replayAnswers: 1h' };
    const { provider, pay, reload } = await setUp({
      ...settings,
      url: `http://127.0.0.1:${await refusingPort()}`,
    });
    const accepted = [await pay('alice', LATER), await pay('bob', LATER)];
    expect(accepted.map(({ status }) => status)).toEqual([202, 202]);
    await reload({ ...settings, names: '["header:X-Shop", ip]', url: provider.url });
    await eventually(
      () => provider.charges.length,
      (count) => count === 2,
    );
    await reload({ ...settings, url: provider.url });
    const ids = new Set([idOf(await pay('alice')), idOf(await pay('bob'))]);
    expect(ids).toEqual(new Set(['ch_1', 'ch_2']));
    expect(provider.charges).toHaveLength(2);
  });
});

test.each([
  ['shared', 'client'],
  ['client', 'shared'],
])('a message has one key in all attempts when a reload changes keyScope from %s to %s', async (before, after) => {
  const { provider, gate, pay, reload } = await setUp({
    names: BY_NAME,
    idempotency: `keyScope: ${before}`,
    routes: '{path: /hooks, upstream: psp, deliver: {schedule: {delays: [1s, 1s, 1s, 1s]}}}',
  });
  provider.beSilent(true);
  expect((await pay('alice', { path: '/hooks' })).status).toBe(202);
  await eventually(
    () => provider.received.length,
    (count) => count > 0,
  );
  await reload({ idempotency: `keyScope: ${after}`, names: '["header:X-Shop", ip]' });
  const sent = provider.received.length;
  await eventually(
    () => provider.received.length,
    (count) => count > sent + 1,
  );
  expect(new Set(provider.keys()).size).toBe(1);
  expect(provider.keys()[0] === 'order-1').toBe(before === 'shared');
  // The operator finds it at the provider by the key that the log has.
  const logged = gate.log().find(({ delivery }) => delivery !== undefined);
  expect(logged?.['upstreamKey']).toBe(before === 'shared' ? undefined : provider.keys()[0]);
  expect(provider.charges).toHaveLength(1);
});

describe('a write of a client without a name, before a reload names clients', () => {
  const BEARER = { headers: ['Authorization', 'Bearer of-alice'] };

  test.each([
    ['its address', {}],
    ['a token', BEARER],
  ])('is not sent again under the name if it was identified by %s, and its outcome is unknown', async (_, payment) => {
    const { provider, pay, reload } = await setUp({});
    provider.beSilent(true);
    expect(resultOf(await pay('alice', payment))).toEqual(UNKNOWN);
    provider.beSilent(false);
    await reload({ names: BY_NAME });
    const repeat = await pay('alice', payment);
    expect([...resultOf(repeat), reasonOf(repeat)]).toEqual([...UNKNOWN, 'key_ambiguous']);
    expect(provider.received).toHaveLength(1);
    expect(idOf(await pay('alice', { ...payment, key: 'order-2' }))).toBe('ch_2');
  });

  test('is not sent again under the name if it was answered', async () => {
    const { provider, pay, reload } = await setUp({});
    expect(idOf(await pay('alice', BEARER))).toBe('ch_1');
    await reload({ names: BY_NAME });
    const repeat = await pay('alice', BEARER);
    expect([...resultOf(repeat), reasonOf(repeat)]).toEqual([409, undefined, 'key_ambiguous']);
    expect(provider.received).toHaveLength(1);
  });

  test('is sent again with its own key once the reload is taken back', async () => {
    const { provider, pay, reload } = await setUp({});
    provider.beSilent(true);
    await pay('alice', BEARER);
    provider.beSilent(false);
    await reload({ names: BY_NAME });
    await pay('alice', BEARER);
    await reload({});
    const repeat = await pay('alice', BEARER);
    expect([idOf(repeat), repeat.header('idempotent-replayed')]).toEqual(['ch_1', 'true']);
  });
});

test('a client does not get the response to the write of others with its key when a reload separates keys', async () => {
  const { provider, pay, reload } = await setUp({ names: BY_NAME, idempotency: 'ttl: 24h, keyScope: shared' });
  expect([idOf(await pay('alice')), idOf(await pay('bob'))]).toEqual(['ch_1', 'ch_1']);
  await reload({ idempotency: 'ttl: 24h, keyScope: client' });
  const first = await pay('carol');
  expect([first.status, reasonOf(first)]).toEqual([409, 'key_ambiguous']);
  expect(idOf(await pay('alice'))).toBe('ch_1');
  expect(idOf(await pay('carol', { key: 'order-2' }))).toBe('ch_2');
  expect(provider.charges).toHaveLength(2);
});

test('a client makes its own write with a key that another client has used with another body, after a reload', async () => {
  const { provider, pay, reload } = await setUp({ names: BY_NAME, idempotency: 'ttl: 24h, keyScope: shared' });
  await pay('alice');
  await reload({ idempotency: 'ttl: 24h, keyScope: client' });
  expect((await pay('carol')).status).toBe(409);
  expect(idOf(await pay('bob', { body: '{"amount":2}' }))).toBe('ch_2');
  expect(provider.keys()[0]).toBe('order-1');
  expect(provider.keys()[1]).not.toBe('order-1');
});

describe('a write of a client whose name changes with a reload', () => {
  const SHOP = '["header:X-Shop", ip]';
  const UNSENT = '["header:X-Unsent", ip]';

  test.each([
    ['from one header to another', BY_NAME, SHOP],
    ['from none to a header', UNSENT, BY_NAME],
    ['from a header to none', BY_NAME, UNSENT],
  ])('is not sent again, %s', async (_, before, after) => {
    const idempotency = 'ttl: 24h, keyScope: client';
    const { provider, pay, reload } = await setUp({ names: before, idempotency });
    provider.beSilent(true);
    expect(resultOf(await pay('alice'))).toEqual(UNKNOWN);
    provider.beSilent(false);
    await reload({ names: after });
    const repeat = await pay('alice');
    expect([...resultOf(repeat), reasonOf(repeat)]).toEqual([...UNKNOWN, 'key_ambiguous']);
    expect(provider.charges).toHaveLength(1);
    expect(idOf(await pay('bob', { body: '{"amount":2}' }))).toBe('ch_2');
    await reload({ names: before });
    expect(idOf(await pay('alice'))).toBe('ch_1');
    expect(provider.charges).toHaveLength(2);
  });
});

test('clients keep their own keys when a reload changes the credential header', async () => {
  const { provider, gate, pay, reload } = await setUp({ names: BY_NAME });
  provider.beSilent(true);
  expect(resultOf(await pay('alice'))).toEqual(UNKNOWN);
  provider.beSilent(false);
  await reload({ credentialHeader: 'X-Token' });
  expect(idOf(await pay('bob'))).toBe('ch_2');
  const { keys } = (await (await fetch(`${gate.adminUrl}/api/keys?key=order-1&order=oldest`)).json()) as {
    readonly keys: readonly { readonly state: string }[];
  };
  expect(keys.map(({ state }) => state)).toEqual(['unresolved', 'answered']);
  const repeat = await pay('alice');
  expect([idOf(repeat), repeat.header('idempotent-replayed')]).toEqual(['ch_1', 'true']);
  expect(provider.charges).toHaveLength(2);
});

test('a write that was sent with a derived key is not sent with its own in the body after a reload', async () => {
  const { provider, pay, reload } = await setUp({ names: BY_NAME });
  const payment = { body: '{"amount":1,"key":"order-1"}', headers: ['Content-Type', 'application/json'] };
  provider.beSilent(true);
  expect(resultOf(await pay('alice', payment))).toEqual(UNKNOWN);
  provider.beSilent(false);
  await reload({ idempotency: 'ttl: 24h, keyScope: shared, jsonField: key' });
  expect(resultOf(await pay('alice', payment))).toEqual(UNKNOWN);
  expect(provider.received).toHaveLength(1);
  await reload({});
  expect(idOf(await pay('alice', payment))).toBe('ch_1');
  expect(provider.charges).toHaveLength(1);
});
