import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { sha256, startHttpUpstream } from '../support/http-upstream.ts';
import { headerOf, send } from '../support/send.ts';
import { eventually, startTidegate } from '../support/tidegate.ts';

/** Sends back what came, with its type and encoding. */
async function startMirror() {
  const upstream = await startHttpUpstream((_n, response, hit) => {
    const headers = ['content-type', 'content-encoding'].flatMap((name) => {
      const value = headerOf(hit.headers, name);
      return value === undefined ? [] : [name, value];
    });
    const { body } = hit;
    if (headerOf(hit.headers, 'transfer-encoding') === 'chunked' || hit.target === '/chunked') {
      response.writeHead(200, headers);
      for (let i = 0; i < body.length; i += 10_007) response.write(body.subarray(i, i + 10_007));
      response.end();
    } else response.writeHead(200, [...headers, 'Content-Length', String(body.length)]).end(body);
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  return { upstream, gate };
}

const boundary = 'xYzZY';
const multipart = Buffer.concat([
  Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a\\"b.bin"\r\n\r\n`),
  randomBytes(3000),
  Buffer.from(`\r\n--${boundary}--\r\n`),
]);

describe('a body arrives as it was sent, and so does the answer', () => {
  test.each([
    ['JSON with its own spacing', 'application/json', Buffer.from('{ "b":1.0,\n"a" : 1e2, "a":"\\u00e9é" }')],
    ['JSON that is none', 'application/json', Buffer.from('{"broken')],
    ['a form', 'application/x-www-form-urlencoded', Buffer.from('a=1&b=%20+&&c')],
    ['multipart', `multipart/form-data; boundary=${boundary}`, multipart],
    ['every byte there is', 'application/octet-stream', Buffer.from(Uint8Array.from({ length: 256 }, (_, i) => i))],
    ['nothing', 'text/plain', Buffer.alloc(0)],
    ['a type that is no type', 'no/type/at all; charset', randomBytes(100)],
    ['exactly what is kept for a retry', 'application/octet-stream', randomBytes(64 * 1024)],
    ['a byte more than is kept for a retry', 'application/octet-stream', randomBytes(64 * 1024 + 1)],
  ])('%s', async (_, type, body) => {
    const { upstream, gate } = await startMirror();
    for (const chunked of [false, true]) {
      const answer = await send(gate.url, '/', { method: 'POST', headers: ['Content-Type', type], body, chunked });
      const hit = upstream.hits.at(-1)!;
      expect(answer.status).toBe(200);
      expect(hit.body.equals(body)).toBe(true);
      expect(headerOf(hit.headers, 'content-type')).toBe(type);
      expect(answer.header('content-type')).toBe(type);
      expect(answer.body.equals(body)).toBe(true);
    }
  });

  test('8 MB, both ways', async () => {
    const { upstream, gate } = await startMirror();
    const body = randomBytes(8 * 1024 * 1024);
    const answers = await Promise.all([
      send(gate.url, '/', { method: 'POST', body }),
      send(gate.url, '/', { method: 'PUT', body, chunked: true }),
      send(gate.url, '/chunked', { method: 'PUT', body }),
    ]);
    const sum = sha256(body);
    expect(upstream.hits.map((hit) => hit.sha256)).toEqual([sum, sum, sum]);
    expect(answers.map((answer) => sha256(answer.body))).toEqual([sum, sum, sum]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test('what is compressed stays compressed', async () => {
    const { upstream, gate } = await startMirror();
    const body = gzipSync('{"a":1}'.repeat(1000));
    const headers = ['Content-Type', 'application/json', 'Content-Encoding', 'gzip', 'Accept-Encoding', 'gzip, br'];
    const answer = await send(gate.url, '/', { method: 'POST', headers, body });
    const [hit] = upstream.hits;
    expect(hit?.body.equals(body)).toBe(true);
    expect(headerOf(hit!.headers, 'content-encoding')).toBe('gzip');
    expect(headerOf(hit!.headers, 'accept-encoding')).toBe('gzip, br');
    expect(answer.header('content-encoding')).toBe('gzip');
    expect(answer.body.equals(body)).toBe(true);
  });

  test.each(['GET', 'DELETE', 'OPTIONS', 'QUERY'])('%s may have one too', async (method) => {
    const { upstream, gate } = await startMirror();
    for (const chunked of [false, true]) {
      const answer = await send(gate.url, '/', { method, body: '{"query":"all"}', chunked });
      expect(upstream.hits.at(-1)).toMatchObject({ method });
      expect(upstream.hits.at(-1)?.body.toString()).toBe('{"query":"all"}');
      expect(answer.body.toString()).toBe('{"query":"all"}');
    }
    const large = randomBytes(100_000);
    expect((await send(gate.url, '/', { method, body: large })).body.equals(large)).toBe(true);
  });
});

test('an answer whose upstream breaks off is broken off, not ended', async () => {
  const upstream = await startHttpUpstream((_n, response, { target }) => {
    response.writeHead(200, target === '/length' ? ['Content-Length', '1000'] : []);
    response.write('a part');
    setTimeout(() => response.destroy(), 20);
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  for (const target of ['/length', '/chunked']) {
    await expect(send(gate.url, target)).rejects.toThrow();
  }
  expect(upstream.hits).toHaveLength(2); // a response has begun: nothing is retried
  const lines = await eventually(gate.requests, ({ length }) => length === 2);
  expect(lines).toMatchObject([
    { cut: true, level: 'warn' },
    { cut: true, level: 'warn' },
  ]);
});
