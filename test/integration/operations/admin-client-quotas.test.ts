/** What a client has used of its quotas, in the admin API and on the command line: shown, and reset. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runClientQuotas } from '../../../src/cli/clients/client-quotas-command.ts';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { makeKeyFile } from '../../support/clients/api-keys.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const DAY = 86_400_000;

const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern);

async function start(state = '', perClient = '{quota: [2/rolling 24h, {limit: 9, per: month}]}') {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const file = makeKeyFile('partner-a', 'partner-b', 'other');
  const run = async () => {
    const gate = await startTidegate(`
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
secret: 0123456789abcdef0123456789abcdef
${state}
upstreams: {api: {url: "${upstream.url}"}}
clients:
  auth: {apiKeys: {file: ${file.path}}}
  classes: {partners: {match: {key: ["partner-*"]}, perClient: ${perClient}}}
`);
    const api = await openAdminApi(gate.adminUrl ?? '');
    const sendAs = async (client: number): Promise<number> =>
      (await send(gate.url, '/', { headers: ['Tidegate-Key', file.keys[client] ?? ''] })).status;
    return { gate, api, sendAs };
  };
  return { upstream, run };
}

const sqlite = (): string =>
  `state: {store: sqlite, file: ${join(mkdtempSync(join(tmpdir(), 'quotas-')), 'state.db')}}`;

test('shows the use of a client by its name and by its key, and resets it with a report of who did it', async () => {
  const { upstream, run } = await start(sqlite());
  const { gate, api, sendAs } = await run();
  expect([await sendAs(0), await sendAs(0), await sendAs(0), await sendAs(1)]).toEqual([200, 200, 429, 200]);
  const shown = await api.get('/api/clients/partner-a/quotas');
  const client = String(shown.json()['client']);
  const rolling = { upstream: 'api', quota: 'class:partners/client/rolling-24h', limit: 2 };
  const month = { upstream: 'api', quota: 'class:partners/client/month', limit: 9 };
  expect(shown.json()).toMatchObject({
    quotas: [
      { ...rolling, used: 2, remaining: 0 },
      { ...month, used: 2, remaining: 7 },
    ],
  });
  const [first] = (shown.json() as unknown as { quotas: { resetAt: string }[] }).quotas;
  expect(Math.abs(Date.parse(first?.resetAt ?? '') - Date.now() - DAY)).toBeLessThan(DAY / 60);
  expect((await api.get(`/api/clients/${client}/quotas`)).json()).toEqual(shown.json());
  const listed = (await api.get('/api/clients?search=partner-a')).json() as unknown as { clients: { key: string }[] };
  expect(listed.clients.map(({ key }) => key)).toEqual([client]);

  const path = '/api/clients/partner-a/quotas/reset';
  expect((await send(gate.adminUrl ?? '', path, { method: 'POST' })).status).toBe(401);
  expect(await sendAs(0)).toBe(429);
  const reset = await api.post(path);
  expect(reset.json()).toMatchObject({
    ...{
      client,
      quotas: [
        { ...rolling, used: 0, remaining: 2 },
        { ...month, used: 0 },
      ],
    },
    notes: [matching(/within a second/)],
  });
  expect([await sendAs(0), await sendAs(0), await sendAs(0)]).toEqual([200, 200, 429]);
  expect((await api.get('/api/clients/partner-b/quotas')).json()).toMatchObject({ quotas: [{ used: 1 }, { used: 1 }] });
  expect(upstream.hits).toHaveLength(5);
  expect(gate.log().filter(({ msg }) => msg === 'operator action')).toMatchObject([
    {
      ...{ action: 'reset-quotas', client, by: '127.0.0.1', outcome: 'done' },
      before: { api: { [rolling.quota]: { used: 2, limit: 2 }, [month.quota]: { used: 2, limit: 9 } } },
      after: { api: { [rolling.quota]: { used: 0, limit: 2 }, [month.quota]: { used: 0, limit: 9 } } },
    },
  ]);
  const { events } = (await api.get('/api/timeline')).json() as { events: object[] };
  expect(events).toContainEqual(
    expect.objectContaining({ kind: 'reset', text: `quotas of client ${client} reset, by 127.0.0.1` }),
  );
});

test('shows and resets the count of a client that has sent nothing since the start', async () => {
  const { run } = await start(sqlite());
  const first = await run();
  for (let i = 0; i < 2; i += 1) await first.sendAs(0);
  await first.gate.close();
  const second = await run();
  expect((await second.api.get('/api/clients/partner-a/quotas')).json()).toMatchObject({ quotas: [{ used: 2 }, {}] });
  await second.api.post('/api/clients/partner-a/quotas/reset');
  await second.gate.close();
  const third = await run();
  expect([await third.sendAs(0), await third.sendAs(0), await third.sendAs(0)]).toEqual([200, 200, 429]);
});

test('names the reason if there is nothing to show: an unknown client, one without quotas, or no quotas at all', async () => {
  const { run } = await start();
  const { api, sendAs } = await run();
  await sendAs(2);
  const detail = async (of: typeof api, path: string): Promise<unknown[]> => {
    const response = path.endsWith('reset') ? await of.post(path) : await of.get(path);
    return [response.status, response.json()['detail']];
  };
  for (const path of ['/api/clients/nobody/quotas', '/api/clients/nobody/quotas/reset']) {
    expect(await detail(api, path)).toEqual([404, matching(/No quota has counted.*name that it authent/)]);
  }
  await eventually(
    () => detail(api, '/api/clients/other/quotas'),
    ([, text]) => String(text).includes('its class has no perClient.quota'),
  );
  const { run: runWithout } = await start('', '{maxRate: 10/s}');
  const without = await runWithout();
  expect(await detail(without.api, '/api/clients/partner-a/quotas')).toEqual([
    404,
    matching(/set clients\.classes\.NAME\.perClient\.quota/),
  ]);
});

test('the command prints a table and resets', async () => {
  const { run } = await start();
  const { gate, sendAs } = await run();
  await sendAs(0);
  const target = { admin: gate.adminUrl, token: TOKEN, client: 'partner-a' };
  const shown = await runClientQuotas({ ...target, action: 'quotas', json: false });
  expect(shown).toMatchObject({
    text: matching(
      /^quotas of client [0-9a-f]{16}:\nupstream {2}quota +used {2}limit {2}remaining {2}resets\napi +class:partners\/client\/rolling-24h +1 +2 +1 +20\d\d-/,
    ),
  });
  const reset = await runClientQuotas({ ...target, action: 'reset-quotas', json: true });
  expect(reset).toMatchObject({ kind: 'done', text: matching(/"used":0/) });
  expect(await runClientQuotas({ ...target, client: 'nobody', action: 'quotas', json: false })).toMatchObject({
    ...{ kind: 'failed', exitCode: 1 },
    message: matching(/^nobody: No quota has counted a request of such a client/),
  });
});
