/** Envoy's global rate limit filter asks Tidegate. */
import { status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { type EnvoyClient, type Message, openEnvoyClient } from '../../support/clients/envoy-client.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';

const NOBODY = 'http://127.0.0.1:9';
const TRUSTED = 'clients: {trustedProxies: [127.0.0.0/8], key: ["header:x-api-key", ip]}\n';
const ONE = 'rateLimit: {initialRate: 1/s, maxRate: 1/s}, queue: {maxWait: 0}';

function start(upstreams = `api: {url: "${NOBODY}", ${ONE}}`, more = ''): Promise<Tidegate> {
  return startTidegate(`upstreams: {${upstreams}}\n${TRUSTED}check: {grpc: true${more}}\n`);
}

function clientOf({ url }: { readonly url: string }): EnvoyClient {
  return openEnvoyClient(new URL(url).host);
}

type Entry = readonly [key: string, value: string];

/** A RateLimitRequest with these descriptors. */
function ask(...descriptors: readonly (readonly Entry[])[]): Message {
  return {
    domain: 'edge',
    descriptors: descriptors.map((entries) => ({ entries: entries.map(([key, value]) => ({ key, value })) })),
  };
}

function toRecord(headers: unknown): Record<string, string> {
  const list = (headers ?? []) as { key: string; value: string }[];
  return Object.fromEntries(list.map(({ key, value }) => [key, value]));
}

test('answers OK below the limit, with a permit for the upstream', async () => {
  const gate = await start(`api: {url: "${NOBODY}"}`);
  const answer = await clientOf(gate).shouldRateLimit(ask([['remote_address', '203.0.113.7']]));
  expect(answer).toMatchObject({ overallCode: 'OK', statuses: [{ code: 'OK', limitRemaining: 1 }] });
  expect(toRecord(answer['requestHeadersToAdd'])['tidegate-permit']).toMatch(/^[\w-]+$/);
});

test('answers OVER_LIMIT with the time of the reset, the current limit, Retry-After and a problem document', async () => {
  const gate = await start();
  const envoy = clientOf(gate);
  const request = ask([['remote_address', '203.0.113.7']], [['x-api-key', 'a']]);
  expect(await envoy.shouldRateLimit(request)).toMatchObject({ overallCode: 'OK' });
  const answer = await envoy.shouldRateLimit(request);
  const headers = toRecord(answer['responseHeadersToAdd']);
  const after = Number(headers['retry-after']);
  expect(after).toBeGreaterThanOrEqual(1);
  const one = {
    code: 'OVER_LIMIT',
    currentLimit: { requestsPerUnit: 1, unit: 'SECOND' },
    durationUntilReset: { seconds: after },
  };
  expect(answer).toMatchObject({ overallCode: 'OVER_LIMIT', statuses: [one, one] });
  expect(headers['ratelimit']).toBe(`"tidegate";r=0;t=${after}`);
  expect(headers['content-type']).toBe('application/problem+json');
  expect(JSON.parse(String(answer['rawBody']))).toMatchObject({ status: 429, retryAfter: after });
});

test('takes a token of no limit if one of the limits refuses', async () => {
  const writes = '{name: writes, match: {method: POST}, initialRate: 0.1/s, maxRate: 0.1/s}';
  const all = 'rateLimit: {initialRate: 2/s, maxRate: 2/s}, queue: {maxWait: 1s}';
  const gate = await start(`api: {url: "${NOBODY}", ${all}, limits: [${writes}]}`);
  const envoy = clientOf(gate);
  const codes: unknown[] = [];
  for (const method of ['POST', 'POST', 'POST', 'GET']) {
    codes.push((await envoy.shouldRateLimit(ask([['method', method]], [['path', '/v1']])))['overallCode']);
  }
  // If the refused writes had taken tokens of the upstream, the last request would have to wait for longer than 1 s.
  expect(codes).toEqual(['OK', 'OVER_LIMIT', 'OVER_LIMIT', 'OK']);
});

test.each([
  ['the domain', { domain: 'b', descriptors: [{ entries: [{ key: 'x-api-key', value: 'a' }] }] }],
  ['an entry for the upstream', ask([['upstream', 'b']])],
  ['a generic key', ask([['generic_key', 'b']])],
  ['an entry for the route', ask([['route', '/b']])],
  ['the path', ask([['path', '/b/x']])],
])('finds the route by %s', async (_, request) => {
  const gate = await startTidegate(
    `upstreams: {a: {url: "${NOBODY}"}, b: {url: "${NOBODY}"}}\nroutes: [{path: /a, upstream: a}, {path: /b, upstream: b}]\n${TRUSTED}check: {grpc: true}\n`,
  );
  await clientOf(gate).shouldRateLimit(request);
  await eventually(gate.requests, (lines) => lines.length === 1);
  expect(gate.requests()[0]).toMatchObject({ upstream: 'b', outcome: 'checked' });
});

test('gives keys of descriptors the configured meaning, and follows a reload', async () => {
  const yaml = (meaning: string): string =>
    `upstreams: {api: {url: "${NOBODY}"}}\n${TRUSTED}check: {grpc: true, descriptors: {tenant: "${meaning}"}}\n`;
  const gate = await startTidegate(yaml('header:x-api-key'));
  const envoy = clientOf(gate);
  const clients = async (count: number): Promise<unknown[]> => {
    await eventually(gate.requests, (lines) => lines.length === count);
    return gate.requests().map(({ client }) => client);
  };
  await envoy.shouldRateLimit(ask([['tenant', 'a']]));
  await envoy.shouldRateLimit(ask([['tenant', 'b']]));
  const [a, b] = await clients(2);
  expect(a).not.toBe(b);
  expect((await gate.rewrite(yaml('ignore'))).kind).toBe('applied');
  await envoy.shouldRateLimit(ask([['tenant', 'a']]));
  await envoy.shouldRateLimit(ask([['tenant', 'b']]));
  const [, , third, fourth] = await clients(4);
  expect(third).toBe(fourth);
});

test('counts as many requests as hits_addend says, and none for 0', async () => {
  const gate = await start(`api: {url: "${NOBODY}"}`);
  const envoy = clientOf(gate);
  await envoy.shouldRateLimit({ ...ask([['x-api-key', 'a']]), hitsAddend: 3 });
  await eventually(gate.requests, (lines) => lines.length === 3);
  const none = { domain: 'edge', descriptors: [{ entries: [], hitsAddend: { value: 0 } }] };
  expect(await envoy.shouldRateLimit(none)).toMatchObject({ overallCode: 'OK' });
  expect(gate.requests()).toHaveLength(3);
});

test.each([
  ['no descriptors', { domain: 'edge' }, status.INVALID_ARGUMENT, 'at least one'],
  ['two values of one key', ask([['x-api-key', 'a']], [['x-api-key', 'b']]), status.INVALID_ARGUMENT, 'has two values'],
  ['too many hits', { ...ask([['path', '/']]), hitsAddend: 101 }, status.INVALID_ARGUMENT, 'at most 100'],
  ['an unknown upstream', ask([['upstream', 'x']]), status.INVALID_ARGUMENT, 'upstream'],
])('returns an error for %s', async (_, request, code, details) => {
  const gate = await start(`api: {url: "${NOBODY}"}`);
  await expect(clientOf(gate).shouldRateLimit(request)).rejects.toMatchObject({
    code,
    details: expect.stringContaining(details) as string,
  });
});

test('returns PERMISSION_DENIED to a sender that is not a trusted proxy', async () => {
  const gate = await startTidegate(
    `upstreams: {api: {url: "${NOBODY}"}}\nclients: {trustedProxies: [192.0.2.1]}\ncheck: {grpc: true}\n`,
  );
  const asked = clientOf(gate).shouldRateLimit(ask([['path', '/']]));
  await expect(asked).rejects.toMatchObject({ code: status.PERMISSION_DENIED });
});
