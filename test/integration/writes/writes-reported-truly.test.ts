/** Regressions: writes sent twice or to another endpoint, and outcomes reported wrongly. */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { HttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import type { Received } from '../../support/clients/send.ts';
import { begin, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const KEY = ['Idempotency-Key', 'order-1'];
const as = (token: string): string[] => [...KEY, 'Authorization', `Bearer ${token}`];
const up = (urls: string[], idem: string, retry = 'attempts: 1', more = '') =>
  `upstreams: {api: {${urls.length === 1 ? `url: "${urls[0]}"` : `urls: [${urls.map((u) => `"${u}"`).join(', ')}]`}, retry: {${retry}, backOff: {strategy: fixed, baseInterval: 1ms}}, idempotency: {${idem}}${more}}}\n`;
const post = (url: string, headers: readonly string[] = KEY, body = 'x', target = '/charges'): Promise<Received> =>
  send(url, target, { method: 'POST', headers, body });
const outcomeOf = (a: Received) => [a.status, a.header('tidegate-outcome')];
const UNKNOWN = [504, 'unknown'];
type A = 'reset' | number | readonly [number, Record<string, string>];
const answering = (...answers: readonly A[]): Promise<HttpUpstream> =>
  startHttpUpstream((n, response) => {
    const answer = answers[Math.min(n, answers.length) - 1] ?? 200;
    if (answer === 'reset') return response.destroy();
    const [status, headers] = typeof answer === 'number' ? [answer, {}] : answer;
    return response.writeHead(status, headers).end('said');
  });

test('sends an unresolved write nowhere after a reload to another url', async () => {
  const [a, b] = [await answering('reset'), await answering(201)];
  const gate = await startTidegate(up([a.url], 'ttl: 24h'));
  expect(outcomeOf(await post(gate.url))).toEqual(UNKNOWN);
  await gate.rewrite(up([b.url], 'ttl: 24h'));
  expect(outcomeOf(await post(gate.url))).toEqual(UNKNOWN);
  expect(b.hits).toHaveLength(0);
});
test('sends an unresolved write nowhere after a reload that removes its endpoint', async () => {
  const [a, b] = [await answering('reset'), await answering('reset')];
  const gate = await startTidegate(up([a.url, b.url], 'ttl: 24h'));
  expect(outcomeOf(await post(gate.url))).toEqual(UNKNOWN);
  const other = a.hits.length === 1 ? b : a;
  await gate.rewrite(up([other.url], 'ttl: 24h'));
  await post(gate.url);
  expect(other.hits).toHaveLength(0);
});
test('counts repeats for a removed endpoint as failures of no other', async () => {
  const [a, b, c] = [await answering('reset'), await answering(200), await answering('reset')];
  const gate = await startTidegate(up([a.url], 'ttl: 24h'));
  await post(gate.url);
  await gate.rewrite(up([b.url, c.url], 'ttl: 24h'));
  for (let i = 0; i < 6; i += 1) await post(gate.url);
  expect(gate.log().filter(({ msg }) => msg === 'endpoint ejected')).toEqual([]);
  const statuses = [];
  for (let i = 0; i < 6; i += 1) statuses.push((await send(gate.url, '/free')).status);
  expect(statuses.filter((s) => s === 200)).toHaveLength(3);
});
test.each([
  [409, {}],
  [429, { 'X-Lock': 'yes' }],
] as const)('retries a key in progress at one endpoint (%i) there', async (status, headers) => {
  const [a, b] = [await answering([status, headers], [201, { 'Idempotent-Replayed': 'true' }]), await answering(201)];
  const more = status === 429 ? ', throttle: {answers: [{status: 429, header: {X-Lock: "yes"}, is: lock}]}' : '';
  const gate = await startTidegate(up([a.url, b.url], 'ttl: 24h', 'attempts: 4, retryOn: [lock]', more));
  await post(gate.url);
  expect(b.hits).toHaveLength(0);
  expect(a.hits).toHaveLength(2);
});
test.each(['X-Account', 'Stripe-Account'])(
  'takes no account from an account header %s that appears twice',
  async (name) => {
    const a = await answering('reset', 201);
    const gate = await startTidegate(up([a.url], `ttl: 1s, account: header:${name}`));
    expect(outcomeOf(await post(gate.url, [...KEY, name, 'a']))).toEqual(UNKNOWN);
    await sleep(1100);
    const answer = await post(gate.url, [...KEY, name, 'a', name, 'a']);
    expect([a.hits.length, answer.status]).not.toEqual([2, 201]);
  },
);
test.each(['', 'b'])('rejects an account header with another value of %j', async (second) => {
  const a = await answering('reset', 201);
  const gate = await startTidegate(up([a.url], 'ttl: 1s'));
  await post(gate.url, [...KEY, 'Stripe-Account', 'a']);
  await sleep(1100);
  await post(gate.url, [...KEY, 'Stripe-Account', 'a', 'Stripe-Account', second]);
  expect(a.hits).toHaveLength(1);
});
test('keeps an unresolved write through a reload of credentialHeader', async () => {
  const a = await answering('reset', 201);
  const gate = await startTidegate(up([a.url], 'ttl: 1s'));
  expect(outcomeOf(await post(gate.url, as('t')))).toEqual(UNKNOWN);
  await gate.rewrite(up([a.url], 'ttl: 1s', 'attempts: 1', ', rateLimit: {credentialHeader: X-Api-Key}'));
  await sleep(1100);
  expect(outcomeOf(await post(gate.url, as('t')))).toEqual([409, 'unknown']);
  expect(a.hits).toHaveLength(1);
});
test('keeps it for another body too, as bodies under another credential header are not compared', async () => {
  const a = await answering('reset', 201);
  const gate = await startTidegate(up([a.url], 'ttl: 1s'));
  const headers = [...as('t'), 'X-Cred', 'z'];
  expect(outcomeOf(await send(gate.url, '/charges', { method: 'POST', headers, body: '{"t":1}' }))).toEqual(UNKNOWN);
  await gate.rewrite(up([a.url], 'ttl: 1s', 'attempts: 1', ', rateLimit: {credentialHeader: X-Cred}'));
  await sleep(1100);
  expect(outcomeOf(await send(gate.url, '/charges', { method: 'POST', headers, body: '{"t":2}' }))).toEqual([
    409,
    'unknown',
  ]);
});
test('recognizes a write after its list of accounts was reordered', async () => {
  const a = await answering('reset', 201);
  const h = [...KEY, 'X-A', '1', 'X-B', '2'];
  const gate = await startTidegate(up([a.url], 'ttl: 1s, account: [header:X-A, header:X-B]'));
  expect(outcomeOf(await post(gate.url, h))).toEqual(UNKNOWN);
  await gate.rewrite(up([a.url], 'ttl: 1s, account: [header:X-B, header:X-A]'));
  await sleep(1100);
  expect(outcomeOf(await post(gate.url, h))).toEqual([409, 'unknown']);
  expect(a.hits).toHaveLength(1);
});
const doneThenHeld = async (yaml: string) => {
  const open: (() => void)[] = [];
  const a = await startHttpUpstream((n, r) => {
    if (n === 1) r.writeHead(201).end('paid');
    else open.push(() => r.writeHead(201, { 'Idempotent-Replayed': 'true' }).end('paid'));
  });
  const gate = await startTidegate(yaml + up([a.url], 'ttl: 24h'));
  expect(outcomeOf(await post(gate.url))).toEqual([201, undefined]);
  const again = post(gate.url);
  await eventually(() => open.length, Boolean);
  return { gate, again, finish: () => open[0]?.() };
};
test('rejects a repeat of a completed write plainly', async () => {
  const { gate, again, finish } = await doneThenHeld('limits: {requests: 1}\n');
  const third = outcomeOf(await post(gate.url));
  finish();
  await again;
  expect(third).toEqual([503, undefined]);
});
test('rejects a repeat of a completed write plainly during a drain', async () => {
  const { gate, again, finish } = await doneThenHeld('drain: {delay: 0, timeout: 300ms}\n');
  const third = post(gate.url).then(outcomeOf);
  await sleep(100);
  const drained = gate.drain();
  const got = await third;
  finish();
  await again;
  await drained;
  expect(got).toEqual([503, undefined]);
});
test('keeps a write unresolved for both of two credentials', async () => {
  const a = await answering(201, 'reset', 'reset', 401);
  const gate = await startTidegate(up([a.url], 'ttl: 24h'));
  for (const t of ['a', 'b', 'c']) await post(gate.url, as(t));
  expect(outcomeOf(await post(gate.url, as('b')))).toEqual(UNKNOWN);
});
test('keeps a write completed for both of two credentials', async () => {
  const a = await answering(201, 201, 'reset', 401);
  const gate = await startTidegate(up([a.url], 'ttl: 24h'));
  for (const t of ['a', 'b', 'a']) await post(gate.url, as(t));
  expect(outcomeOf(await post(gate.url, as('a')))).toEqual([401, undefined]);
});
test('treats a body not yet read as that of the older of two writes', async () => {
  const a = await answering('reset', 'reset', 201);
  const gate = await startTidegate(up([a.url], 'ttl: 1s'));
  await post(gate.url, as('a'), 'X');
  await sleep(800);
  await post(gate.url, as('b'), 'YY');
  await sleep(400);
  const got = await new Promise((resolve) => {
    const r = begin(
      gate.url,
      '/charges',
      { method: 'POST', headers: [...as('a2'), 'Expect', '100-continue', 'Content-Length', '1'] },
      (i) => {
        i.resume();
        resolve([i.statusCode, i.headers['tidegate-outcome']]);
      },
    );
    r.on('continue', () => r.end('X'));
    r.flushHeaders();
  });
  expect([got, a.hits.length]).toEqual([[409, 'unknown'], 2]);
});
test('distinguishes writes to two hosts with preserveHost', async () => {
  const a = await answering(201);
  const gate = await startTidegate(up([a.url], 'ttl: 1s', 'attempts: 1', ', preserveHost: true'));
  await post(gate.url, [...KEY, 'Host', 'a.test'], 'A');
  await sleep(1100);
  expect(outcomeOf(await post(gate.url, [...KEY, 'Host', 'b.test'], 'B'))).toEqual([201, undefined]);
});
test('ignores a key in the body if Content-Type is hop-by-hop', async () => {
  const a = await answering('reset', 201);
  const gate = await startTidegate(up([a.url], 'jsonField: key', 'attempts: 2'));
  await post(gate.url, ['Content-Type', 'application/json', 'Connection', 'Content-Type'], '{"key":"k"}');
  expect(a.hits).toHaveLength(1);
});
test('does not resolve a later attempt in progress by an earlier decline', async () => {
  const open: ServerResponse[] = [];
  const a = await startHttpUpstream((n, r) => {
    if (n === 1) r.writeHead(402).end();
    else if (n === 2) open.push(r);
    else r.writeHead(401).end();
  });
  const gate = await startTidegate(up([a.url], 'ttl: 24h, concurrent: pass'));
  expect(outcomeOf(await post(gate.url))).toEqual([402, undefined]);
  const under = post(gate.url);
  await eventually(() => open.length, Boolean);
  const got = outcomeOf(await post(gate.url));
  open[0]?.destroy();
  expect(outcomeOf(await under)).toEqual(UNKNOWN);
  expect(got).toEqual(UNKNOWN);
});
test('does not resolve another credential’s attempt in progress by a response to one', async () => {
  const open: ServerResponse[] = [];
  const a = await startHttpUpstream((n, r) => {
    if (n === 1) r.writeHead(201).end();
    else if (n === 2) open.push(r);
    else r.writeHead(401).end();
  });
  const gate = await startTidegate(up([a.url], 'ttl: 24h, concurrent: pass'));
  expect(outcomeOf(await post(gate.url, as('a')))).toEqual([201, undefined]);
  const under = post(gate.url, as('b'));
  await eventually(() => open.length, Boolean);
  const got = outcomeOf(await post(gate.url, as('b')));
  open[0]?.destroy();
  expect(outcomeOf(await under)).toEqual(UNKNOWN);
  expect(got).toEqual(UNKNOWN);
});
test('distinguishes accounts in claims that are long numbers', async () => {
  const a = await answering(201);
  const gate = await startTidegate(up([a.url], 'ttl: 1s, account: jwt:acct'));
  const jwt = (id: string) => [
    ...KEY,
    'Authorization',
    `Bearer e30.${Buffer.from(`{"acct":${id}}`).toString('base64url')}.x`,
  ];
  await post(gate.url, jwt('90071992547409931'));
  await sleep(1100);
  expect(outcomeOf(await post(gate.url, jwt('90071992547409932')))).toEqual([201, undefined]);
});
