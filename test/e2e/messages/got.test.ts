import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { Response as GotResponse } from 'got';
import got, { HTTPError, RequestError, TimeoutError } from 'got';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

/** Disables the client's own retries, so that every retry is the proxy's. */
const client = got.extend({ retry: { limit: 0 } });
const EIGHT_MEGABYTES = randomBytes(8 * 1024 * 1024);

async function start(settings = 'retry: {backOff: {strategy: fixed, baseInterval: 10ms}}') {
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`
upstreams:
  api:
    url: ${upstream.url}
    ${settings}
`);
  return { upstream, tidegate };
}

function script(steps: string): Record<string, string> {
  return { 'x-practice-script': steps, 'x-practice-id': 'one' };
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** The practice upstream's /echo response: the request as it arrived. */
interface Echo {
  readonly method: string;
  readonly path: string;
  readonly body: { readonly length: number; readonly sha256: string };
}

async function failureOf(promise: Promise<unknown>): Promise<RequestError> {
  const settled: unknown = await promise.catch((error: unknown) => error);
  if (settled instanceof RequestError) return settled;
  throw new Error(`expected an error of got, got ${String(settled)}`);
}

describe('requests and responses', () => {
  test('a GET with a query returns JSON', async () => {
    const { tidegate } = await start();
    const echo = await client(`${tidegate.url}/echo`, { searchParams: { q: 'a b', x: 'ü&=' } }).json<Echo>();
    expect(echo).toMatchObject({ method: 'GET', path: '/echo?q=a+b&x=%C3%BC%26%3D', body: { length: 0 } });
  });

  test('a POST of JSON and of a form arrives unchanged', async () => {
    const { tidegate } = await start();
    const json = { amount: 100, memo: 'é' };
    const bytes = Buffer.from(JSON.stringify(json));
    const echo = await client.post(`${tidegate.url}/echo`, { json }).json<Echo>();
    expect(echo.body).toEqual({ length: bytes.length, sha256: sha256(bytes) });
    const form = await client.post(`${tidegate.url}/echo`, { form: { 'metadata[a]': '1 2' } }).json<Echo>();
    expect(form.body.sha256).toBe(sha256(Buffer.from('metadata%5Ba%5D=1+2')));
  });

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])('%s is negotiated end to end and decoded by the client', async (coding, compress) => {
    const text = JSON.stringify({ rows: Array.from({ length: 500 }, (_, i) => ({ id: i })) });
    const compressed = compress(text);
    const origin = await startRecordingUpstream((_, response) => {
      response.writeHead(200, {
        'Content-Encoding': coding,
        'Content-Type': 'application/json',
        'Content-Length': compressed.length,
      });
      response.end(compressed);
    });
    const tidegate = await startTidegate(`upstreams: {api: {url: '${origin.url}'}}`);
    const answer = await client(tidegate.url);
    expect(answer.body).toBe(text);
    expect(origin.received[0]?.headers['accept-encoding']).toContain(coding);
    const raw = await client(tidegate.url, { decompress: false, responseType: 'buffer' });
    expect(compressed.equals(raw.body)).toBe(true);
    expect(raw.headers['content-length']).toBe(String(compressed.length));
  });
});

describe('streams', () => {
  test('upload 8 MiB of unknown length', async () => {
    const { upstream, tidegate } = await start();
    const upload = client.stream.post(`${tidegate.url}/echo`);
    const answer: Buffer[] = [];
    await pipeline(Readable.from(pieces(EIGHT_MEGABYTES)), upload, async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) answer.push(chunk);
    });
    const { body } = JSON.parse(String(Buffer.concat(answer))) as Echo;
    expect(body).toEqual({ length: EIGHT_MEGABYTES.length, sha256: sha256(EIGHT_MEGABYTES) });
    expect(upstream.stats().received).toBe(1);
  });

  test('download 8 MiB', async () => {
    const origin = await startRecordingUpstream((_, response) => response.end(EIGHT_MEGABYTES));
    const tidegate = await startTidegate(`upstreams: {api: {url: '${origin.url}'}}`);
    const hash = createHash('sha256');
    await pipeline(client.stream(tidegate.url), hash);
    expect(hash.digest('hex')).toBe(sha256(EIGHT_MEGABYTES));
  });

  test('start the response before the upload has ended', async () => {
    let endedAtFirstByte: boolean | undefined;
    const server = createServer((request, response) => {
      request.pipe(response);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const tidegate = await startTidegate(`upstreams: {api: {url: 'http://127.0.0.1:${port}'}}`);
    const upload = client.stream.put(tidegate.url);
    const hash = createHash('sha256');
    upload.once('data', () => {
      endedAtFirstByte = upload.writableEnded;
    });
    await pipeline(Readable.from(pieces(EIGHT_MEGABYTES)), upload, hash);
    expect(hash.digest('hex')).toBe(sha256(EIGHT_MEGABYTES));
    expect(endedAtFirstByte).toBe(false);
  });

  test('end with an error at the client when the upstream breaks off the response', async () => {
    const { tidegate } = await start();
    const headers = script('200; body=1000000; cut=300000');
    const error = await failureOf(client(`${tidegate.url}/x`, { headers }).buffer());
    expect(error.code).toMatch(/^(?:ECONNRESET|ERR_HTTP_CONTENT_LENGTH_MISMATCH|ERR_READING_RESPONSE_STREAM)$/);
  });
});

