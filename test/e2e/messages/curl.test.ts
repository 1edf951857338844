import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { AnswerRequest } from '../../support/upstreams/recording-upstream.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

interface Ran {
  readonly code: number | null;
  readonly stdout: Buffer;
  /** Output of `--verbose`: lines with `> ` were sent, lines with `< ` received. */
  readonly stderr: string;
}

/** Runs curl without the user's configuration and proxy settings. */
function curl(args: readonly string[], stdin: Buffer = Buffer.alloc(0)): Promise<Ran> {
  const always = ['--disable', '--noproxy', '*', '--silent', '--show-error', '--globoff', '--max-time', '10'];
  const child = spawn('curl', [...always, ...args], { env: { PATH: process.env['PATH'] } });
  const stdout: Buffer[] = [];
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString('latin1');
  });
  child.stdin.on('error', () => undefined); // curl may exit before it has read all of its input
  child.stdin.end(stdin);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout: Buffer.concat(stdout), stderr }));
  });
}

function temporaryFile(name: string, content: Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-curl-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
}

async function start(answer?: AnswerRequest) {
  const origin = await startRecordingUpstream(answer);
  const tidegate = await startTidegate(`upstreams: {api: {url: '${origin.url}'}}`);
  return { origin, url: tidegate.url, tidegate };
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

const EIGHT_MEGABYTES = randomBytes(8 * 1024 * 1024);

describe('a request body is forwarded unchanged', () => {
  test('as JSON, including whitespace and key order', async () => {
    const { origin, url } = await start();
    const json = '{ "b": 1.0,\t"a": "\u00e9\\u00e9",\n "b": 1e400 }';
    const type = 'Content-Type: application/json; charset="utf-8" ;q';
    const { code, stdout } = await curl(['--header', type, '--data-binary', json, `${url}/v1/x?b=%7e&a=+&&`]);
    expect([code, String(stdout)]).toEqual([0, '{}']);
    const [received] = origin.received;
    expect(String(received?.body)).toBe(json);
    expect(received?.rawHeaders).toContain('application/json; charset="utf-8" ;q');
    expect([received?.method, received?.target]).toEqual(['POST', '/v1/x?b=%7e&a=+&&']);
  });

  test('as a multipart form with a file', async () => {
    const { origin, url } = await start();
    const bytes = randomBytes(300_000);
    const file = temporaryFile('evi"dence.pdf', bytes);
    const escaped = file.replaceAll('"', String.raw`\"`);
    const form = ['--form', 'purpose=dispute_evidence', '--form', `file=@"${escaped}";type=application/pdf`];
    const { code } = await curl([...form, `${url}/v1/files`]);
    expect(code).toBe(0);
    const { body, headers } = origin.received[0] ?? { body: Buffer.alloc(0), headers: {} };
    const parsed = await new Response(body, { headers: { 'Content-Type': headers['content-type'] ?? '' } }).formData();
    const part = parsed.get('file');
    if (!(part instanceof File)) throw new Error('no file arrived');
    expect(part.name).toBe('evi"dence.pdf');
    expect(sha256(Buffer.from(await part.arrayBuffer()))).toBe(sha256(bytes));
    expect(parsed.get('purpose')).toBe('dispute_evidence');
    expect(headers['content-length']).toBe(String(body.length));
  });

  test.each([
    ['few bytes', 1000],
    ['8 MiB', EIGHT_MEGABYTES.length],
  ])('in chunked encoding: %s', async (_, length) => {
    const { origin, url } = await start();
    const bytes = EIGHT_MEGABYTES.subarray(0, length);
    const { code, stderr } = await curl(['--verbose', '--upload-file', '-', `${url}/upload`], bytes);
    expect([code, stderr]).toEqual([0, expect.stringContaining('> Transfer-Encoding: chunked')]);
    expect(origin.received.map(({ method, body }) => [method, sha256(body)])).toEqual([['PUT', sha256(bytes)]]);
  });

  test('with a Content-Length of 8 MiB', async () => {
    const { origin, url } = await start();
    const file = temporaryFile('large.bin', EIGHT_MEGABYTES);
    const { code } = await curl(['--data-binary', `@${file}`, `${url}/upload`]);
    expect(code).toBe(0);
    expect(origin.received.map(({ body }) => sha256(body))).toEqual([sha256(EIGHT_MEGABYTES)]);
    expect(origin.received[0]?.headers['content-length']).toBe(String(EIGHT_MEGABYTES.length));
  });

  test('with GET and DELETE', async () => {
    const { origin, url } = await start();
    for (const method of ['GET', 'DELETE']) {
      expect((await curl(['--request', method, '--data', 'a=1', `${url}/search`])).code).toBe(0);
    }
    expect(origin.received.map(({ method, body }) => [method, String(body)])).toEqual([
      ['GET', 'a=1'],
      ['DELETE', 'a=1'],
    ]);
  });
});

describe('a response body is forwarded unchanged', () => {
  test.each([
    ['with a length', { 'Content-Length': EIGHT_MEGABYTES.length }],
    ['in chunks', {}],
  ])('8 MiB %s', async (_, headers) => {
    const { url } = await start((_received, response) => response.writeHead(200, headers).end(EIGHT_MEGABYTES));
    const file = temporaryFile('out.bin', Buffer.alloc(0));
    const { code } = await curl(['--output', file, `${url}/download`]);
    expect([code, sha256(readFileSync(file))]).toEqual([0, sha256(EIGHT_MEGABYTES)]);
  });

  test('as the upstream compressed it', async () => {
    const text = 'a text worth compressing '.repeat(1000);
    const gzipped = gzipSync(text);
    const { origin, url } = await start((_, response) => {
      response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': gzipped.length }).end(gzipped);
    });
    expect((await curl(['--header', 'Accept-Encoding: gzip', url])).stdout.equals(gzipped)).toBe(true);
    expect(String((await curl(['--compressed', url])).stdout)).toBe(text);
    expect(origin.received[0]?.headers['accept-encoding']).toBe('gzip');
  });

  test('up to the point where the upstream breaks it off, which curl reports as an error', async () => {
    const upstream = await startUpstream();
    const { url } = await startTidegate(`upstreams: {api: {url: '${upstream.url}'}}`);
    const { code, stdout } = await curl(['--header', 'X-Practice-Script: 200; body=100000; cut=5000', `${url}/cut`]);
    expect(code).toBe(18); // CURLE_PARTIAL_FILE
    expect(stdout.length).toBeLessThanOrEqual(5000);
  });
});

describe('Expect: 100-continue', () => {
  test('is answered with 100 before the body is uploaded', async () => {
    const { origin, url } = await start();
    const expecting = ['--verbose', '--expect100-timeout', '9', '--header', 'Expect: 100-continue'];
    const { code, stderr } = await curl([...expecting, '--upload-file', '-', `${url}/upload`], EIGHT_MEGABYTES);
    expect(code).toBe(0);
    expect(stderr).toContain('< HTTP/1.1 100 Continue');
    expect(origin.received.map(({ body }) => sha256(body))).toEqual([sha256(EIGHT_MEGABYTES)]);
    expect(origin.received[0]?.headers.expect).toBeUndefined();
  });

  test('is answered with a 429 before anything is uploaded', async () => {
    const upstream = await startUpstream();
    const { url } = await startTidegate(`
upstreams:
  api:
    url: ${upstream.url}
    queue: {maxWait: 0}
    rateLimit: {initialRate: 0.1/s, maxRate: 0.1/s}
`);
    // The pacer admits a short burst; the next token is then 10 s away.
    await eventually(
      () => curl(['--output', '/dev/null', '--write-out', '%{http_code}', `${url}/x`]),
      ({ stdout }) => String(stdout) === '429',
    );
    const before = upstream.stats().received;
    const file = temporaryFile('large.bin', EIGHT_MEGABYTES);
    const expecting = ['--expect100-timeout', '9', '--header', 'Expect: 100-continue', '--upload-file', file];
    const format = '%{http_code} %{size_upload} %header{retry-after}';
    const { code, stdout } = await curl([
      ...expecting,
      '--output',
      '/dev/null',
      '--write-out',
      format,
      `${url}/upload`,
    ]);
    expect(code).toBe(0);
    expect(String(stdout)).toMatch(/^429 0 \d+$/);
    expect(upstream.stats().received).toBe(before);
  });
});

describe('other requests', () => {
  test('HEAD returns the Content-Length of a GET, and no body', async () => {
    const { origin, url } = await start((_, response) => response.writeHead(200, { 'Content-Length': 4711 }).end());
    const { code, stdout } = await curl(['--head', `${url}/x`]);
    expect([code, origin.received[0]?.method]).toEqual([0, 'HEAD']);
    expect(String(stdout)).toMatch(/^HTTP\/1\.1 200 OK\r\n(?:.*\r\n)*Content-Length: 4711\r\n/);
  });

  test('HTTP/1.0 gets an unchunked response, and the connection closes', async () => {
    const { origin, url } = await start((_, response) => {
      response.write('one ');
      response.end('two');
    });
    const { code, stdout, stderr } = await curl(['--http1.0', '--verbose', `${url}/x`, '--data', 'a=1']);
    expect([code, String(stdout)]).toEqual([0, 'one two']);
    expect(stderr).toMatch(/> POST \/x HTTP\/1\.0/);
    expect(stderr).not.toMatch(/< Transfer-Encoding/i);
    expect(stderr).toMatch(/< Connection: close/i);
    expect(String(origin.received[0]?.body)).toBe('a=1');
  });

  test.each(['OPTIONS', 'PATCH', 'PURGE', 'PROPFIND', 'MKCOL', 'REPORT', 'QUERY', 'M-SEARCH', 'TRACE'])(
    '%s is forwarded',
    async (method) => {
      const { origin, url, tidegate } = await start();
      expect((await curl(['--request', method, `${url}/x?y`])).code).toBe(0);
      expect(origin.received.map((each) => [each.method, each.target])).toEqual([[method, '/x?y']]);
      const lines = await eventually(
        () => tidegate.requests(),
        ({ length }) => length === 1,
      );
      expect(lines).toMatchObject([{ method, status: 200 }]);
    },
  );

  test('OPTIONS * is forwarded unchanged', async () => {
    const { origin, url } = await start();
    const args = ['--request', 'OPTIONS', '--request-target', '*', '--write-out', '%{http_code}\n'];
    const { stdout } = await curl([...args, '--output', '/dev/null', '--no-globoff', `${url}/?n=[1-12]`]);
    expect(String(stdout)).toBe('200\n'.repeat(12));
    expect(origin.received.map(({ method, target }) => `${method} ${target}`)).toEqual(Array(12).fill('OPTIONS *'));
  });

  test('a method unknown to the HTTP parser gets a 400 problem document from the proxy', async () => {
    const { origin, url } = await start();
    const { stdout } = await curl(['--include', '--request', 'BREW', `${url}/pot-0`]);
    expect(String(stdout)).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nContent-Type: application\/problem\+json\r\n/);
    expect(origin.received).toEqual([]);
  });

  test('basic credentials and an unusual request target are forwarded unchanged', async () => {
    const { origin, url } = await start();
    const target = '/a%2Fb/%7Ec;d=1/[x]?q=[1]&r=%20%zz';
    expect((await curl(['--user', 'sk_test_x:', '--path-as-is', `${url}${target}`])).code).toBe(0);
    const [received] = origin.received;
    expect([received?.target, received?.headers.authorization]).toEqual([target, 'Basic c2tfdGVzdF94Og==']);
  });

  test('200 requests use one client connection and one upstream connection', async () => {
    const { origin, url } = await start();
    const each = ['--output', '/dev/null', '--write-out', '%{num_connects}'];
    const { code, stdout } = await curl(['--no-globoff', ...each, `${url}/x?n=[1-200]`]);
    expect([code, String(stdout)]).toEqual([0, `1${'0'.repeat(199)}`]);
    expect([origin.received.length, origin.connections()]).toEqual([200, 1]);
  });
});
