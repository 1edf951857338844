import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, request, type IncomingHttpHeaders } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { BoundedConnections } from '../../../src/admin/bounded-connections.ts';
import type { Readiness } from '../../../src/admin/health-endpoints.ts';
import {
  type AdminOptions,
  type AdminServer,
  startAdminServer,
  startTelemetryServer,
} from '../../../src/admin/admin-server.ts';
import type { Address } from '../../../src/config/values/listen-address.ts';
import { createMetrics } from '../../../src/telemetry/metrics/metrics.ts';

const opened: AdminServer[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((server) => server.close()));
});

const LOOPBACK = { kind: 'tcp', host: '127.0.0.1', port: 0 } as const;
const EVERYWHERE = { kind: 'tcp', host: '0.0.0.0', port: 0 } as const;
const TOKEN = 'correct-horse';

function createOptions(options: Partial<AdminOptions>): AdminOptions {
  const { registry } = createMetrics({
    routes: ['/'],
    upstreams: ['payments'],
    view: () => ({
      limits: [],
      clients: {
        tracked: 0,
        byState: { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 },
        allowance: { min: 1, mean: 1 },
      },
      budgets: new Map(),
    }),
    now: () => performance.now(),
    wallClock: () => Date.now(),
    replayBufferBytes: () => 0,
    build: { version: '1.2.3' },
    mode: 'enforce',
  });
  return { listen: LOOPBACK, registry, readiness: () => ({ phase: 'ready' }), ...options };
}

async function openAdmin(options: Partial<AdminOptions> = {}): Promise<AdminServer> {
  const server = await startAdminServer(createOptions(options));
  opened.push(server);
  return server;
}

async function openTelemetry(options: Partial<AdminOptions> = {}): Promise<AdminServer> {
  const server = await startTelemetryServer(createOptions(options));
  opened.push(server);
  return server;
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

function target(address: Address) {
  return address.kind === 'unix'
    ? { socketPath: address.path }
    : { host: address.host === '0.0.0.0' ? '127.0.0.1' : address.host, port: address.port };
}

function connectTo(address: Address): Socket {
  return address.kind === 'unix' ? connect(address.path) : connect({ host: address.host, port: address.port });
}

function ask(
  { address }: AdminServer,
  path: string,
  { method = 'GET', headers = {}, body }: Ask = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ ...target(address), path, method, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: text }));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

describe('health', () => {
  test('livez answers whatever the readiness', async () => {
    const admin = await openAdmin({ readiness: () => ({ phase: 'starting' }) });
    expect(await ask(admin, '/livez')).toMatchObject({ status: 200, body: 'live\n' });
  });

  test('readyz follows the phases of startup and shutdown', async () => {
    let phase: Readiness['phase'] = 'starting';
    const admin = await openAdmin({ readiness: () => ({ phase }) });
    expect(await ask(admin, '/readyz')).toMatchObject({ status: 503, body: 'starting\n' });
    phase = 'ready';
    expect(await ask(admin, '/readyz')).toMatchObject({ status: 200, body: 'ready\n' });
    phase = 'draining';
    expect(await ask(admin, '/readyz')).toMatchObject({ status: 503, body: 'draining\n' });
  });

  test('readyz returns notes on request, and stays ready when a third party is down', async () => {
    const admin = await openAdmin({
      readiness: () => ({ phase: 'ready', notes: { payments: 'blocked', store: 'memory' } }),
    });
    expect(await ask(admin, '/readyz')).toMatchObject({ status: 200, body: 'ready\n' });
    expect(await ask(admin, '/readyz?verbose')).toMatchObject({
      status: 200,
      body: 'ready\npayments: blocked\nstore: memory\n',
    });
  });
});

describe('metrics', () => {
  test('can be parsed by Prometheus', async () => {
    const answer = await ask(await openAdmin(), '/metrics');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(answer.body).toContain('\ntidegate_build_info{version="1.2.3"} 1\n');
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: answer.body,
      encoding: 'utf8',
    });
    expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' });
  });
});