describe('for a client without retries, the proxy', () => {
  test.each(['get', 'put', 'delete'] as const)(
    'retries a %s after 503, reset and 500 until it gets 200',
    async (method) => {
      const { upstream, tidegate } = await start();
      const answer = await client[method](`${tidegate.url}/echo`, { headers: script('503, reset, 500, 200') });
      expect([answer.statusCode, answer.retryCount, answer.headers['tidegate-attempts']]).toEqual([200, 0, '4']);
      expect(upstream.attempts('one')).toBe(4);
    },
  );

  test('does not retry a POST without a key, and returns its one response', async () => {
    const { upstream, tidegate } = await start();
    const headers = script('500, 200');
    const error = await failureOf(client.post(`${tidegate.url}/echo`, { headers, json: {} }));
    expect(error).toBeInstanceOf(HTTPError);
    expect([error.response?.statusCode, error.response?.headers['tidegate-outcome']]).toEqual([500, 'unknown']);
    expect(upstream.attempts('one')).toBe(1);
  });
});

describe('a client with its own retries', () => {
  test('does not need them when the proxy recovers the request', async () => {
    const { upstream, tidegate } = await start();
    const answer = await got(`${tidegate.url}/echo`, { headers: script('503, 503, 200') });
    expect([answer.statusCode, answer.retryCount, upstream.attempts('one')]).toEqual([200, 0, 3]);
  });

  test('waits for Retry-After after a 429, and is then served', async () => {
    const { upstream, tidegate } = await start('queue: {maxWait: 0}\n    rateLimit: {initialRate: 1/s, maxRate: 1/s}');
    const retries: number[] = [];
    const patient = got.extend({
      retry: { limit: 1 },
      hooks: {
        beforeRetry: [
          (error) => {
            retries.push(Number(error.response?.headers['retry-after']));
          },
        ],
      },
    });
    let answer: GotResponse;
    do answer = await patient(`${tidegate.url}/echo`);
    while (answer.retryCount === 0);
    expect([answer.statusCode, answer.retryCount]).toEqual([200, 1]);
    expect(retries).toHaveLength(1);
    expect(retries[0]).toBeGreaterThanOrEqual(1);
    expect(upstream.stats().rejected).toBe(0);
  });
});

describe('timeouts', () => {
  test('a client timeout cancels the upstream attempt', async () => {
    const { upstream, tidegate } = await start();
    const request = client(`${tidegate.url}/echo`, { headers: script('hang'), timeout: { response: 200 } });
    expect(await failureOf(request)).toBeInstanceOf(TimeoutError);
    await eventually(
      () => upstream.stats().inFlight,
      (inFlight) => inFlight === 0,
    );
    await eventually(
      () => tidegate.requests(),
      ([line]) => line !== undefined,
    );
    expect(tidegate.requests()).toMatchObject([{ outcome: 'client_gone', attempts: 1, status: 0 }]);
    expect(upstream.attempts('one')).toBe(1);
  });

  test('a client timeout during a backoff leads to no further attempt', async () => {
    const { upstream, tidegate } = await start('retry: {backOff: {strategy: fixed, baseInterval: 600ms}}');
    const request = client(`${tidegate.url}/echo`, { headers: script('503, 200'), timeout: { request: 150 } });
    expect(await failureOf(request)).toBeInstanceOf(TimeoutError);
    const lines = await eventually(
      () => tidegate.requests(),
      ([line]) => line !== undefined,
    );
    expect(lines).toMatchObject([{ outcome: 'client_gone', attempts: 1 }]);
    await new Promise((resolve) => {
      setTimeout(resolve, 700);
    });
    expect(upstream.attempts('one')).toBe(1);
  });

  test('a proxy timeout answers a GET with 504 after as many attempts as fit', async () => {
    // Eight attempts without a response would block the upstream: seven fit at most.
    const { upstream, tidegate } = await start(
      'timeout: 1s\n    perTryTimeout: 140ms\n    retry: {attempts: 20, budget: {burst: 20}, backOff: {strategy: fixed, baseInterval: 10ms}}',
    );
    const error = await failureOf(client(`${tidegate.url}/echo`, { headers: script('hang') }));
    expect(error.response?.statusCode).toBe(504);
    expect(error.response?.headers['tidegate-outcome']).toBeUndefined();
    expect(upstream.attempts('one')).toBeGreaterThanOrEqual(2);
    expect(upstream.attempts('one')).toBeLessThanOrEqual(7);
  });
});

function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 50_000) yield bytes.subarray(at, at + 50_000);
}
