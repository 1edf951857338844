/** Clients that choose the same key, through one account of a provider. */
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { startAdyen } from '../../support/providers/adyen.ts';
import type { ProviderFake } from '../../support/providers/provider-fake.ts';
import { startSquare } from '../../support/providers/square.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

async function startAccount(provider: string, fake: ProviderFake, more = '') {
  const { url } = await startTidegate(`
clients: {key: ["header:X-Client", ip]}
upstreams:
  api: {provider: ${provider}, url: "${fake.url}", perTryTimeout: 1s, accounts: [{name: main, value: "of-main"}]${more}}`);
  return async (client: string, path: string, body: string, headers: readonly string[] = []) => {
    const sent = ['X-Client', client, 'X-Intent', client, 'Content-Type', 'application/json', ...headers];
    return (await send(url, path, { method: 'POST', body, headers: sent })).status;
  };
}

test('make two payments at Adyen, also with keys of the greatest length, and repeat neither', async () => {
  const adyen = await startAdyen();
  const pay = await startAccount('adyen', adyen);
  const key = ['Idempotency-Key', 'k'.repeat(64)];
  const statuses: number[] = [];
  for (const client of ['alice', 'bob', 'alice', 'bob']) statuses.push(await pay(client, '/v71/payments', '{}', key));
  expect(statuses).toEqual([200, 200, 200, 200]);
  expect(Object.fromEntries(adyen.charges)).toEqual({ alice: 1, bob: 1 });
});

test('make one payment at Square, whose keys are in bodies that are never changed, so they use keys of their own', async () => {
  const square = await startSquare();
  const pay = await startAccount('square', square, ', idempotency: {keyScope: shared}');
  const bodyOf = (key: string) => `{"idempotency_key":"${key}"}`;
  const statuses = [
    await pay('alice', '/v2/payments', bodyOf('order-1')),
    await pay('bob', '/v2/payments', bodyOf('order-1')),
    await pay('bob', '/v2/payments', bodyOf('bob-order-1')),
  ];
  expect(statuses).toEqual([200, 200, 200]);
  expect(Object.fromEntries(square.charges)).toEqual({ alice: 1, bob: 1 });
});
