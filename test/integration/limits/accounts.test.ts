/** Accounts: the gateway holds the credentials of an upstream, and sends each request with one of them. */
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import type { RecordedRequest } from '../../support/upstreams/recording-upstream.ts';
import { accept, accountsOf, reject, startAccountUpstream } from '../../support/upstreams/account-upstream.ts';

const KEYED = (key: string): string[] => ['Idempotency-Key', key];

const TWO = accountsOf({ main: 'secret-of-main', spare: 'secret-of-spare' });
const ACCEPTED = { 'secret-of-main': accept, 'secret-of-spare': accept };

test('replaces the credential of the client, however it writes the header', async () => {
  const upstream = await startAccountUpstream(ACCEPTED);
  const tidegate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", ${accountsOf({ main: 'secret-of-main' })}}}`,
  );
  const own = ['AUTHORIZATION', 'Bearer of-client', 'authorization', 'Bearer of-client'];
  expect((await send(tidegate.url, '/', { headers: own.slice(0, 2) })).status).toBe(200);
  expect((await send(tidegate.url, '/')).status).toBe(200);
  expect((await send(tidegate.url, '/', { headers: ['Connection', 'authorization', ...own.slice(0, 2)] })).status).toBe(
    200,
  );
  expect(upstream.tokens()).toEqual(['secret-of-main', 'secret-of-main', 'secret-of-main']);
  expect(JSON.stringify(upstream.received.map(({ rawHeaders }) => rawHeaders))).not.toContain('of-client');
});

test('uses accounts in turn while none is limited', async () => {
  const upstream = await startAccountUpstream(ACCEPTED);
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${TWO}}}`);
  for (let i = 0; i < 4; i += 1) await send(tidegate.url, '/');
  expect(upstream.tokens()).toEqual(['secret-of-main', 'secret-of-spare', 'secret-of-main', 'secret-of-spare']);
});

test('lists the accounts in the status, without their credentials', async () => {
  const upstream = await startAccountUpstream({ ...ACCEPTED, 'secret-of-main': reject(401) });
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${TWO}}}`);
  await send(tidegate.url, '/');
  const text = await (await fetch(`${tidegate.adminUrl}/api/status`)).text();
  const { upstreams } = JSON.parse(text) as {
    upstreams: { accounts: { nextProbe: string | null; quarantinedSince: string | null }[] }[];
  };
  const listed = upstreams[0]?.accounts ?? [];
  expect(listed).toMatchObject([
    { name: 'main', quarantined: true, rate: null, inFlight: 0 },
    { name: 'spare', quarantined: false, rate: null, inFlight: 0 },
  ]);
  expect(listed.map(({ nextProbe }) => nextProbe !== null && Date.parse(nextProbe) > 0)).toEqual([true, false]);
  expect(listed.map(({ quarantinedSince: at }) => at !== null && Date.parse(at) > 0)).toEqual([true, false]);
  expect(text).not.toContain('secret-of');
});

test('retries a 429 with another account at once, and uses no stopped account', async () => {
  const upstream = await startAccountUpstream({ ...ACCEPTED, 'secret-of-main': reject(429, { 'Retry-After': '60' }) });
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${TWO}}}`);
  for (let i = 0; i < 4; i += 1) expect((await send(tidegate.url, '/')).status).toBe(200);
  expect(upstream.tokens()).toEqual(['secret-of-main', ...Array<string>(4).fill('secret-of-spare')]);
  expect(
    await tidegate.metric('tidegate_account_requests_total{upstream="api",account="main",result="throttled"}'),
  ).toBe(1);
  expect(
    await tidegate.metric('tidegate_account_requests_total{upstream="api",account="spare",result="accepted"}'),
  ).toBe(4);
});

test('refuses with the shortest wait once all accounts are stopped', async () => {
  const upstream = await startAccountUpstream({
    'secret-of-main': reject(429, { 'Retry-After': '300' }),
    'secret-of-spare': reject(429, { 'Retry-After': '120' }),
  });
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${TWO}}}`);
  const first = await send(tidegate.url, '/');
  expect(first.status).toBe(429);
  const second = await send(tidegate.url, '/');
  for (const { header } of [first, second]) {
    expect(Number(header('retry-after'))).toBeGreaterThan(110);
    expect(Number(header('retry-after'))).toBeLessThan(140);
  }
  expect(upstream.received).toHaveLength(2);
});

