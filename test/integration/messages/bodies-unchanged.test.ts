import { randomBytes } from 'node:crypto';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { sha256, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

/** Echoes the body, with its type and encoding. */
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

describe('a request body and its response arrive unchanged', () => {
  test.each([
    ['JSON with unusual whitespace', 'application/json', Buffer.from('{ "b":1.0,\n"a" : 1e2, "a":"\\u00e9é" }')],
    ['invalid JSON', 'application/json', Buffer.from('{"broken')],
    ['a form', 'application/x-www-form-urlencoded', Buffer.from('a=1&b=%20+&&c')],
    ['multipart', `multipart/form-data; boundary=${boundary}`, multipart],
    ['every byte value', 'application/octet-stream', Buffer.from(Uint8Array.from({ length: 256 }, (_, i) => i))],
    ['nothing', 'text/plain', Buffer.alloc(0)],
    ['an invalid type', 'no/type/at all; charset', randomBytes(100)],
    ['the largest body sent together with its head', 'application/octet-stream', randomBytes(16 * 1024)],
    ['a byte more than is sent together with its head', 'application/octet-stream', randomBytes(16 * 1024 + 1)],
    ['the largest body kept for a retry', 'application/octet-stream', randomBytes(64 * 1024)],
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

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('with Content-Encoding %s, which stays', async (coding, compress) => {
    const { upstream, gate } = await startMirror();
    const body = compress('{"a":1}'.repeat(1000));
    const headers = [
      'Content-Type',
      'application/json',
      'Content-Encoding',
      coding,
      'Accept-Encoding',
      `${coding}, *;q=0`,
    ];
    const answer = await send(gate.url, '/', { method: 'POST', headers, body });
    const [hit] = upstream.hits;
    expect(hit?.body.equals(body)).toBe(true);
    expect(headerOf(hit!.headers, 'content-encoding')).toBe(coding);
    expect(headerOf(hit!.headers, 'accept-encoding')).toBe(`${coding}, *;q=0`);
    expect(answer.header('content-encoding')).toBe(coding);
    expect(answer.body.equals(body)).toBe(true);
  });

  test.each(['GET', 'DELETE', 'OPTIONS', 'QUERY'])('%s with a body', async (method) => {
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

describe('a range of a body', () => {
  const whole = randomBytes(10_000);

  /** Serves ranges as in RFC 9110 §14; a representation changed since is sent whole. */
  async function startRanges() {
    const upstream = await startHttpUpstream((_n, response, { headers }) => {
      const ranges = /^bytes=(.*)$/.exec(headerOf(headers, 'range') ?? '')?.[1]?.split(',');
      if (ranges === undefined || headerOf(headers, 'if-range') === '"old"') return void response.end(whole);
      const parts = ranges.map((range) => {
        const [from = 0, to = 0] = range.trim().split('-').map(Number);
        return { contentRange: `bytes ${from}-${to}/${whole.length}`, bytes: whole.subarray(from, to + 1) };
      });
      const [first] = parts;
      if (parts.length === 1 && first !== undefined) {
        const headersOfPart = [
          'Content-Range',
          first.contentRange,
          'Content-Length',
          String(first.bytes.length),
          'ETag',
          '"new"',
        ];
        return void response.writeHead(206, headersOfPart).end(first.bytes);
      }
      response.writeHead(206, ['Content-Type', `multipart/byteranges; boundary="${boundary}"`]);
      for (const { contentRange, bytes } of parts) {
        response.write(`--${boundary}\r\nContent-Range: ${contentRange}\r\n\r\n`);
        response.write(bytes);
        response.write('\r\n');
      }
      response.end(`--${boundary}--\r\n`);
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    return { upstream, gate };
  }

  test('is forwarded as requested', async () => {
    const { gate, upstream } = await startRanges();
    const headers = ['Range', 'bytes=100-299', 'If-Range', '"new"'];
    const answer = await send(gate.url, '/', { headers });
    expect(answer.status).toBe(206);
    expect(answer.header('content-range')).toBe('bytes 100-299/10000');
    expect(answer.header('content-length')).toBe('200');
    expect(answer.header('etag')).toBe('"new"');
    expect(answer.body.equals(whole.subarray(100, 300))).toBe(true);
    expect(headerOf(upstream.hits[0]!.headers, 'range')).toBe('bytes=100-299');
    expect((await send(gate.url, '/', { headers: [...headers.slice(0, 3), '"old"'] })).body.equals(whole)).toBe(true);
  });

  test('is forwarded in a multipart response', async () => {
    const { gate, upstream } = await startRanges();
    const headers = ['Range', 'bytes=0-9, 5000-5999,9990-9999'];
    const [direct, answer] = await Promise.all([
      send(upstream.url, '/', { headers }),
      send(gate.url, '/', { headers }),
    ]);
    expect(answer.status).toBe(206);
    expect(answer.header('content-type')).toBe(`multipart/byteranges; boundary="${boundary}"`);
    expect(answer.body.equals(direct.body)).toBe(true);
    expect(answer.body.includes(whole.subarray(5000, 6000))).toBe(true);
  });

  test('that breaks off is not requested again', async () => {
    const upstream = await startHttpUpstream((_n, response) => {
      response.writeHead(206, ['Content-Range', 'bytes 0-9/100', 'Content-Length', '10']).write('half ');
      setTimeout(() => response.destroy(), 20);
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await expect(send(gate.url, '/', { headers: ['Range', 'bytes=0-9'] })).rejects.toThrow();
    expect(upstream.hits).toHaveLength(1);
  });
});

test('truncates a response that the upstream truncates, instead of ending it', async () => {
  const upstream = await startHttpUpstream((_n, response, { target }) => {
    response.writeHead(200, target === '/length' ? ['Content-Length', '1000'] : []);
    response.write('a part');
    setTimeout(() => response.destroy(), 20);
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  for (const target of ['/length', '/chunked']) {
    await expect(send(gate.url, target)).rejects.toThrow();
  }
  expect(upstream.hits).toHaveLength(2); // the response has begun: nothing is retried
  const lines = await eventually(gate.requests, ({ length }) => length === 2);
  expect(lines).toMatchObject([
    { cut: true, level: 'warn' },
    { cut: true, level: 'warn' },
  ]);
});
