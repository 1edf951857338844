import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { request as requestByTls } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Fastify from 'fastify';
import { Registry } from 'prom-client';
import { describe, expect, onTestFinished, test } from 'vitest';
import { writeResponseHead } from '../../../src/http/server/write-response.ts';
import type { ConfigInput } from '../../../src/library/index.ts';
import { ConfigError, tidegate } from '../../../src/library/index.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { listen, sha256, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startApplication } from '../../support/proxy/fastify-application.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { openRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import { begin, send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const to = (url: string, more: object = {}): ConfigInput => ({
  upstreams: { api: { url, ...more } },
  drain: { timeout: '2s' },
});

const soon = { retry: { backOff: { strategy: 'fixed', baseInterval: '1ms' } } } as const;

describe('a proxy in an application', () => {
  test('forwards requests under its prefix byte for byte, and ignores the rest', async () => {
    const origin = await startRecordingUpstream();
    const { url } = await startApplication(
      { config: to(origin.url) },
      {
        extend: (app) => {
          app.get('/own', () => ({ own: true }));
          app.post('/own', (call) => ({ parsed: call.body }));
        },
      },
    );
    const body = '{"amount": 1.0}';
    const headers = ['Content-Type', 'application/json', 'X-ODD-case', 'a', 'X-ODD-case', 'b'];
    expect((await send(url, '/pay/v1/charges?b=%20&a', { method: 'PATCH', headers, body })).status).toBe(200);
    expect((await send(url, '/pay')).status).toBe(200);
    expect((await send(url, '/pay?q')).status).toBe(200);
    expect(origin.received.map(({ method, target }) => [method, target])).toEqual([
      ['PATCH', '/v1/charges?b=%20&a'],
      ['GET', '/'],
      ['GET', '/?q'],
    ]);
    expect(origin.received[0]?.body.toString()).toBe(body);
    const raw = origin.received[0]?.rawHeaders.filter((_, i, all) => all[i - (i % 2)] === 'X-ODD-case');
    expect(raw).toEqual(['X-ODD-case', 'a', 'X-ODD-case', 'b']);
    expect((await send(url, '/own')).json()).toEqual({ own: true });
    const posted = await send(url, '/own', { method: 'POST', headers, body });
    expect(posted.json()).toEqual({ parsed: { amount: 1 } });
    expect((await send(url, '/elsewhere')).status).toBe(404);
    expect(origin.received).toHaveLength(3);
  });

  test('accepts any body: without a type, of any type, chunked, or longer than Fastify’s limit', async () => {
    const upstream = await startHttpUpstream((_, response) => response.end());
    const { url } = await startApplication({ config: to(upstream.url) }, { server: { bodyLimit: 10 } });
    const long = Buffer.alloc(3_000_000, 'x');
    await send(url, '/pay/', { method: 'POST', body: 'no type at all' });
    await send(url, '/pay/', { method: 'POST', body: '{ no JSON', headers: ['Content-Type', 'application/json'] });
    await send(url, '/pay/', { method: 'PUT', body: long, chunked: true, headers: ['Content-Type', 'a/b'] });
    await send(url, '/pay/', { method: 'GET', body: 'of a GET' });
    expect(upstream.hits.map((hit) => hit.sha256)).toEqual(
      ['no type at all', '{ no JSON', long, 'of a GET'].map(sha256),
    );
  });

  test('serves everything without a prefix, except the application’s own routes', async () => {
    const origin = await startRecordingUpstream();
    const { url } = await startApplication(
      { config: to(origin.url) },
      { prefix: '', extend: (app) => void app.get('/own', () => 'own') },
    );
    await send(url, '/');
    await send(url, '/a/b');
    expect((await send(url, '/own')).body.toString()).toBe('own');
    expect(origin.received.map(({ target }) => target)).toEqual(['/', '/a/b']);
  });

  test('runs behind the application’s hooks: forwards nothing they reject, returns headers they add', async () => {
    const origin = await startRecordingUpstream();
    const { url } = await startApplication(
      { config: to(origin.url) },
      {
        extend: (app) => {
          app.addHook('onRequest', (_, reply, done) => {
            void reply.headers({ 'X-Own': 'yes', 'Content-Length': '1' });
            done();
          });
          app.addHook('preHandler', async (call, reply) => {
            if (call.headers.authorization === undefined) return reply.code(401).send({ who: 'are you' });
            return undefined;
          });
        },
      },
    );
    const refused = await send(url, '/pay/', { method: 'POST', body: 'x' });
    expect([refused.status, refused.json()]).toEqual([401, { who: 'are you' }]);
    expect(origin.received).toEqual([]);
    const taken = await send(url, '/pay/', { method: 'POST', body: 'x', headers: ['Authorization', 'Bearer x'] });
    expect([taken.status, taken.header('x-own'), taken.body.toString()]).toEqual([200, 'yes', '{}']);
    expect(origin.received).toHaveLength(1);
  });

  test.each(['GET', 'HEAD', 'POST'])(
    'answers a %s whose response announces trailers that Node refuses',
    async (method) => {
      const head =
        'HTTP/1.1 201 Created\r\nContent-Length: 2\r\nTrailer: Server-Timing\r\nX-Own: theirs\r\nSet-Cookie: a=1\r\n\r\n';
      const origin = await startRawUpstream((socket) => {
        socket.write(method === 'HEAD' ? head : `${head}ok`);
      });
      const { url } = await startApplication(
        { config: to(origin.url) },
        {
          extend: (app) => {
            app.addHook('onRequest', (_, reply, done) => {
              void reply.headers({ 'X-Hook': 'ours' });
              done();
            });
          },
        },
      );
      const answer = await send(url, '/pay/', { method });
      expect([answer.status, answer.body.toString()]).toEqual([201, method === 'HEAD' ? '' : 'ok']);
      const names = ['x-hook', 'x-own', 'set-cookie', 'trailer'];
      expect(names.map((name) => answer.header(name))).toEqual(['ours', 'theirs', 'a=1', undefined]);
    },
  );

  test('leaves out a header of a hook that Node refuses, and logs it', async () => {
    const origin = await startRecordingUpstream();
    const { url, log } = await startApplication(
      { config: to(origin.url) },
      {
        extend: (app) => {
          app.addHook('onRequest', (_, reply, done) => {
            void reply.headers({ 'X-Name': '日本', 'X-Own': 'yes' });
            done();
          });
        },
      },
    );
    const { status, header } = await send(url, '/pay/');
    expect([status, header('x-name'), header('x-own')]).toEqual([200, undefined, 'yes']);
    expect(log().filter(({ level }) => level === 50)).toMatchObject([
      { header: 'x-name', msg: 'header of a hook is not valid, and is left out' },
    ]);
  });

  test('keeps headers of hooks, and none of the upstream, if Node refuses the upstream’s head', async () => {
    const { url } = await listen((_, response) => {
      response.setHeader('X-Hook', 'ours');
      const written = writeResponseHead(response, 200, 'OK', [
        'X-Upstream',
        'theirs',
        'X-Hook',
        'theirs',
        'X-Bad',
        '日本',
      ]);
      response.writeHead(502, 'Bad Gateway', ['X-Written', String(written)]);
      response.end();
    });
    const { status, header } = await send(url, '/');
    expect([status, header('x-written'), header('x-hook'), header('x-upstream')]).toEqual([
      502,
      'false',
      'ours',
      undefined,
    ]);
  });

  test('retries only what is safe to retry, byte for byte', async () => {
    const upstream = await startHttpUpstream((n, response) => {
      response.statusCode = n === 1 || n === 3 ? 503 : 200;
      response.end(String(n));
    });
    const { url, metric } = await startApplication({ config: to(upstream.url, soon) });
    const keyed = ['Idempotency-Key', 'k1'];
    const first = await send(url, '/pay/charges', { method: 'POST', body: 'pay me', headers: keyed });
    expect([first.status, first.header('tidegate-attempts')]).toEqual([200, '2']);
    expect(upstream.hits.map((hit) => hit.body.toString())).toEqual(['pay me', 'pay me']);
    expect((await send(url, '/pay/charges', { method: 'POST', body: 'pay me' })).status).toBe(503);
    expect(upstream.hits).toHaveLength(3);
    expect(await metric('tidegate_retries_total{upstream="api",reason="status_5xx"}')).toBe(1);
  });

  test('reports when a write may have happened', async () => {
    const upstream = await listen((incoming) => void incoming.socket.destroy());
    const { url } = await startApplication({ config: to(upstream.url, soon) });
    const answer = await send(url, '/pay/charges', { method: 'POST', body: 'pay me' });
    expect([answer.status, answer.header('tidegate-outcome')]).toEqual([504, 'unknown']);
  });

  test('streams in both directions: each piece arrives before the next is sent', async () => {
    const upstream = await listen((incoming, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      incoming.pipe(response);
    });
    const { url } = await startApplication({
      config: to(upstream.url, { retry: { replayLimit: '1B' }, perTryTimeout: '30s', timeout: '30s' }),
    });
    const outgoing = request(`${url}/pay/`, { method: 'POST' });
    outgoing.on('error', () => undefined); // reported below, where the response is awaited
    onTestFinished(() => void outgoing.destroy());
    outgoing.write('the first');
    const [incoming] = (await once(outgoing, 'response')) as [NodeJS.ReadableStream];
    for (const piece of ['the first', 'the second', 'the third']) {
      if (piece !== 'the first') outgoing.write(piece);
      const [chunk] = (await once(incoming, 'data')) as [Buffer];
      expect(chunk.toString()).toBe(piece);
    }
    outgoing.end();
    incoming.resume();
    await once(incoming, 'end');
  });

  test('cancels the attempt when the client disconnects, in a wait and in a body', async () => {
    let held = 0;
    let closed = 0;
    const upstream = await listen((incoming, response) => {
      held += 1;
      incoming.on('error', () => undefined);
      response.on('close', () => (closed += 1));
      if (incoming.url === '/half') response.write('half of it');
    });
    const { url, log, metric } = await startApplication({ config: to(upstream.url) });
    await sendAndLeave(url, '/pay/', {}, () => held === 1);
    const half = begin(url, '/pay/half', {}, (incoming) => void incoming.once('data', () => half.destroy()));
    half.end();
    await eventually(
      () => ({ held, closed }),
      (seen) => seen.held === 2 && seen.closed === 2,
    );
    const gone = 'tidegate_requests_total{route="/",method="GET",code="other",outcome="client_gone"}';
    await eventually(
      () => metric(gone),
      (count) => count === 1,
    );
    expect(await metric('tidegate_requests_in_flight{route="/"}')).toBe(0);
    expect(log().filter(({ outcome }) => outcome === 'client_gone')).toHaveLength(1);
  });

  test('handles no request whose client disconnected while a hook of the application ran', async () => {
    const upstream = await startRecordingUpstream();
    let waiting = 0;
    let ended = 0;
    const config = { ...to(upstream.url), limits: { requests: 2 } };
    const { url, metric } = await startApplication(
      { config },
      {
        extend: (app) =>
          app.addHook('preHandler', async ({ raw }) => {
            if (raw.url !== '/pay/left') return;
            waiting += 1;
            await once(raw.socket, 'close');
            ended += 1;
          }),
      },
    );
    for (const sent of [{}, { method: 'POST', body: '{}' }]) {
      const before = waiting;
      await sendAndLeave(url, '/pay/left', sent, () => waiting > before);
    }
    await eventually(
      () => ended,
      (count) => count === 2,
    );
    for (let i = 0; i < 3; i += 1) expect((await send(url, '/pay/last')).status).toBe(200);
    expect(upstream.received.map(({ target }) => target)).toEqual(['/last', '/last', '/last']);
    expect(await metric('tidegate_requests_in_flight{route="/"}')).toBe(0);
  });

  test('never completes an upload upstream whose client disconnected', async () => {
    const ends: string[] = [];
    const upstream = await listen((incoming) => {
      incoming.resume();
      incoming.on('end', () => ends.push('end'));
      incoming.on('error', () => undefined);
      incoming.on('close', () => ends.push('close'));
    });
    const { url } = await startApplication({ config: to(upstream.url, { retry: { replayLimit: '1KiB' } }) });
    const client = await openRaw(url);
    client.write(`POST /pay/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(50_000)}`);
    setTimeout(() => client.socket.destroy(), 100);
    await eventually(
      () => ends,
      ({ length }) => length > 0,
    );
    expect(ends).toEqual(['close']);
  });

  test('keeps a connection usable: discards unread bodies and answers the next request', async () => {
    const upstream = await listen((incoming, response) => {
      incoming.resume();
      response.end(incoming.url);
    });
    const { url } = await startApplication({
      config: { ...to(upstream.url), routes: [{ path: '/v1', upstream: 'api' }] },
    });
    const client = await openRaw(url);
    for (const [path, expected] of [
      ['/pay/nowhere', 'no_route'],
      ['/pay/v1/a', '\r\n\r\n/v1/a'],
      ['/pay/../x', 'dot segment'],
      ['/pay/v1/b', '\r\n\r\n/v1/b'],
    ] as const) {
      client.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde`);
      expect(await client.until(expected)).toContain(expected);
    }
  });

  test('answers an expectation of 100, and performs no upgrades', async () => {
    const origin = await startRecordingUpstream();
    const { url } = await startApplication({ config: to(origin.url) });
    const body = 'pay me';
    const client = await openRaw(url);
    client.write(`POST /pay/ HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`);
    await client.until('HTTP/1.1 100 Continue\r\n\r\n');
    client.write(body);
    await client.until('HTTP/1.1 200 OK');
    expect(client.received().match(/100 Continue/g)).toHaveLength(1);
    expect(origin.received[0]?.body.toString()).toBe(body);
    const other = await openRaw(url);
    other.write('GET /pay/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    expect(await other.ended()).toMatch(/^HTTP\/1\.1 200 OK[^]*\r\nConnection: close\r\n/i);
    expect(origin.received[1]?.headers.upgrade).toBeUndefined();
  });

  test('accepts a target in absolute form', async () => {
    const origin = await startRecordingUpstream();
    const { url } = await startApplication({ config: to(origin.url) });
    const { host } = new URL(url);
    expect((await send(url, `http://${host}/pay/v1?x`)).status).toBe(200);
    expect((await send(url, 'http://elsewhere/pay/v1')).status).toBe(400);
    expect(origin.received.map(({ target }) => target)).toEqual(['/v1?x']);
  });

  test('finds no route for its prefix in other case or with other slashes', async () => {
    const origin = await startRecordingUpstream();
    const { url } = await startApplication(
      { config: to(origin.url) },
      { server: { routerOptions: { caseSensitive: false, ignoreDuplicateSlashes: true } } },
    );
    expect((await send(url, '//pay/v1')).json()).toMatchObject({ status: 404, reason: 'no_route' });
    expect((await send(url, '/p%61y/v1')).json()).toMatchObject({ status: 404, reason: 'no_route' });
    expect((await send(url, '/PAY/v1')).json()).toMatchObject({ status: 404, reason: 'no_route' });
    expect(origin.received).toEqual([]);
  });

  test('reports TLS clients to the upstream', async () => {
    const origin = await startRecordingUpstream();
    const certificates = makeCertificates();
    onTestFinished(certificates.remove);
    certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
    const app = Fastify({ https: { key: certificates.read('server.key'), cert: certificates.read('server.crt') } });
    onTestFinished(() => app.close());
    await app.register(tidegate, { config: to(origin.url), prefix: '/pay' });
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    const outgoing = requestByTls(`${url}/pay/v1`, { ca: certificates.read('ca.crt') }).end();
    const [incoming] = (await once(outgoing, 'response')) as [NodeJS.ReadableStream & { statusCode: number }];
    incoming.resume();
    expect(incoming.statusCode).toBe(200);
    expect(origin.received[0]?.headers['x-forwarded-proto']).toBe('https');
  });

  test('accepts a prefix that ends with a slash', async () => {
    const origin = await startRecordingUpstream();
    const { url } = await startApplication({ config: to(origin.url) }, { prefix: '/pay/' });
    await send(url, '/pay/v1');
    await send(url, '/pay/');
    expect(origin.received.map(({ target }) => target)).toEqual(['/v1', '/']);
  });

  test('answers requests injected by Fastify, which have no socket', async () => {
    const origin = await startRecordingUpstream();
    const { app } = await startApplication({ config: to(origin.url) });
    const { statusCode, body } = await app.inject({ method: 'POST', url: '/pay/v1?x', payload: 'pay me' });
    expect([statusCode, body]).toEqual([200, '{}']);
    expect(origin.received.map(({ target, body: sent }) => [target, sent.toString()])).toEqual([['/v1?x', 'pay me']]);
  });

  test('runs twice in one application without shared state', async () => {
    const [one, two] = await Promise.all([startRecordingUpstream(), startRecordingUpstream()]);
    const { url } = await startApplication(
      { config: to(one.url) },
      { prefix: '/one', extend: (app) => void app.register(tidegate, { config: to(two.url), prefix: '/two' }) },
    );
    await send(url, '/one/a');
    await send(url, '/two/b');
    expect([...one.received, ...two.received].map(({ target }) => target)).toEqual(['/a', '/b']);
  });
});

describe('telemetry', () => {
  test('goes to the application’s log, with secrets masked', async () => {
    const origin = await startRecordingUpstream();
    const { url, log } = await startApplication({ config: to(origin.url) });
    await send(url, '/pay/v1?token=s3cret', { headers: ['Authorization', 'Bearer s3cret'] });
    const lines = await eventually(log, (seen) => seen.some(({ outcome }) => outcome === 'forwarded'));
    const line = lines.find(({ outcome }) => outcome === 'forwarded');
    expect(line).toMatchObject({ level: 30, msg: 'request', route: '/', upstream: 'api', path: '/v1', status: 200 });
    expect(JSON.stringify(lines.filter(({ route }) => route !== undefined))).not.toContain('s3cret');
  });

  test('goes into the application’s registry until the proxy closes', async () => {
    const origin = await startRecordingUpstream();
    const registry = new Registry();
    const { url, app, mounted } = await startApplication({ config: to(origin.url), registry });
    await send(url, '/pay/');
    const counted = /^tidegate_requests_total\{route="\/",.*\} 1$/m;
    expect(await registry.metrics()).toMatch(counted);
    expect(await registry.metrics()).not.toContain('process_resident_memory_bytes');
    expect(await mounted.metrics()).toMatch(counted);
    await app.close();
    expect(await registry.metrics()).not.toContain('tidegate_');
  });

  test('goes into the registry of one proxy, and a second one is rejected', async () => {
    const origin = await startRecordingUpstream();
    const registry = new Registry();
    const { url } = await startApplication({ config: to(origin.url), registry });
    await expect(startApplication({ config: to(origin.url), registry })).rejects.toThrow(
      /^registry cannot take tidegate_\w+; one proxy can have it, and another needs one of its own$/,
    );
    await send(url, '/pay/');
    expect(await registry.metrics()).toMatch(/^tidegate_requests_total\{.*\} 1$/m);
  });
});

describe('a configuration', () => {
  const ready = async (options: Parameters<typeof tidegate>[1], prefix = '/pay'): Promise<unknown> => {
    const app = Fastify();
    onTestFinished(() => app.close());
    void app.register(tidegate, { ...options, prefix });
    return app.ready().then(
      () => undefined,
      (error: unknown) => error,
    );
  };

  test('with errors keeps the application from starting, and each error names its path', async () => {
    const error = await ready({
      config: { upstreams: { api: { url: 'http://x', retry: { atempts: 3 } } }, rotues: [] } as never,
    });
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as Error).message.split('\n').toSorted()).toEqual([
      'config: rotues: unknown key (did you mean routes?)',
      'config: upstreams.api.retry.atempts: unknown key (did you mean attempts?)',
    ]);
  });

  test.each<[string, object, string]>([
    ['neither', {}, 'tidegate needs config, an object, or file, a path'],
    ['both', { config: to('http://x'), file: 'x.yaml' }, 'tidegate takes config or file, not both'],
    ['no path', { file: 5 }, 'file must be a path'],
    [
      'a misspelled option',
      { config: to('http://x'), registri: 1 },
      'tidegate has no option registri (did you mean registry?)',
    ],
    ['another', { config: to('http://x'), onMount: 1 }, 'tidegate has no option onMount (did you mean onMounted?)'],
    ['no listener', { config: to('http://x'), onMounted: 1 }, 'onMounted must be a function'],
    ['no registry', { config: to('http://x'), registry: {} }, 'registry must be a registry of prom-client'],
  ])('is rejected with a precise message: %s', async (_, options, message) => {
    expect(await ready(options as never)).toMatchObject({ name: 'TypeError', message });
  });

  test('that cannot be serialized is an ordinary error, at startup and later', async () => {
    const cyclic: Record<string, unknown> = {};
    cyclic['upstreams'] = { api: { url: 'http://x' }, list: [{ back: cyclic }] };
    const origin = await startRecordingUpstream();
    const { mounted } = await startApplication({ config: to(origin.url) });
    for (const [config, problem] of [
      [cyclic, 'config: upstreams.list[0].back: holds itself'],
      [{ upstreams: { api: { url: 5n } } }, 'config: upstreams.api.url: a BigInt is no number here'],
      ['pay.yaml', 'config: must be an object, not a string'],
      [null, 'config: must be an object, not null'],
    ] as const) {
      expect(await ready({ config: config as never })).toMatchObject({ name: 'ConfigError', message: problem });
      expect(await mounted.reload(config as never)).toEqual({ kind: 'refused', problem });
    }
  });

  test('may come with the options that Fastify itself takes', async () => {
    const options = { config: to('http://127.0.0.1:1'), logLevel: 'warn', logSerializers: {} };
    expect(await ready(options as never)).toBeUndefined();
  });

  test('may not set what belongs to the application', async () => {
    const config: ConfigInput = {
      listen: '127.0.0.1:8080',
      admin: false,
      telemetry: '127.0.0.1:9464',
      workers: 2,
      limits: { headers: '5s', connections: 10 },
      drain: { delay: '1s', timeout: '1s' },
      log: { level: 'debug', format: 'text', buffer: '1MiB', successes: 0.5 },
      upstreams: { api: { url: 'http://127.0.0.1:1' } },
    };
    const error = await ready({ config });
    const paths = (error as ConfigError).mistakes.map(({ path }) => path);
    expect(paths.toSorted()).toEqual([
      'admin',
      'drain.delay',
      'limits.connections',
      'limits.headers',
      'listen',
      'log.buffer',
      'log.format',
      'log.level',
      'telemetry',
      'workers',
    ]);
    expect(String(error)).toContain('config: listen: not allowed where the proxy is mounted in another program');
  });

  test('can also come from a file, and reloads while requests continue', async () => {
    const [before, after] = await Promise.all([startRecordingUpstream(), startRecordingUpstream()]);
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-mounted-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'pay.yaml');
    const write = (url: string): void => writeFileSync(file, `upstreams: {api: {url: "${url}"}}\n`);
    write(before.url);
    const { url, mounted, log } = await startApplication({ file });
    await send(url, '/pay/1');
    write(after.url);
    expect(await mounted.reload()).toEqual({ kind: 'applied', changed: ['upstreams.api.url'] });
    await send(url, '/pay/2');
    writeFileSync(file, 'upstreams: {}\n');
    expect(await mounted.reload()).toMatchObject({
      kind: 'refused',
      problem: expect.stringContaining(`${file}:1:`) as string,
    });
    expect(log().find(({ level }) => level === 50)).toMatchObject({ problem: expect.stringContaining(file) as string });
    expect(await mounted.reload({ upstreams: { api: { url: before.url } } })).toMatchObject({ kind: 'applied' });
    await send(url, '/pay/3');
    expect(before.received.map(({ target }) => target)).toEqual(['/1', '/3']);
    expect(after.received.map(({ target }) => target)).toEqual(['/2']);
    expect(await ready({ file: join(folder, 'none.yaml') })).toMatchObject({ name: 'ConfigError' });
  });

  test('is rejected in an HTTP/2 server, and under a prefix with parameters', async () => {
    const app = Fastify({ http2: true });
    onTestFinished(() => app.close());
    void app.register(tidegate as never, { config: to('http://127.0.0.1:1') } as never);
    await expect(app.ready()).rejects.toThrow('this one speaks HTTP/2');
    expect(await ready({ config: to('http://127.0.0.1:1') }, '/:tenant')).toMatchObject({
      message: 'tidegate needs a prefix without parameters, not /:tenant',
    });
  });
});

