/** Equal reads that wait at the same time are sent once (`coalesce`). */
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { makeKeyFile } from '../../support/clients/api-keys.ts';
import { begin, send } from '../../support/clients/send.ts';
import { fetchExplanation } from '../../support/admin/explanations.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

/** An upstream whose requests the test answers, and a proxy that coalesces. */
async function start(coalesce = 'true', more = '', ofUpstream = 'timeout: 60s') {
  const asked: ServerResponse[] = [];
  const upstream = await startHttpUpstream((_, response) => asked.push(response));
  const route = `{path: /, upstream: api, coalesce: ${coalesce}}`;
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", ${ofUpstream}}}\nroutes: [${route}]\n${more}`,
  );
  const inFlight = (count: number) =>
    eventually(
      () => gate.metric('tidegate_requests_in_flight{route="/"}'),
      (seen) => seen === count,
    );
  /** Resolves to the nth request that arrives at the upstream, from 1. */
  const nth = async (n: number): Promise<ServerResponse> => {
    await eventually(
      () => asked.length,
      (length) => length >= n,
    );
    return asked[n - 1]!; // there are so many
  };
  const outcome = (name: string) =>
    gate.metric(`tidegate_requests_total{route="/",method="GET",code="200",outcome="${name}"}`);
  return { upstream, asked, nth, gate, inFlight, outcome };
}

const byText = (a: string, b: string): number => a.localeCompare(b);

/** The bodies of responses. */
async function textsOf(sent: readonly ReturnType<typeof send>[]): Promise<string[]> {
  return (await Promise.all(sent)).map(({ body }) => body.toString());
}

