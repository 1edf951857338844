/** Endpoint limits under an account's, over sockets, against an upstream that enforces both. */
import { describe, expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

/** So slow that a spent burst stays spent during a test. */
const bucket = (burst: number) => ({ kind: 'token-bucket', rate: 0.001, burst }) as const;

const LIMITS = `limits: [{name: endpoint, match: {path: ["/v1/{resource}", "/v1/{resource}/**"]}}]`;

function config(url: string, limits = LIMITS, more = ''): string {
  return `
upstreams: {api: {url: "${url}", retry: {attempts: 1}, ${limits}}}
${more}`;
}

describe('an endpoint that is spent', () => {
  test('is held to its limit, while the rest of the account is not paced', async () => {
    const upstream = await startUpstream({
      limits: [
        { name: 'endpoint', path: ['/v1/{resource}', '/v1/{resource}/**'], limit: bucket(3), reason: 'endpoint-rate' },
      ],
    });
    const gate = await startTidegate(config(upstream.url));
    for (let i = 0; i < 3; i += 1) expect((await send(gate.url, '/v1/charges')).status).toBe(200);
    expect((await send(gate.url, '/v1/charges/ch_1')).status).toBe(429);

    const views = gate.view().limits.map(({ nested, key, state }) => [nested, key, state]);
    expect(views).toContainEqual(['', '', 'open']);
    expect(views).toContainEqual(['endpoint', 'charges', 'backoff']);
    // Refunds have a burst of three of their own.
    for (let i = 0; i < 3; i += 1) expect((await send(gate.url, '/v1/refunds')).status).toBe(200);
    expect((await send(gate.url, '/elsewhere')).status).toBe(200);
  });

  test('is recognized in any spelling of its path, and behind a route prefix', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(
      config(upstream.url, LIMITS, 'routes: [{path: /stripe, upstream: api, rewritePrefix: /v1}]'),
    );
    const paths = ['/stripe/charges', '/stripe/%63harges/', '/stripe/charges/ch_1?limit=3'];
    for (const path of paths) await send(gate.url, path);
    expect(
      gate
        .view()
        .limits.filter(({ nested }) => nested === 'endpoint')
        .map(({ key }) => key),
    ).toEqual(['charges']);
  });

  test('reports path segments only where they are plain, and distinguishes no clients by them', async () => {
    const upstream = await startUpstream();
    const secret = `sk_live_${'x'.repeat(24)}`;
    const gate = await startTidegate(config(upstream.url, LIMITS, 'clients: {key: [path:2]}'));
    await send(gate.url, `/v1/${secret}`);
    await send(gate.url, `/v1/${'y'.repeat(100)}`);
    await send(gate.url, '/v1/%E2%82%AC');
    const keys = gate
      .view()
      .limits.filter(({ nested }) => nested === 'endpoint')
      .map(({ key }) => key);
    expect(keys).toHaveLength(3);
    for (const key of keys) expect(key).toMatch(/^#[0-9a-f]{16}$/);
  });
});

describe('endpoint limits', () => {
  test('appear in metrics, the API and explanations', async () => {
    const upstream = await startUpstream({
      limits: [{ name: 'endpoint', path: ['/v1/{resource}'], limit: bucket(2), reason: 'endpoint-rate' }],
    });
    const gate = await startTidegate(config(upstream.url));
    for (let i = 0; i < 3; i += 1) await send(gate.url, '/v1/charges');
    const rejected = gate.requests().at(-1);

    const rate = await gate.metric(
      'tidegate_ratelimit_rate_requests_per_second{upstream="api",limit="endpoint",scope="upstream"}',
    );
    expect(rate).toBeGreaterThan(0);
    expect(await gate.metric('tidegate_ratelimit_state{upstream="api",limit="endpoint",state="backoff"}')).toBe(1);
    expect(await gate.metric('tidegate_ratelimit_state{upstream="api",state="backoff"}')).toBe(0);
    expect(await gate.metric('tidegate_ratelimit_cuts_total{upstream="api",limit="endpoint",cause="first"}')).toBe(1);

    const status = (await (await fetch(`${gate.adminUrl}/api/status`)).json()) as { upstreams: object[] };
    expect(status.upstreams[0]).toMatchObject({
      state: 'open',
      nestedLimits: [{ name: 'endpoint', scope: 'upstream', which: 'charges', state: 'backoff', limits: 1 }],
    });

    const id = String(rejected?.['requestId'] ?? rejected?.['id']);
    const explanation = (await (await fetch(`${gate.adminUrl}/explain/${id}`)).json()) as {
      steps: { what: string; text: string }[];
    };
    const answered = explanation.steps.find(({ what }) => what === 'answered');
    expect(answered?.text).toContain('attributed to the limit endpoint charges');
    expect(answered).toMatchObject({ heldAgainst: 'endpoint charges' });
  });

  test('are named to a client that waits for one', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(
      config(upstream.url, `${LIMITS.replace('}}]', '}, maxRate: 1/s}]')}, queue: {maxWait: 0}`),
    );
    await send(gate.url, '/v1/charges');
    const refused = await send(gate.url, '/v1/charges');
    expect(refused.status).toBe(429);
    const id = String(gate.requests().at(-1)?.['requestId'] ?? gate.requests().at(-1)?.['id']);
    const answer = await fetch(`${gate.adminUrl}/explain/${id}`, { headers: { accept: 'text/plain' } });
    const text = await answer.text();
    expect(text).toMatch(/the limit endpoint charges allows\s+1\/s/);
  });
});

