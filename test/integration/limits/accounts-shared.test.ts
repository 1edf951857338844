/** Accounts of several processes: the limit of an account is one limit, and a key has one account. */
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { accept, reject, startAccountUpstream } from '../../support/upstreams/account-upstream.ts';

const ACCOUNTS = 'accounts: [{name: main, value: "Bearer of-main"}, {name: spare, value: "Bearer of-spare"}]';

test('two workers share the stop of an account, and give a key the same account', async () => {
  const upstream = await startAccountUpstream({ 'of-main': reject(429, { 'Retry-After': '300' }), 'of-spare': accept });
  const { url, adminUrl } = await startWorkers(`
workers: 2
upstreams: {api: {url: "${upstream.url}", ${ACCOUNTS}}}
`);
  const sendTen = async (): Promise<readonly string[]> => {
    const before = upstream.received.length;
    const responses = await Promise.all(Array.from({ length: 10 }, () => send(url, '/')));
    expect(responses.map(({ status }) => status)).toEqual(Array<number>(10).fill(200));
    return upstream.tokens().slice(before);
  };
  await sendTen();
  await eventually(sendTen, (tokens) => !tokens.includes('of-main'));
  const before = upstream.received.length;
  upstream.set('of-main', accept);
  for (let i = 0; i < 10; i += 1) {
    await send(url, '/', { method: 'POST', body: '{}', headers: ['Idempotency-Key', 'k-2'] });
  }
  const tokens = upstream.tokens().slice(before);
  expect(new Set(tokens).size).toBeLessThanOrEqual(1);
  const exposition = await (await fetch(`${adminUrl}/metrics`)).text();
  expect(exposition).toMatch(
    /tidegate_account_requests_total\{upstream="api",account="spare",result="accepted"\} \d\d/,
  );
  expect(exposition).not.toContain('of-spare');
});

test('two replicas share the stop of an account through Redis, and give a key the same account', async () => {
  const redis = await startRedis();
  const upstream = await startAccountUpstream({ 'of-main': reject(429, { 'Retry-After': '300' }), 'of-spare': accept });
  const yaml = `
upstreams: {api: {url: "${upstream.url}", ${ACCOUNTS}}}
state: {store: redis, url: "${redis.url}", timeout: 240ms}
`;
  const [one, other] = [await startTidegate(yaml), await startTidegate(yaml)];
  expect((await send(one.url, '/')).status).toBe(200);
  const sendFour = async (): Promise<readonly string[]> => {
    const before = upstream.received.length;
    for (let i = 0; i < 4; i += 1) expect((await send(other.url, '/')).status).toBe(200);
    return upstream.tokens().slice(before);
  };
  await eventually(sendFour, (tokens) => !tokens.includes('of-main'));
  for (let i = 0; i < 8; i += 1) {
    const before = upstream.received.length;
    const write = { method: 'POST', body: '{}', headers: ['Idempotency-Key', `key-${i}`] };
    await send(one.url, '/', write);
    await send(other.url, '/', write);
    expect(new Set(upstream.tokens().slice(before)).size).toBeLessThanOrEqual(1);
  }
});