test('sends the reads that wait for an equal one as one, once that is answered', async () => {
  const { asked, nth, gate, inFlight, outcome } = await start();
  const first = send(gate.url, '/a?b=1', { headers: ['Accept', 'text/plain'] });
  const one = await nth(1);
  const others = [1, 2, 3, 4].map((n) => {
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(15)}${n}-01`;
    return send(gate.url, '/a?b=1', { headers: ['traceparent', traceparent, 'accept', 'text/plain'] });
  });
  await inFlight(5);
  expect(asked).toHaveLength(1);
  one.end('before');
  (await nth(2)).writeHead(200, 'Fine', ['ETag', '"1"', 'Transfer-Encoding', 'chunked']).end('after');
  expect(await textsOf([first])).toEqual(['before']);
  for (const { status, reason, header, body } of await Promise.all(others)) {
    expect([status, reason, header('etag'), body.toString()]).toEqual([200, 'Fine', '"1"', 'after']);
  }
  expect(asked).toHaveLength(2);
  expect([await outcome('forwarded'), await outcome('coalesced')]).toEqual([2, 3]);
  const ids = new Set((await Promise.all(others)).map(({ header }) => header('tidegate-request-id')));
  expect(ids.size).toBe(4);
  const shared = gate.requests().filter((line) => line['outcome'] === 'coalesced');
  expect(shared.map(({ attempts, status }) => [attempts, status])).toEqual(Array.from({ length: 3 }, () => [0, 200]));
});

test('explains what a read waited for', async () => {
  const { nth, gate, inFlight } = await start();
  const reads = [1, 2, 3].map(() => send(gate.url, '/a'));
  const first = await nth(1);
  await inFlight(3);
  first.end('1');
  (await nth(2)).end('2');
  const ids = (await Promise.all(reads)).map(({ header }) => header('tidegate-request-id'));
  const texts = (await Promise.all(ids.map((id) => fetchExplanation(gate, id)))).map((each) => JSON.stringify(each));
  expect(texts.filter((text) => text.includes('for an equal request, and is sent itself'))).toHaveLength(1);
  expect(texts.filter((text) => text.includes('for an equal request, and gets the response to'))).toHaveLength(1);
});

test('answers a HEAD with the length of the whole response', async () => {
  const { nth, gate, inFlight } = await start();
  const reads = [1, 2, 3].map(() => send(gate.url, '/a', { method: 'HEAD' }));
  const first = await nth(1);
  await inFlight(3);
  first.writeHead(200, { 'content-length': 7 }).end();
  (await nth(2)).writeHead(200, { 'content-length': 7 }).end();
  expect((await Promise.all(reads)).map(({ header }) => header('content-length'))).toEqual(['7', '7', '7']);
});

test('lets the next read lead when the client of the first has gone', async () => {
  const { asked, nth, gate, inFlight } = await start();
  const gone = new AbortController();
  begin(gate.url, '/a', { signal: gone.signal }).end();
  await nth(1);
  const others = [1, 2, 3].map(() => send(gate.url, '/a'));
  await inFlight(4);
  gone.abort();
  (await nth(2)).end('second');
  expect(await textsOf(others)).toEqual(['second', 'second', 'second']);
  expect(asked).toHaveLength(2);
});

test('keeps waiting when another client that waits has gone', async () => {
  const { asked, nth, gate, inFlight } = await start();
  const first = send(gate.url, '/a');
  const one = await nth(1);
  const gone = new AbortController();
  // It leads those that wait.
  begin(gate.url, '/a', { signal: gone.signal }).end();
  await inFlight(2);
  const others = [1, 2].map(() => send(gate.url, '/a'));
  await inFlight(4);
  gone.abort();
  await inFlight(3);
  one.end('one');
  (await nth(2)).end('two');
  expect(await textsOf([first, ...others])).toEqual(['one', 'two', 'two']);
  expect(asked).toHaveLength(2);
});

test('completes the response for others when the client of the first goes while it is forwarded', async () => {
  const { asked, nth, gate, inFlight } = await start();
  const first = send(gate.url, '/a');
  const one = await nth(1);
  const gone = new AbortController();
  begin(gate.url, '/a', { signal: gone.signal }).end();
  await inFlight(2);
  const others = [1, 2].map(() => send(gate.url, '/a'));
  await inFlight(4);
  one.end();
  await first;
  const two = await nth(2);
  two.write('be');
  await eventually(
    () => gate.metric('tidegate_connections{side="client"}'),
    () => true,
  );
  gone.abort();
  two.end('gun');
  expect(await textsOf(others)).toEqual(['begun', 'begun']);
  expect(asked).toHaveLength(2);
});

function sendTrailers(response: ServerResponse): void {
  response.write('own');
  response.addTrailers({ 'x-sum': '1' });
  response.end();
}

describe.each<[string, (response: ServerResponse) => void]>([
  ['that is private', (response) => void response.writeHead(200, { 'cache-control': 'max-age=5, Private' }).end('own')],
  ['with trailers', sendTrailers],
  [
    'that is a stream of events',
    (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end('own'),
  ],
  ['that breaks off', (response) => void response.write('ow', () => response.destroy())],
  ['with Set-Cookie', (response) => void response.writeHead(200, { 'set-cookie': 'a=1' }).end('own')],
  [
    'that varies by a header that may differ',
    (response) => void response.writeHead(200, { vary: 'X-Forwarded-For' }).end('own'),
  ],
  ['that varies by everything', (response) => void response.writeHead(200, { vary: '*' }).end('own')],
  ['that is too long', (response) => void response.end('x'.repeat(65_537))],
  [
    'that is too long, of unknown length',
    (response) => {
      response.write('x'.repeat(65_537));
      response.end();
    },
  ],
  ['of 500', (response) => void response.writeHead(500).end('own')],
  ['that throttles', (response) => void response.writeHead(429, { 'retry-after': '0' }).end('own')],
])('a response %s', (_, answer) => {
  test('is for one request', async () => {
    const { asked, nth, gate, inFlight } = await start('true', '', 'timeout: 60s, retry: {attempts: 1}');
    const reads = Promise.allSettled([1, 2, 3, 4].map(() => send(gate.url, '/a')));
    const one = await nth(1);
    await inFlight(4);
    one.end();
    answer(await nth(2));
    answer(await nth(3));
    answer(await nth(4));
    await reads;
    expect(asked).toHaveLength(4);
  });
});

test('does not wait for equal reads whose responses are for one request each', async () => {
  const { nth, gate } = await start();
  const first = send(gate.url, '/a');
  (await nth(1)).writeHead(200, { 'set-cookie': 'a=1' }).end();
  await first;
  const reads = [1, 2].map(() => send(gate.url, '/a'));
  (await nth(3)).end('third');
  (await nth(2)).end('second');
  expect((await textsOf(reads)).toSorted(byText)).toEqual(['second', 'third']);
});

test('sends a read itself when the first one takes too long', async () => {
  const { nth, gate } = await start('true', '', 'timeout: 2s, retry: {attempts: 1}');
  const reads = [1, 2].map(() => send(gate.url, '/a'));
  await nth(1);
  (await nth(2)).end('in time');
  const statuses = (await Promise.all(reads)).map(({ status }) => String(status)).toSorted(byText);
  expect(statuses).toEqual(['200', '504']);
});

test('refuses reads that still wait when the process ends', async () => {
  const { nth, gate, inFlight } = await start('true', 'drain: {delay: 0, timeout: 50ms}\n');
  const reads = [1, 2].map((n) => send(gate.url, '/a').catch(() => n));
  await nth(1);
  await inFlight(2);
  await gate.drain();
  const statuses = (await Promise.all(reads)).map((each) => (typeof each === 'number' ? 'cut' : each.status));
  expect(statuses).toContain(503);
});

test('sends one read after the other while the upstream fails', async () => {
  const { asked, nth, gate, inFlight } = await start('true', '', 'timeout: 60s, retry: {attempts: 1}');
  const reads = [1, 2, 3, 4, 5].map(() => send(gate.url, '/a'));
  const one = await nth(1);
  await inFlight(5);
  one.writeHead(500).end();
  (await nth(2)).writeHead(500).end();
  const three = await nth(3);
  await inFlight(3);
  expect(asked).toHaveLength(3);
  three.destroy();
  (await nth(4)).end();
  const statuses = (await Promise.all(reads)).map(({ status }) => status);
  expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 200, 500, 500, 502]);
  expect(asked).toHaveLength(4);
});

test('shares a private response among requests with one credential', async () => {
  const { asked, nth, gate, inFlight } = await start();
  const reads = [1, 2, 3].map(() => send(gate.url, '/a', { headers: ['Authorization', 'Bearer a'] }));
  const one = await nth(1);
  await inFlight(3);
  one.end();
  (await nth(2)).writeHead(200, { 'cache-control': 'private' }).end();
  await Promise.all(reads);
  expect(asked).toHaveLength(2);
});

test('sends no read with the account of another client, where accounts are sticky', async () => {
  const accounts =
    'accounts: [{name: main, header: Authorization, value: Bearer main}, {name: spare, header: Authorization, value: Bearer spare}]';
  const { upstream, nth, gate, inFlight } = await start(
    'true, stickyAccount: true',
    'secret: 0123456789abcdef0123456789abcdef\nclients: {trustedProxies: [127.0.0.1]}\n',
    `timeout: 60s, ${accounts}`,
  );
  const clients = Array.from({ length: 12 }, (_, i) => `192.0.2.${i + 1}`);
  const reads = clients.map((client) => send(gate.url, '/a', { headers: ['X-Forwarded-For', client] }));
  await inFlight(12);
  for (let n = 1; n <= 12; n += 1) (await nth(n)).end();
  await Promise.all(reads);
  const used = upstream.hits.map(
    ({ headers }) => headers[headers.findIndex((name) => name.toLowerCase() === 'authorization') + 1],
  );
  expect(new Set(used)).toEqual(new Set(['Bearer main', 'Bearer spare']));
});

test('answers clients with names of their own by themselves', async () => {
  const { path, keys } = makeKeyFile('shop', 'till');
  const { asked, nth, gate, inFlight } = await start('true', `clients: {auth: {apiKeys: {file: "${path}"}}}\n`);
  const reads = [...keys, ...keys].map((key) => send(gate.url, '/a', { headers: ['tidegate-key', key] }));
  await inFlight(4);
  await nth(2);
  for (const response of [await nth(1), await nth(2)]) response.end();
  for (const response of [await nth(3), await nth(4)]) response.end();
  await Promise.all(reads);
  expect(asked).toHaveLength(4);
});

describe('sends a read by itself', () => {
  test.each([
    ['without coalesce', 'false', ['Accept', '*/*'], ['Accept', '*/*']],
    ['with another credential', 'true', ['Authorization', 'Bearer a'], ['Authorization', 'Bearer b']],
    ['with another cookie', 'true', ['Cookie', 's=1'], ['Cookie', 's=2']],
    ['with another header', 'true', ['Accept-Language', 'de'], ['Accept-Language', 'en']],
    ['for another host', 'true', ['Host', 'a.example'], ['Host', 'b.example']],
    ['of another scheme in front', 'true', ['X-Forwarded-Proto', 'http'], ['X-Forwarded-Proto', 'https']],
    ['without a header of the other', 'true', ['X-Api-Key', 'a'], []],
  ])('%s', async (_, coalesce, ofOne, ofOther) => {
    const { nth, gate } = await start(coalesce);
    const reads = [ofOne, ofOther].map((headers) => send(gate.url, '/a', { headers }));
    (await nth(2)).end();
    (await nth(1)).end();
    expect((await Promise.all(reads)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test.each([
    ['of another path', 'GET', '/b'],
    ['with another query', 'GET', '/a?x=1'],
    ['of the head alone', 'HEAD', '/a'],
    ['that is none', 'POST', '/a'],
  ])('%s', async (_, method, target) => {
    const { nth, gate } = await start();
    const reads = [send(gate.url, '/a'), send(gate.url, target, { method })];
    (await nth(2)).end();
    (await nth(1)).end();
    expect((await Promise.all(reads)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test('of another client, with coalesce: client', async () => {
    const { asked, nth, gate, inFlight } = await start('client', 'clients: {trustedProxies: [127.0.0.1]}\n');
    const clients = ['192.0.2.1', '192.0.2.2', '192.0.2.1', '192.0.2.1'];
    const reads = clients.map((client) => send(gate.url, '/a', { headers: ['X-Forwarded-For', client] }));
    await inFlight(4);
    const both = [await nth(1), await nth(2)];
    expect(asked).toHaveLength(2);
    for (const response of both) response.end();
    (await nth(3)).end();
    await Promise.all(reads);
    expect(asked).toHaveLength(3);
  });
});