describe('each method, each client', () => {
  test('has its own limit where configured', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(
      config(
        upstream.url,
        `limits: [{name: write, match: {method: [POST, PUT]}, each: [method]},
          {name: tenant, scope: client, initialRate: 50/s}]`,
        'clients: {key: [header:x-api-key]}',
      ),
    );
    await send(gate.url, '/a', { method: 'POST', headers: ['x-api-key', 'one'] });
    await send(gate.url, '/b', { method: 'PUT', headers: ['x-api-key', 'two'] });
    await send(gate.url, '/b', { headers: ['x-api-key', 'two'] });
    const { limits } = gate.view();
    expect(limits.filter(({ nested }) => nested === 'write').map(({ key }) => key)).toEqual(['POST', 'PUT']);
    expect(limits.filter(({ nested }) => nested === 'tenant').map(({ scope }) => scope)).toEqual(['client', 'client']);
  });
});

describe('a class with a maxRate', () => {
  test('is held to it, and other classes are not', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(
      config(
        upstream.url,
        'queue: {maxWait: 0}',
        'clients: {key: [header:x-api-key], classes: {batch: {match: {key: ["batch-*"]}, maxRate: 1/s}}}',
      ),
    );
    const as = async (key: string) => (await send(gate.url, '/a', { headers: ['x-api-key', key] })).status;
    expect(await as('batch-1')).toBe(200);
    expect(await as('batch-2')).toBe(429);
    for (let i = 0; i < 5; i += 1) expect(await as('shop')).toBe(200);
  });
});

describe('a reload', () => {
  test('adds, changes and removes nested limits, and keeps what the others have learned', async () => {
    const upstream = await startUpstream({ limits: [{ name: 'a', path: ['/a'], limit: bucket(2) }] });
    const gate = await startTidegate(config(upstream.url, 'limits: [{name: a, match: {path: /a}}]'));
    for (let i = 0; i < 3; i += 1) await send(gate.url, '/a');
    const rateOf = (name: string) => gate.view().limits.find(({ nested }) => nested === name)?.rate;
    const learned = rateOf('a');
    expect(learned).toBeLessThan(100);

    await gate.rewrite(config(upstream.url, 'limits: [{name: b, maxRate: 7/s}, {name: a, match: {path: /a}}]'));
    expect(rateOf('a')).toBe(learned);
    expect(rateOf('b')).toBe(7);
    await gate.rewrite(config(upstream.url, 'limits: [{name: b, maxRate: 9/s}]'));
    expect(rateOf('b')).toBe(9);
    await expect.poll(() => rateOf('a')).toBeUndefined();
    expect((await send(gate.url, '/elsewhere')).status).toBe(200);
  });
});
