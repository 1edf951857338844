import { describe, expect, test } from 'vitest';
import { startHttpUpstream } from '../support/http-upstream.ts';
import { openRaw, sendRaw } from '../support/raw.ts';
import { eventually, startTidegate } from '../support/tidegate.ts';

async function start(more = '') {
  const upstream = await startHttpUpstream((_n, response) => response.end('upstream'));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}\n${more}`);
  return { upstream, gate, host: new URL(gate.url).host };
}

/** Status and problem of an answer as it came. */
function readProblem(answer: string): { status: number; type: string | undefined; problem: Record<string, unknown> } {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  return {
    status: Number(/^HTTP\/1\.1 (\d+) /.exec(head)?.[1]),
    type: /\r\ncontent-type: (.*)/i.exec(head)?.[1],
    problem: JSON.parse(body) as Record<string, unknown>,
  };
}

const lines = (...all: string[]) => [...all, '', ''].join('\r\n');

describe('a request that could be read in two ways is refused', () => {
  test.each([
    ['two Hosts', lines('GET / HTTP/1.1', 'Host: a', 'Host: b')],
    ['no Host', lines('GET / HTTP/1.1')],
    [
      'a length and chunks',
      `${lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 3', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    ],
    [
      'chunks and a length',
      `${lines('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked', 'Content-Length: 3')}0\r\n\r\n`,
    ],
    ['two lengths', `${lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 3', 'Content-Length: 4')}abcd`],
    ['a length that is no number', lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: +3')],
    [
      'a coding that is not the last',
      `${lines('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked, gzip')}0\r\n\r\n`,
    ],
    [
      'a coding that would be lost',
      `${lines('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: gzip, chunked')}0\r\n\r\n`,
    ],
    ['a space before the colon', lines('GET / HTTP/1.1', 'Host : a')],
    ['a folded line', lines('GET / HTTP/1.1', 'Host: a', 'X-A: 1', ' 2')],
    ['a bare line feed', 'GET / HTTP/1.1\nHost: a\n\n'],
    ['a null byte', lines('GET / HTTP/1.1', 'Host: a', 'X-A: \0')],
    ['a target for another host', lines('GET http://elsewhere.example/ HTTP/1.1', 'Host: a')],
    ['a target that is no path', lines('GET pay HTTP/1.1', 'Host: a')],
    ['a star', lines('GET * HTTP/1.1', 'Host: a')],
    ['two slashes', lines('GET //evil.example/x HTTP/1.1', 'Host: a')],
    ['a backslash', lines('GET /a\\b HTTP/1.1', 'Host: a')],
    ['an encoded backslash', lines('GET /a%5Cb HTTP/1.1', 'Host: a')],
    ['a dot segment', lines('GET /public/../admin HTTP/1.1', 'Host: a')],
    ['a single dot', lines('GET /a/./b HTTP/1.1', 'Host: a')],
    ['a dot segment at the end', lines('GET /public/.. HTTP/1.1', 'Host: a')],
    ['an encoded dot segment', lines('GET /public/%2e%2E/admin HTTP/1.1', 'Host: a')],
    ['half an encoded dot segment', lines('GET /public/.%2e/admin HTTP/1.1', 'Host: a')],
    ['dots behind an encoded slash', lines('GET /public%2f..%2Fadmin HTTP/1.1', 'Host: a')],
    ['dots with a parameter', lines('GET /public/..;x=1/admin HTTP/1.1', 'Host: a')],
    ['dots before a query', lines('GET /public/..?x HTTP/1.1', 'Host: a')],
    ['a fragment', lines('GET /a#b HTTP/1.1', 'Host: a')],
    ['no HTTP at all', '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'],
    ['an unknown method', lines('BREW / HTTP/1.1', 'Host: a')],
    ['another version', lines('GET / HTTP/3.0', 'Host: a')],
  ])('%s', async (_, bytes) => {
    const { upstream, gate } = await start();
    const client = await openRaw(gate.url);
    client.write(bytes);
    const answer = await client.until(/\r\n\r\n\{.*\}$/s);
    expect(readProblem(answer)).toMatchObject({
      status: 400,
      type: 'application/problem+json',
      problem: { status: 400, title: 'Bad request' },
    });
    expect(upstream.hits).toHaveLength(0);
  });
});

