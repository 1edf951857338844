import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { headerOf, send, sendAndLeave } from '../../support/clients/send.ts';
import { startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const fast = 'retry: {attempts: 4, backOff: {strategy: fixed, baseInterval: 10ms}}';
const ends = (outcome: string) => `tidegate_retry_outcomes_total{upstream="api",outcome="${outcome}"}`;
const retries = (reason: string) => `tidegate_retries_total{upstream="api",reason="${reason}"}`;

test('retries a keyed POST with the same bytes, key and headers', async () => {
  const upstream = await startHttpUpstream((n, response, _hit, request) => {
    if (n === 1) response.writeHead(503).end('later');
    else if (n === 2) request.socket.resetAndDestroy();
    else if (n === 3) response.writeHead(500).end('oops');
    else response.writeHead(201).end('made');
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${fast}}}`);

  const body = randomBytes(60_000);
  const answer = await send(gate.url, '/charges?expand=%5B%5D', {
    method: 'POST',
    headers: [
      'Idempotency-Key',
      'k-1',
      'Content-Type',
      'application/octet-stream',
      'X-Custom',
      'one',
      'X-Custom',
      'two',
    ],
    body,
  });

  expect(answer.status).toBe(201);
  expect(answer.body.toString()).toBe('made');
  expect(answer.header('tidegate-attempts')).toBe('4');
  expect(answer.header('tidegate-outcome')).toBeUndefined();
  expect(upstream.hits).toHaveLength(4);
  for (const hit of upstream.hits) {
    expect(hit.body.equals(body)).toBe(true);
    expect(hit.headers).toEqual(upstream.hits[0]?.headers);
    expect(hit.target).toBe('/charges?expand=%5B%5D');
    expect(headerOf(hit.headers, 'idempotency-key')).toBe('k-1');
  }
  const requests = 'tidegate_requests_total{route="/",method="POST",code="201",outcome="recovered"}';
  expect(await gate.metric(requests)).toBe(1);
  expect(await gate.metric(retries('status_5xx'))).toBe(2);
  expect(await gate.metric(retries('reset'))).toBe(1);
  expect(await gate.metric(ends('success'))).toBe(1);
});

test('retries a chunked keyed POST with the same bytes', async () => {
  const upstream = await startHttpUpstream((n, response) => response.writeHead(n < 3 ? 503 : 200).end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${fast}}}`);
  const body = Buffer.concat([randomBytes(5000), Buffer.from('\r\n0\r\n\r\n'), randomBytes(5000)]);
  const answer = await send(gate.url, '/', { method: 'POST', headers: ['Idempotency-Key', 'k'], body, chunked: true });
  expect(answer.status).toBe(200);
  expect(upstream.hits.map((hit) => hit.body.equals(body))).toEqual([true, true, true]);
});

test('charges a keyed write once when its connection breaks after the charge', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${fast}}}`);
  const answer = await send(gate.url, '/charges', {
    method: 'POST',
    headers: [
      ...['Idempotency-Key', 'k-2', 'X-Intent', 'order-7', 'X-Practice-Id', 'order-7'],
      ...['X-Practice-Script', 'reset-after-charge, 500-after-charge, 200'],
    ],
    body: 'amount=100&currency=eur',
  });
  expect(answer.status).toBe(200);
  expect(answer.json()['amount']).toBe(100);
  expect(answer.header('idempotent-replayed')).toBe('true');
  expect(upstream.attempts('order-7')).toBe(3);
  expect(upstream.ledger.charges).toBe(1);
  expect(upstream.ledger.doubleCharges).toBe(0);
});

test('uses the delays of the client’s class', async () => {
  const upstream = await startHttpUpstream((n, response) => response.writeHead(n % 2 === 1 ? 503 : 200).end());
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", timeout: 100s, retry: {backOff: {strategy: fixed, baseInterval: 40s}}}}
clients:
  classes:
    checkout: {match: {header: {x-priority: high}}, backOff: {baseInterval: 1ms}}
    batch: {match: {header: {x-priority: low}}, backOff: {baseInterval: 600ms}}
`);
  const ask = (priority: string) => send(gate.url, '/', { headers: ['X-Priority', priority] });
  expect((await ask('high')).status).toBe(200);
  expect((await ask('low')).status).toBe(200);
  const [first, second, third, fourth] = upstream.hits.map(({ at }) => at);
  expect(second! - first!).toBeLessThan(20_000); // the upstream's wait is 40 s
  expect(fourth! - third!).toBeGreaterThanOrEqual(600);
  expect(fourth! - third!).toBeLessThan(20_000);
  // Without a class, the wait is the upstream's.
  const slept = 'tidegate_retries_total{upstream="api",reason="status_5xx"}';
  await sendAndLeave(gate.url, '/', {}, async () => (await gate.metric(slept)) === 3);
  expect(upstream.hits).toHaveLength(5);
});