describe('when the application closes', () => {
  test('answers requests in flight, and leaves nothing behind', async () => {
    let answer: () => void = () => undefined;
    const upstream = await listen((_, response) => {
      answer = () => void response.end('at last');
    });
    const { app, url, metric } = await startApplication({ config: to(upstream.url) });
    const pending = send(url, '/pay/');
    await eventually(
      () => metric('tidegate_requests_in_flight{route="/"}'),
      (count) => count === 1,
    );
    const closed = app.close();
    setTimeout(() => answer(), 100);
    const { status, body } = await pending;
    expect([status, body.toString()]).toEqual([200, 'at last']);
    await closed;
    await eventually(upstream.openConnections, (count) => count === 0);
  });

  test('aborts requests that take too long, so that it does close', async () => {
    const upstream = await listen(() => undefined);
    const { app, url, log, metric } = await startApplication({
      config: { ...to(upstream.url), drain: { timeout: '200ms' } },
    });
    const pending = send(url, '/pay/', { method: 'POST', body: 'x' });
    await eventually(
      () => metric('tidegate_requests_in_flight{route="/"}'),
      (count) => count === 1,
    );
    await app.close();
    const { status, header } = await pending;
    expect([status, header('tidegate-outcome')]).toEqual([504, 'unknown']);
    expect(log().find(({ msg }) => msg === 'drain timeout: requests in flight are aborted')).toMatchObject({ cut: 1 });
  });
});
