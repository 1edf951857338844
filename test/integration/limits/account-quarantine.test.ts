/** Quarantines: an account is excluded for the clients whose requests its upstream rejects. */
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import { accept, accountsOf, startAccountUpstream } from '../../support/upstreams/account-upstream.ts';

const TWO = accountsOf({ main: 'secret-of-main', spare: 'secret-of-spare' });
const ACCEPTED = { 'secret-of-main': accept, 'secret-of-spare': accept };

test('quarantines an account whose credential is rejected for a request that another account serves', async () => {
  const upstream = await startAccountUpstream({ 'secret-of-spare': accept });
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${TWO}}}`);
  for (let i = 0; i < 4; i += 1) expect((await send(tidegate.url, '/')).status).toBe(200);
  expect(upstream.tokens()).toEqual(['secret-of-main', ...Array<string>(4).fill('secret-of-spare')]);
  expect(await tidegate.metric('tidegate_account_quarantined{upstream="api",account="main"}')).toBe(1);
  expect(await tidegate.metric('tidegate_account_quarantined{upstream="api",account="spare"}')).toBe(0);
  const lines = tidegate.log().filter(({ msg }) => String(msg).startsWith('account quarantined'));
  expect(lines).toMatchObject([{ upstream: 'api', account: 'main', status: 401, forMs: 30_000 }]);
});

test('keeps accounts in service when one path rejects all of them', async () => {
  const upstream = await startAccountUpstream(ACCEPTED);
  upstream.set(
    'secret-of-main',
    (response, { target }) => void response.writeHead(target === '/private' ? 401 : 200).end(),
  );
  upstream.set(
    'secret-of-spare',
    (response, { target }) => void response.writeHead(target === '/private' ? 401 : 200).end(),
  );
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${TWO}}}`);
  for (let i = 0; i < 5; i += 1) {
    expect((await send(tidegate.url, '/private')).status).toBe(401);
    expect((await send(tidegate.url, '/')).status).toBe(200);
    expect((await send(tidegate.url, '/')).status).toBe(200);
  }
});

test('serves other clients while one requests what every account is denied', async () => {
  const upstream = await startAccountUpstream({});
  for (const token of Object.keys(ACCEPTED)) {
    upstream.set(token, (response, { target }) => void response.writeHead(target === '/private' ? 401 : 200).end());
  }
  const tidegate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", ${TWO}}}
clients: {key: ["header:x-client"]}
`);
  const as = async (client: string, path: string): Promise<number> =>
    (await send(tidegate.url, path, { headers: ['X-Client', client] })).status;
  for (let round = 0; round < 2; round += 1) {
    const statuses: number[] = [];
    for (let i = 0; i < 4; i += 1) statuses.push(await as('evil', '/private'));
    expect(statuses).toEqual([401, 401, 401, 503]);
    for (let i = 0; i < 4; i += 1) expect(await as('good', '/')).toBe(200);
  }
  const quarantined = tidegate.log().find(({ msg }) => String(msg).startsWith('account quarantined'));
  expect(quarantined?.client).toMatch(/^[\da-f]{16}$/);
});

test('refuses requests while all accounts are in quarantine, and recovers when a credential is rotated', async () => {
  const upstream = await startAccountUpstream({ 'new-secret': accept });
  const tidegate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", ${accountsOf({ main: 'old-secret' })}}}`,
  );
  for (let i = 0; i < 3; i += 1) expect((await send(tidegate.url, '/')).status).toBe(401);
  const refused = await send(tidegate.url, '/');
  expect(refused.status).toBe(503);
  expect(Number(refused.header('retry-after'))).toBeGreaterThan(25);
  expect(upstream.received).toHaveLength(3);
  await tidegate.rewrite(`upstreams: {api: {url: "${upstream.url}", ${accountsOf({ main: 'new-secret' })}}}`);
  expect((await send(tidegate.url, '/')).status).toBe(200);
});

test('explains a refusal by the quarantine of the account', async () => {
  const upstream = await startAccountUpstream({});
  const tidegate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${accountsOf({ main: 'secret' })}}}`);
  for (let i = 0; i < 3; i += 1) await send(tidegate.url, '/');
  const id = (await send(tidegate.url, '/')).header('tidegate-request-id');
  const { steps } = (await (await fetch(`${tidegate.adminUrl}/explain/${id}`)).json()) as { steps: { text: string }[] };
  expect(JSON.stringify(steps)).toContain('the upstream rejects the credential of account main');
});