test('does not retry a write without a key with another account', async () => {
  const upstream = await startAccountUpstream({ ...ACCEPTED, 'secret-of-main': reject(429, { 'Retry-After': '60' }) });
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${TWO}}}`);
  expect((await send(tidegate.url, '/', { method: 'POST', body: '{}' })).status).toBe(429);
  expect((await send(tidegate.url, '/', { method: 'POST', body: '{}' })).status).toBe(200);
});

test('sends a keyed write and its repeats with one account', async () => {
  const upstream = await startAccountUpstream(ACCEPTED);
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${TWO}}}`);
  for (let i = 0; i < 12; i += 1) {
    for (let repeat = 0; repeat < 2; repeat += 1) {
      const options = { method: 'POST', body: '{}', headers: KEYED(`key-${i}`) };
      expect((await send(tidegate.url, '/', options)).status).toBe(200);
    }
  }
  const tokens = upstream.tokens();
  for (let i = 0; i < tokens.length; i += 2) expect(tokens[i]).toBe(tokens[i + 1]);
  expect(new Set(tokens).size).toBe(2);
});

test('does not move a keyed write to another account after a 429', async () => {
  const stopped = reject(429, { 'Retry-After': '60' });
  const upstream = await startAccountUpstream({ 'secret-of-main': stopped, 'secret-of-spare': stopped });
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${TWO}, timeout: 1s}}`);
  expect((await send(tidegate.url, '/', { method: 'POST', body: '{}', headers: KEYED('one') })).status).toBe(429);
  expect(upstream.received).toHaveLength(1);
});

test('sends all requests of a client with one account if the route says so', async () => {
  const upstream = await startAccountUpstream(ACCEPTED);
  const tidegate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", ${TWO}}}
routes: [{upstream: api, stickyAccount: true}]
clients: {key: ["header:x-client"]}
`);
  const tokenOf = new Map<string, string>();
  for (let i = 0; i < 16; i += 1) {
    const client = `client-${i % 8}`;
    await send(tidegate.url, '/', { headers: ['X-Client', client] });
    const token = upstream.tokens().at(-1) ?? '';
    expect(tokenOf.get(client) ?? token).toBe(token);
    tokenOf.set(client, token);
  }
  expect(new Set(tokenOf.values()).size).toBe(2);
});

test('rotates a credential without a failed request', async () => {
  const upstream = await startAccountUpstream({ 'old-secret': accept, 'new-secret': accept });
  const tidegate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", ${accountsOf({ main: 'old-secret' })}}}`,
  );
  const before = Array.from({ length: 10 }, () => send(tidegate.url, '/'));
  await tidegate.rewrite(`upstreams: {api: {url: "${upstream.url}", ${accountsOf({ main: 'new-secret' })}}}`);
  const after = Array.from({ length: 10 }, () => send(tidegate.url, '/'));
  for (const { status } of await Promise.all([...before, ...after])) expect(status).toBe(200);
  expect(upstream.tokens().slice(-10)).toEqual(Array<string>(10).fill('new-secret'));
});

test('shows no credential in logs, metrics, the admin API and errors', async () => {
  const upstream = await startAccountUpstream({ 'secret-of-spare': accept });
  const tidegate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", ${TWO}}}
log: {successes: 1}
`);
  const responses = [];
  for (let i = 0; i < 3; i += 1) responses.push(await send(tidegate.url, '/', { method: i === 1 ? 'POST' : 'GET' }));
  const pages = await Promise.all(
    ['/metrics', '/api/status', '/api/config', '/api/timeline', '/api/requests'].map(async (path) =>
      (await fetch(`${tidegate.adminUrl}${path}`)).text(),
    ),
  );
  const shown = JSON.stringify([tidegate.log(), pages, responses]);
  expect(shown).toContain('main');
  expect(shown).not.toContain('secret-of');
});

test('explains which account an attempt used, why it changed, and why a request was refused', async () => {
  const upstream = await startAccountUpstream({ ...ACCEPTED, 'secret-of-main': reject(429, { 'Retry-After': '60' }) });
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${TWO}}}`);
  const explain = async (id: string | undefined): Promise<string> =>
    (await fetch(`${tidegate.adminUrl}/explain/${id}`, { headers: { Accept: 'text/plain' } })).text();
  const text = await explain((await send(tidegate.url, '/')).header('tidegate-request-id'));
  expect(text).toContain('with account main');
  expect(text).toContain('retry at once (status_429) with another account');
  expect(text).toContain('with account spare');
});

