/** Quotas and rates of classes and of single clients, over sockets. A rolling day has no midnight during a test. */
import { expect, test } from 'vitest';
import { makeKeyFile, type KeyFile } from '../../support/clients/api-keys.ts';
import { send, type Received } from '../../support/clients/send.ts';
import { startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const DAY_SECONDS = 86_400;

/** @param ofClass of class `partners`, which has the clients whose names begin with `partner-` */
function configure(url: string, file: KeyFile, ofClass: string, upstream = ''): string {
  return `upstreams: {api: {url: "${url}"${upstream}}}
clients:
  auth: {apiKeys: {file: ${file.path}}}
  classes: {partners: {match: {key: ["partner-*"]}, ${ofClass}}}`;
}

async function sendMany(gate: Tidegate, key: string | undefined, count: number): Promise<Received[]> {
  const responses: Received[] = [];
  const headers = ['Tidegate-Key', key ?? ''];
  for (let i = 0; i < count; i += 1) responses.push(await send(gate.url, '/v1/items', { headers }));
  return responses;
}

const statuses = (responses: readonly Received[]): number[] => responses.map(({ status }) => status);
const reasons = (responses: readonly Received[]): unknown[] => responses.map((each) => each.json()['reason']);

test('a client gets no more than its quota and that of its class, and learns when to return', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('ok'));
  const file = makeKeyFile('partner-a', 'partner-b', 'shop');
  const [a, b, shop] = file.keys;
  const quotas = 'quota: 5/rolling 24h, perClient: {quota: 3/rolling 24h}';
  const gate = await startTidegate(configure(upstream.url, file, quotas));
  const ofA = await sendMany(gate, a, 4);
  expect(statuses(ofA)).toEqual([200, 200, 200, 429]);
  expect(statuses(await sendMany(gate, b, 3))).toEqual([200, 200, 429]);
  expect(statuses(await sendMany(gate, shop, 6))).toEqual([200, 200, 200, 200, 200, 200]);
  expect(upstream.hits).toHaveLength(11);

  const refused = ofA.at(-1);
  const retryAfter = Number(refused?.header('retry-after'));
  expect(retryAfter).toBeGreaterThanOrEqual(DAY_SECONDS - 60);
  expect(refused?.header('ratelimit')).toBe(`"tidegate";r=0;t=${retryAfter}`);
  expect(refused?.header('ratelimit-policy')).toBe(
    '"class:partners/rolling-24h";q=5;w=86400, "class:partners/client/rolling-24h";q=3;w=86400',
  );
  expect(refused?.header('tidegate-attempts')).toBe('0');
  expect(refused?.json()).toMatchObject({
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    status: 429,
    reason: 'client_quota_exceeded',
    retryAfter,
    error: { type: 'rate_limit_error', code: 'client_quota_exceeded' },
  });
  expect(gate.requests()[3]).toMatchObject({ reason: 'client_quota_exceeded', clientName: 'partner-a' });
  const id = String(refused?.header('tidegate-request-id'));
  const explanation = await fetch(`${gate.adminUrl}/explain/${id}`, { headers: { accept: 'text/plain' } });
  expect((await explanation.text()).replaceAll(/\s+/g, ' ')).toMatch(
    /refused \(client_quota_exceeded\): the quota class:partners\/client\/rolling-24h of 3 requests for this client is used up until 20\d\d-/,
  );
  const labels = '{upstream="api",quota="class:partners/rolling-24h"}';
  expect(await gate.metric(`tidegate_quota_limit${labels}`)).toBe(5);
  expect(await gate.metric(`tidegate_quota_remaining${labels}`)).toBe(0);
  expect(await (await fetch(`${gate.adminUrl}/metrics`)).text()).not.toContain('class:partners/client/');
  expect(await gate.metric('tidegate_client_quota_refusals_total{upstream="api"}')).toBe(2);
  expect(await gate.metric('tidegate_ratelimit_decisions_total{upstream="api",decision="refused"}')).toBe(2);
  expect(await gate.metric('tidegate_bound_used_ratio{bound="client_quotas"}')).toBeGreaterThan(0);
});

test('retries cost the client nothing, and a request that could not be sent is given back', async () => {
  const failing = await startHttpUpstream((n, response) => {
    response.statusCode = n % 3 === 0 ? 200 : 503;
    response.end();
  });
  const file = makeKeyFile('partner-a');
  const [key] = file.keys;
  const retry = ', retry: {retryOn: [503], attempts: 3, backOff: {baseInterval: 1ms}}';
  const gate = await startTidegate(configure(failing.url, file, 'perClient: {quota: 2/rolling 24h}', retry));
  expect(statuses(await sendMany(gate, key, 3))).toEqual([200, 200, 429]);
  expect(failing.hits).toHaveLength(6);

  const unreachable = await startTidegate(configure(await refusingUrl(), file, 'perClient: {quota: 2/rolling 24h}'));
  expect(statuses(await sendMany(unreachable, key, 3))).toEqual([502, 502, 502]);
});

test('a client that has used up its quota does not get another one at the fallback', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const other = await startHttpUpstream((_n, response) => response.end());
  const file = makeKeyFile('partner-a');
  const gate = await startTidegate(`upstreams:
  api: {url: "${upstream.url}", fallback: other}
  other: {url: "${other.url}"}
routes: [{upstream: api}]
clients:
  auth: {apiKeys: {file: ${file.path}}}
  classes: {partners: {match: {key: ["partner-*"]}, quota: 1/rolling 24h}}`);
  const responses = await sendMany(gate, file.keys[0], 2);
  expect([statuses(responses), reasons(responses.slice(1))]).toEqual([[200, 429], ['client_quota_exceeded']]);
  expect(other.hits).toHaveLength(0);
});

test('each client of a class has its own rate', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const file = makeKeyFile('partner-a', 'partner-b', 'shop');
  const [a, b, shop] = file.keys;
  const gate = await startTidegate(configure(upstream.url, file, 'perClient: {maxRate: 1/h}'));
  const ofA = await sendMany(gate, a, 2);
  expect([statuses(ofA), reasons(ofA.slice(1))]).toEqual([[200, 429], ['over_share']]);
  expect(ofA[1]?.header('ratelimit-policy')).toBe('"class:partners/client";q=1;w=3600');
  expect(statuses(await sendMany(gate, b, 2))).toEqual([200, 429]);
  expect(statuses(await sendMany(gate, shop, 3))).toEqual([200, 200, 200]);
});

test('requests without a credential, on an open route, use no quota of clients that have one', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const file = makeKeyFile('partner-a');
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}
routes: [{path: /, upstream: api}, {path: /open, upstream: api, auth: none}]
clients:
  auth: {apiKeys: {file: ${file.path}}}
  classes: {all: {match: {key: ["*"]}, quota: 2/rolling 24h, perClient: {quota: 1/rolling 24h}}}`);
  const open: Received[] = [];
  for (let i = 0; i < 4; i += 1) open.push(await send(gate.url, '/open'));
  expect(statuses(open)).toEqual([200, 200, 200, 200]);
  expect(statuses(await sendMany(gate, file.keys[0], 2))).toEqual([200, 429]);
});
