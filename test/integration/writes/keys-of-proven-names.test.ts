/** A write whose client has proven its name, when a reload changes which name its token proves. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { makeKeyFile } from '../../support/clients/api-keys.ts';
import { type Received, send } from '../../support/clients/send.ts';
import { AUDIENCE, ISSUER, startIssuer } from '../../support/clients/token-issuer.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import { startKeyedProvider } from '../../support/upstreams/keyed-provider.ts';

/** Settings of `clients.auth.jwt`. */
type Naming = string;

/** An outcome is unknown after 400 ms. */
async function setUp() {
  const provider = await startKeyedProvider();
  const issuer = await startIssuer();
  const keys = makeKeyFile('shop');
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-names-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const yaml = (naming: Naming): string => `
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: normal}
clients:
  auth:
    apiKeys: {file: ${keys.path}}
    jwt: {issuer: "${ISSUER}", audience: [${AUDIENCE}], jwks: "${issuer.url}", ${naming}}
upstreams:
  psp:
    {url: "${provider.url}", accounts: [{name: main, value: "Bearer of-main"}], idempotency: {ttl: 24h, keyScope: client}, timeout: 400ms, perTryTimeout: 400ms, retry: {attempts: 1}}`;
  const gate = await startTidegate(yaml(''));
  const tokenOf = (name: string) => issuer.issue(name, { claims: { email: `${name}@example.com` } });
  const pay = (credential: readonly string[], body = '{"amount":1}') =>
    send(gate.url, '/v1/charges', { method: 'POST', body, headers: [...credential, 'Idempotency-Key', 'order-1'] });
  const payAs = async (name: string, body?: string) => pay(['Authorization', `Bearer ${await tokenOf(name)}`], body);
  const payWithKey = (body?: string) => pay(['Tidegate-Key', keys.keys[0] ?? ''], body);
  return { provider, payAs, payWithKey, reload: (naming: Naming) => gate.rewrite(yaml(naming)) };
}

function resultOf({ status, body, header }: Received): unknown[] {
  const { id, reason } = JSON.parse(body.toString()) as { readonly id?: unknown; readonly reason?: unknown };
  return [status, id ?? reason, header('tidegate-outcome')];
}

describe.each([
  ['nameClaim', 'nameClaim: email'],
  ['namePrefix', 'namePrefix: "jwt:"'],
])('after a reload that changes %s', (_, after: Naming) => {
  test('a write with an unknown outcome is not sent again under the new name', async () => {
    const { provider, payAs, reload } = await setUp();
    provider.beSilent(true);
    expect((await payAs('alice')).status).toBe(504);
    provider.beSilent(false);
    await reload(after);
    expect(resultOf(await payAs('alice'))).toEqual([504, 'key_ambiguous', 'unknown']);
    expect(provider.received).toHaveLength(1);
    expect(resultOf(await payAs('bob', '{"amount":2}'))).toEqual([200, 'ch_2', undefined]);
    await reload('');
    expect(resultOf(await payAs('alice'))).toEqual([200, 'ch_1', undefined]);
    expect(provider.charges).toHaveLength(2);
  });

  test('an answered write is not sent again under the new name', async () => {
    const { provider, payAs, reload } = await setUp();
    expect(resultOf(await payAs('alice'))).toEqual([200, 'ch_1', undefined]);
    await reload(after);
    expect(resultOf(await payAs('alice'))).toEqual([409, 'key_ambiguous', undefined]);
    expect(provider.charges).toHaveLength(1);
  });

  test('a client whose name is the same repeats its write with the key that it had', async () => {
    const { provider, payWithKey, reload } = await setUp();
    provider.beSilent(true);
    expect((await payWithKey()).status).toBe(504);
    provider.beSilent(false);
    await reload(after);
    expect(resultOf(await payWithKey())).toEqual([200, 'ch_1', undefined]);
    expect(provider.charges).toHaveLength(1);
  });
});

test('clients that prove their names in different ways use equal keys side by side', async () => {
  const { provider, payAs, payWithKey } = await setUp();
  const results = [await payAs('alice'), await payWithKey(), await payAs('bob')].map(resultOf);
  expect(results.map(([, id]) => id)).toEqual(['ch_1', 'ch_2', 'ch_3']);
  expect(new Set(provider.keys()).size).toBe(3);
});