describe('what looks odd and is sound passes', () => {
  test.each([
    '/...',
    '/.well-known/x',
    '/a.b/..c',
    '/a//b',
    '/%2e%2e%2e',
    '/x?next=/../y\\z',
    '/x?u=http://a/#'.slice(0, -1),
  ])('%s', async (target) => {
    const { upstream, gate } = await start();
    const answer = await sendRaw(gate.url, lines(`GET ${target} HTTP/1.1`, 'Host: a', 'Connection: close'));
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(upstream.hits[0]?.target).toBe(target);
  });

  test('an absolute target for our own host', async () => {
    const { upstream, gate, host } = await start();
    for (const [target, seen] of [
      [`http://${host}/a?b`, '/a?b'],
      [`http://${host}`, '/'],
      [`HTTP://${host}?q`, '/?q'],
    ]) {
      await sendRaw(gate.url, lines(`GET ${target} HTTP/1.1`, `Host: ${host}`, 'Connection: close'));
      expect(upstream.hits.at(-1)?.target).toBe(seen);
    }
  });

  test('a dot segment does not hide in one', async () => {
    const { gate, host } = await start();
    const answer = await sendRaw(
      gate.url,
      lines(`GET http://${host}/a/../b HTTP/1.1`, `Host: ${host}`, 'Connection: close'),
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  });

  test('HTTP/1.0, without a Host', async () => {
    const { upstream, gate } = await start();
    const answer = await sendRaw(gate.url, lines('GET /old HTTP/1.0'));
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toMatch(/upstream$/);
    expect(upstream.hits[0]?.target).toBe('/old');
  });
});

test('more headers than anybody needs are refused with 431', async () => {
  const { upstream, gate } = await start();
  const client = await openRaw(gate.url);
  client.write(`GET / HTTP/1.1\r\nHost: a\r\nX-Flood: ${'x'.repeat(40_000)}\r\n\r\n`);
  expect(readProblem(await client.ended())).toMatchObject({ status: 431, problem: { reason: 'headers_too_large' } });
  expect(upstream.hits).toHaveLength(0);
});

test('CONNECT is refused: this is no forward proxy', async () => {
  const { gate } = await start();
  const answer = await sendRaw(gate.url, lines('CONNECT pay.example:443 HTTP/1.1', 'Host: pay.example:443'));
  expect(readProblem(answer)).toMatchObject({ status: 405 });
});

test.each([
  ['a malformed request', 'NONSENSE\r\n\r\n'],
  ['a CONNECT', 'CONNECT pay.example:443 HTTP/1.1\r\nHost: pay.example:443\r\n\r\n'],
])('%s behind a good one does not take its answer', async (_, bytes) => {
  const upstream = await startHttpUpstream((_n, response) => {
    setTimeout(() => response.end('the first'), 150);
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const client = await openRaw(gate.url);
  client.write(`${lines('POST /pay HTTP/1.1', 'Host: a', 'Content-Length: 2')}ok`);
  await eventually(
    () => upstream.hits,
    ({ length }) => length === 1,
  );
  client.write(bytes);
  const answer = await client.ended();
  // Either its own answer or none: never one that says that it was not understood.
  expect(answer).not.toMatch(/HTTP\/1\.1 40[05]/);
});

test('a malformed end of a body is not answered in the middle of another answer', async () => {
  const upstream = await startHttpUpstream(() => undefined);
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const client = await openRaw(gate.url);
  client.write(`${lines('POST /pay HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked')}3\r\nabc\r\n`);
  client.write('zz\r\n');
  const answer = await client.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  await eventually(
    () => gate.metric('tidegate_requests_in_flight{route="/"}'),
    (count) => count === 0,
  );
});