describe('any listener', () => {
  test.each(['/livez', '/readyz', '/metrics'])('answers HEAD %s without a body', async (path) => {
    const answer = await ask(await openAdmin(), path, { method: 'HEAD' });
    expect(answer).toMatchObject({ status: 200, body: '' });
    expect(Number(answer.headers['content-length'])).toBeGreaterThan(0);
  });

  test.each(['/', '/nope', '/metrics/', '//livez', '/metrics/../secret'])('answers %s with 404', async (path) => {
    const answer = await ask(await openAdmin(), path);
    expect(answer.status).toBe(404);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(JSON.parse(answer.body)).toMatchObject({ status: 404, title: 'Not Found' });
  });

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PURGE', 'QUERY'])(
    'answers %s with 405, whatever its body',
    async (method) => {
      const admin = await openAdmin();
      for (const contentType of ['application/json', 'no/such', 'malformed']) {
        const answer = await ask(admin, '/metrics', {
          method,
          body: '{"broken',
          headers: { 'content-type': contentType, 'content-length': '8' },
        });
        expect(answer.status).toBe(405);
        expect(answer.headers.allow).toBe('GET, HEAD');
        expect(JSON.parse(answer.body)).toMatchObject({ status: 405, title: 'Method Not Allowed' });
      }
    },
  );

  test('answers a malformed URL with 400', async () => {
    const answer = await ask(await openAdmin(), '/%zz');
    expect(answer.status).toBe(400);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
  });

  test.each([
    [400, 'NONSENSE\r\n\r\n'],
    [400, 'GET /livez HTTP/1.1\nHost: localhost\n\n'],
    [431, `GET /livez HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
  ])('answers malformed HTTP with a problem: %i', async (status, bytes) => {
    for (const server of [await openAdmin(), await openTelemetry()]) {
      const socket = connectTo(server.address);
      socket.write(bytes);
      let text = '';
      socket.on('data', (data: Buffer) => {
        text += data.toString();
      });
      await once(socket, 'close');
      const [head = '', body = ''] = text.split('\r\n\r\n');
      expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(head).toContain('Content-Type: application/problem+json');
      expect(JSON.parse(body)).toMatchObject({ type: 'about:blank', status });
    }
  });

  test('answers an internal error with a problem', async () => {
    const admin = await openAdmin({
      readiness: () => {
        throw new Error('no idea');
      },
    });
    const answer = await ask(admin, '/readyz');
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.body)).toMatchObject({ status: 500, detail: 'no idea' });
  });

  test('on a port in use rejects with EADDRINUSE', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = taken.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    try {
      await expect(openAdmin({ listen: { kind: 'tcp', host: '127.0.0.1', port } })).rejects.toMatchObject({
        code: 'EADDRINUSE',
        port,
      });
    } finally {
      taken.close();
    }
  });

  test('on IPv6 answers at its address', async () => {
    const admin = await openAdmin({ listen: { kind: 'tcp', host: '::1', port: 0 } });
    expect(admin.address).toMatchObject({ host: '::1' });
    expect(await ask(admin, '/livez')).toMatchObject({ status: 200 });
  });

  test('on localhost answers at each of its addresses', async () => {
    const { address } = await openAdmin({ listen: { kind: 'tcp', host: 'localhost', port: 0 } });
    if (address.kind === 'unix') throw new Error('expected a port');
    const answer = await fetch(`http://localhost:${address.port}/livez`);
    expect(answer.status).toBe(200);
    await answer.text();
  });

  test('on a Unix socket answers for any Host, and removes its file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
    try {
      const admin = await openAdmin({ listen: { kind: 'unix', path: join(folder, 'admin.sock') } });
      expect(admin.address).toEqual({ kind: 'unix', path: join(folder, 'admin.sock') });
      expect(await ask(admin, '/metrics', { headers: { host: 'anything' } })).toMatchObject({ status: 200 });
      await admin.close();
      expect(existsSync(join(folder, 'admin.sock'))).toBe(false);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('closes with connections that are idle, in mid-request or unused', async () => {
    const admin = await startAdminServer(createOptions({}));
    const { port } = target(admin.address);
    if (port === undefined) throw new Error('expected a port');
    const sockets: Socket[] = ['GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n', 'GET /metrics HTTP/1.1\r\nHo', ''].map(
      (head) => {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => {});
        socket.write(head);
        return socket;
      },
    );
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    const [first] = sockets;
    if (first !== undefined) await once(first, 'data');
    const closed = Promise.all(
      sockets.map((socket) => new Promise((resolve) => void socket.resume().on('close', resolve))),
    );
    await admin.close();
    await expect(closed).resolves.toHaveLength(3);
  });
});

describe('the admin port on a loopback address', () => {
  test.each(['localhost', 'LOCALHOST:9901', '127.0.0.1', '127.0.0.1:9901', '127.9.9.9', '[::1]', '[::1]:9901'])(
    'answers to Host %s',
    async (host) => {
      expect(await ask(await openAdmin(), '/metrics', { headers: { host } })).toMatchObject({ status: 200 });
    },
  );

  test.each([
    'evil.example',
    'evil.example:9901',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '10.0.0.1',
    '[::2]',
    'user@localhost',
    '[localhost',
  ])('does not answer to Host %s, under which a web page could reach it', async (host) => {
    for (const path of ['/metrics', '/livez', '/nope']) {
      const answer = await ask(await openAdmin(), path, { headers: { host } });
      expect(answer.status).toBe(421);
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    }
  });

  test.each([
    [{ origin: 'http://127.0.0.1:9901', host: '127.0.0.1:9901' }, 200],
    [{ origin: 'http://LOCALHOST:9901', host: 'localhost:9901' }, 200],
    [{ host: 'localhost:9901' }, 200],
    [{ origin: 'http://evil.example', host: '127.0.0.1:9901' }, 403],
    [{ origin: 'http://127.0.0.1:8080', host: '127.0.0.1:9901' }, 403],
    [{ origin: 'https://127.0.0.1:9901', host: '127.0.0.1:9901' }, 403],
    [{ origin: 'http://127.0.0.1:9901.evil.example', host: '127.0.0.1:9901' }, 403],
    [{ origin: 'null', host: '127.0.0.1:9901' }, 403],
    [{ origin: 'http://evil.example', host: 'evil.example' }, 421],
  ] as const)('to a page that sends %j it answers %s', async (headers, status) => {
    const admin = await openAdmin({ token: TOKEN });
    for (const path of ['/metrics', '/livez']) {
      for (const method of ['GET', 'POST']) {
        const answer = await ask(admin, path, { method, headers });
        expect(answer.status).toBe(status === 200 && method === 'POST' ? 405 : status);
        expect(answer.headers['access-control-allow-origin']).toBeUndefined();
        expect(answer.headers['cross-origin-resource-policy']).toBe('same-origin');
      }
    }
    const authorization = `Bearer ${TOKEN}`;
    expect(await ask(admin, '/metrics', { headers: { ...headers, authorization } })).toMatchObject({ status: 200 });
  });

  test('answers to any Host with the token', async () => {
    const admin = await openAdmin({ token: TOKEN });
    const host = 'gateway.internal';
    expect(await ask(admin, '/metrics', { headers: { host, authorization: `Bearer ${TOKEN}` } })).toMatchObject({
      status: 200,
    });
    expect(await ask(admin, '/metrics', { headers: { host, authorization: 'Bearer guess' } })).toMatchObject({
      status: 421,
    });
  });
});

describe('the admin port on other addresses', () => {
  test('does not open without a token', async () => {
    await expect(openAdmin({ listen: EVERYWHERE })).rejects.toThrow(
      'the admin port needs a token to listen on 0.0.0.0',
    );
  });

  test.each(['/metrics', '/nope'])('requires the token for %s', async (path) => {
    const admin = await openAdmin({ listen: EVERYWHERE, token: TOKEN });
    const guesses = [
      '',
      'Bearer',
      'Bearer ',
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(0, -1)}`,
      `Basic ${TOKEN}`,
      TOKEN,
    ];
    for (const authorization of guesses) {
      const answer = await ask(admin, path, { headers: { authorization } });
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="tidegate"');
      expect(answer.body).not.toContain('tidegate_');
    }
    for (const authorization of [`Bearer ${TOKEN}`, `bearer ${TOKEN}`]) {
      const answer = await ask(admin, path, { headers: { authorization, host: 'gateway.internal' } });
      expect(answer.status).toBe(path === '/metrics' ? 200 : 404);
    }
  });

  test('answers probes without it', async () => {
    const admin = await openAdmin({ listen: EVERYWHERE, token: TOKEN });
    for (const path of ['/livez', '/readyz', '/readyz?verbose']) {
      expect(await ask(admin, path, { headers: { host: '10.0.0.7:9901' } })).toMatchObject({ status: 200 });
    }
  });
});

describe('connections of a listener', () => {
  /** Opens connections, all of which close with the test. */
  function opener(address: Parameters<typeof target>[0]) {
    const { port } = target(address);
    if (port === undefined) throw new Error('expected a port');
    const sockets: Socket[] = [];
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    return async (head = '', localAddress = '127.0.0.1'): Promise<Socket> => {
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      sockets.push(socket);
      socket.on('error', () => {});
      await once(socket, 'connect');
      if (head !== '') socket.write(head);
      return socket;
    };
  }

  const PROBE = 'GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';

  test.each([
    ['nothing was sent on', ''],
    ['a probe was answered on', PROBE],
    ['half a request was sent on', 'GET /livez HTTP/1.1\r\n'],
  ])('are bounded: the least recently used one that %s is closed for a new one', async (_, head) => {
    const telemetry = await openTelemetry();
    const open = opener(telemetry.address);
    const sockets: Socket[] = [];
    while (telemetry.bound.used < 1) {
      const socket = await open(head);
      if (head === PROBE) await once(socket, 'data');
      sockets.push(socket);
    }
    expect(sockets).toHaveLength(128);
    for (let probe = 0; probe < 3; probe += 1) {
      expect(await ask(telemetry, '/livez')).toMatchObject({ status: 200 });
    }
    expect(telemetry.bound.reached).toBeGreaterThan(0);
    const [first] = sockets;
    await expect.poll(() => first?.closed).toBe(true);
    expect(sockets.at(-1)?.closed).toBe(false);
  });

  test('give way to those of the same address first: many of one close none of another', async () => {
    const telemetry = await openTelemetry();
    const open = opener(telemetry.address);
    const calm = await open('', '127.0.0.2');
    for (let i = 0; i < 300; i += 1) await open();
    expect(telemetry.bound.reached).toBeGreaterThan(100);
    calm.write(PROBE);
    expect(String(await once(calm, 'data'))).toContain('200 OK');
  });

  test('close for a request pipelined before a response: a thousand scrapes delay no probe', async () => {
    let scrapes = 0;
    const registry = { metrics: () => Promise.resolve(`scrape ${(scrapes += 1)}`) };
    const telemetry = await openTelemetry({ listen: LOOPBACK, registry });
    const open = opener(telemetry.address);
    const scrape = 'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
    const socket = await open(scrape.repeat(1700));
    await expect.poll(() => socket.closed).toBe(true);
    expect(scrapes).toBeLessThan(3);
    expect(await ask(telemetry, '/metrics')).toMatchObject({ status: 200 });
    expect(await ask(telemetry, '/livez')).toMatchObject({ status: 200 });
  });

  test('are read no further after that, and the parser serves the next connection', async () => {
    const server = createHttpServer((_, response) => setImmediate(() => response.end('ok')));
    new BoundedConnections(8).attach(server);
    let heads = 0;
    server.on('request', () => {
      heads += 1;
    });
    server.on('clientError', (_, socket) => socket.destroy());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => server.close().closeAllConnections());
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    for (let connection = 1; connection <= 3; connection += 1) {
      const socket = connect(port ?? 0, '127.0.0.1').on('error', () => undefined);
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1000));
      await once(socket, 'close');
      expect(heads).toBe(3 * connection - 1);
      expect((await fetch(`http://127.0.0.1:${port}`)).status).toBe(200);
    }
  });

  test('are closed for a probe even when all of them are being answered', async () => {
    const admin = await openAdmin();
    const open = opener(admin.address);
    const head = 'GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n';
    while (admin.bound.used < 1) {
      await open(head);
    }
    expect(await ask(admin, '/livez')).toMatchObject({ status: 200 });
  });
});

describe('telemetry', () => {
  test('is open to anyone, for any Host, on any address', async () => {
    const telemetry = await openTelemetry({ listen: EVERYWHERE });
    for (const path of ['/livez', '/readyz', '/metrics']) {
      expect(await ask(telemetry, path, { headers: { host: 'tidegate.payments.svc:9464' } })).toMatchObject({
        status: 200,
      });
    }
  });

  test('serves nothing else', async () => {
    const telemetry = await openTelemetry();
    for (const path of ['/', '/api/status', '/api/config']) {
      expect(await ask(telemetry, path)).toMatchObject({ status: 404 });
    }
    expect(await ask(telemetry, '/metrics', { method: 'POST' })).toMatchObject({ status: 405 });
  });
});
