/** A write stays with the account that may have its effect. */
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import { accept, accountsOf, reject, startAccountUpstream } from '../../support/upstreams/account-upstream.ts';

const TOKENS = ['secret-of-main', 'secret-of-spare', 'secret-of-third'];
const THREE = accountsOf({ main: 'secret-of-main', spare: 'secret-of-spare', third: 'secret-of-third' });

test.each([
  ['PUT', 'a broken connection', 'retry: {attempts: 4}', [0, 429, 200]],
  ['DELETE', 'a 500', 'retry: {attempts: 4, retryOn: [500, 429]}', [500, 429, 200]],
  ['POST', 'a 500', 'retry: {attempts: 4, retryOn: [500, 429], unkeyedWrites: always}', [500, 500, 200]],
])('sends a %s without a key to the same account again after %s', async (method, _, retry, statuses) => {
  const left = [...statuses];
  const upstream = await startAccountUpstream({});
  for (const token of TOKENS) {
    upstream.set(token, (response) => {
      const status = left.shift() ?? 200;
      if (status === 0) response.destroy();
      else response.writeHead(status).end();
    });
  }
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${THREE}, ${retry}}}`);
  expect((await send(tidegate.url, '/payouts/7', { method, body: '{}' })).status).toBe(200);
  const [token] = upstream.tokens();
  expect(upstream.tokens()).toEqual(statuses.map(() => token));
});

test('sends a write and its repeats with one account, although its key header is ambiguous', async () => {
  const upstream = await startAccountUpstream(Object.fromEntries(TOKENS.map((token) => [token, accept])));
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${THREE}}}`);
  const headers = ['Idempotency-Key', 'order', 'Idempotency_Key', 'order'];
  for (let i = 0; i < 4; i += 1) await send(tidegate.url, '/', { method: 'POST', body: '{}', headers });
  expect(new Set(upstream.tokens()).size).toBe(1);
});

const WRITE = { method: 'POST', body: '{}', headers: ['Idempotency-Key', 'order', 'Authorization', 'Bearer own'] };

test.each([
  ['has got accounts since', '', `${THREE},`],
  ['has no accounts any more', `${THREE},`, ''],
])('does not send a repeat of an unresolved write whose upstream %s', async (_, before, after) => {
  const silent = (): void => undefined;
  const upstream = await startAccountUpstream(Object.fromEntries([...TOKENS, 'own'].map((token) => [token, silent])));
  const yaml = (accounts: string): string =>
    `upstreams: {api: {url: "${upstream.url}", ${accounts} timeout: 400ms, perTryTimeout: 400ms, retry: {attempts: 1}}}`;
  const tidegate = await startTidegate(yaml(before));
  expect((await send(tidegate.url, '/', WRITE)).header('tidegate-outcome')).toBe('unknown');
  for (const token of [...TOKENS, 'own']) upstream.set(token, accept);
  await tidegate.rewrite(yaml(after));
  const repeat = await send(tidegate.url, '/', WRITE);
  expect([repeat.status, repeat.header('tidegate-outcome')]).toEqual([504, 'unknown']);
  expect(upstream.received).toHaveLength(1);
  await tidegate.rewrite(yaml(before));
  expect((await send(tidegate.url, '/', WRITE)).status).toBe(200);
});

test('replaces the header that an account has got meanwhile', async () => {
  const upstream = await startAccountUpstream({});
  const yaml = (header: string): string =>
    `upstreams: {api: {url: "${upstream.url}", accounts: [{name: main, header: ${header}, value: of-gateway}]}}`;
  const tidegate = await startTidegate(yaml('X-Token'));
  const isReloaded = Promise.withResolvers<unknown>();
  upstream.set('none', (response, request) => {
    reject(503, { 'Retry-After': '1' })(response, request);
    upstream.set('none', accept);
    isReloaded.resolve(tidegate.rewrite(yaml('X-Key')));
  });
  expect((await send(tidegate.url, '/', { headers: ['X-Key', 'of-client'] })).status).toBe(200);
  await isReloaded.promise;
  expect(upstream.received[1]?.headers['x-key']).toBe('of-gateway');
});

test('sends the retry of a request with its own credential, although its upstream has got accounts meanwhile', async () => {
  const upstream = await startAccountUpstream(Object.fromEntries(TOKENS.map((token) => [token, accept])));
  const yaml = (accounts: string): string => `upstreams: {api: {url: "${upstream.url}"${accounts}}}`;
  const tidegate = await startTidegate(yaml(''));
  const isReloaded = Promise.withResolvers<unknown>();
  upstream.set('own', (response, request) => {
    reject(503, { 'Retry-After': '1' })(response, request);
    upstream.set('own', accept);
    isReloaded.resolve(tidegate.rewrite(yaml(`, ${THREE}`)));
  });
  expect((await send(tidegate.url, '/', WRITE)).status).toBe(200);
  await isReloaded.promise;
  expect(upstream.tokens()).toEqual(['own', 'own']);
  const names = upstream.received[1]?.rawHeaders.filter((name) => name.toLowerCase() === 'authorization');
  expect(names).toHaveLength(1);
});