test('does not send a repeat whose account has been removed', async () => {
  const silent = { 'secret-of-main': () => undefined, 'secret-of-spare': () => undefined };
  const upstream = await startAccountUpstream(silent);
  const yaml = (list: string): string =>
    `upstreams: {api: {url: "${upstream.url}", ${list}, timeout: 400ms, perTryTimeout: 400ms, retry: {attempts: 1}}}`;
  const tidegate = await startTidegate(yaml(TWO));
  const write = { method: 'POST', body: '{}', headers: KEYED('order') };
  const first = await send(tidegate.url, '/', write);
  expect(first.header('tidegate-outcome')).toBe('unknown');
  const [token] = upstream.tokens();
  const [kept, other] = token === 'secret-of-main' ? ['spare', 'main'] : ['main', 'spare'];
  upstream.set(`secret-of-${kept}`, accept);
  await tidegate.rewrite(yaml(accountsOf({ [kept]: `secret-of-${kept}` })));
  const repeat = await send(tidegate.url, '/', write);
  expect([repeat.status >= 500, repeat.header('tidegate-outcome')]).toEqual([true, 'unknown']);
  expect(upstream.received).toHaveLength(1);
  // The account is back, and knows the key.
  upstream.set(`secret-of-${other}`, accept);
  await tidegate.rewrite(yaml(TWO));
  expect((await send(tidegate.url, '/', write)).status).toBe(200);
  expect(upstream.tokens()).toEqual([token, token]);
});

test('does not send a TRACE, whose response would show the credential, to an upstream with accounts', async () => {
  const upstream = await startAccountUpstream(ACCEPTED);
  const down = await startAccountUpstream({});
  const tidegate = await startTidegate(`
upstreams:
  api: {url: "${upstream.url}", ${TWO}}
  down: {url: "${down.url}", fallback: api, quotas: [{limit: 1, per: day, timezone: UTC}]}
routes: [{path: /down, upstream: down}, {upstream: api}]
`);
  const refused = await send(tidegate.url, '/', { method: 'TRACE' });
  expect([refused.status, JSON.parse(refused.body.toString())]).toMatchObject([405, { reason: 'method' }]);
  for (const status of [401, 429]) expect((await send(tidegate.url, '/down', { method: 'TRACE' })).status).toBe(status);
  expect(upstream.received).toHaveLength(0);
  expect((await send(tidegate.url, '/down')).status).toBe(200);
});

test('polls for a result with the account that will have it', async () => {
  const tokens = { a: 'secret-of-a', b: 'secret-of-b', c: 'secret-of-c' };
  const upstream = await startAccountUpstream({});
  const tidegate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", ${accountsOf(tokens)}}}
routes: [{upstream: api, poll: {backOff: {strategy: fixed, baseInterval: 20ms}}}]
`);
  const left = [202, 202, 200];
  const toFirst = (response: ServerResponse, { headers }: RecordedRequest): void => {
    const token = headers.authorization?.replace('Bearer ', '') ?? '';
    const isFirst = token === upstream.tokens()[0];
    response.writeHead(isFirst ? (left.shift() ?? 500) : 404).end();
  };
  for (const token of Object.values(tokens)) upstream.set(token, toFirst);
  expect((await send(tidegate.url, '/', { headers: ['Prefer', 'wait=10'] })).status).toBe(200);
  expect(upstream.tokens()).toEqual(Array<string>(3).fill(upstream.tokens()[0] ?? ''));
});
