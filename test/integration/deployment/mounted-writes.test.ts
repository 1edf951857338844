/**
 * Writes in flight through a mounted proxy, on connections that Node or the application gives up. The response is the proxy's own:
 * a plain response of the application would mean that the write was not processed.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { openHalf, openRaw, type RawClient } from '../../support/clients/raw-socket.ts';
import { startApplication, type ApplicationOptions } from '../../support/proxy/fastify-application.ts';
import { serverEvents } from '../../support/proxy/server-events.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';

/** Milliseconds. Only what hangs takes as long. */
const WITHIN = 30_000;
const STRAY = '"}';
const CHARGE = 'POST /pay/charges HTTP/1.1\r\nHost: x\r\nIdempotency-Key: one\r\nContent-Length: 8\r\n\r\n{"a":"b"';
const OWN_HEAD = 'POST /own HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n';

/** An application, and an upstream that responds to each request when the test says so. */
async function start(options: ApplicationOptions = {}, limits: object = {}) {
  const waiting: ServerResponse[] = [];
  const upstream = await listen((request, response) => {
    request.on('error', () => undefined).resume();
    waiting.push(response);
  });
  const application = await startApplication(
    { config: { upstreams: { api: { url: upstream.url, ...limits } } } },
    options,
  );
  const arrived = async (count: number): Promise<void> => {
    await eventually(
      () => waiting.length,
      (heads) => heads === count,
    );
  };
  const respond = (): void => {
    for (const response of waiting) response.writeHead(201).end('done');
  };
  return { ...application, arrived, respond, reported: serverEvents(application.app.server) };
}

async function charge(url: string): Promise<RawClient> {
  const client = await openRaw(url);
  client.write(CHARGE);
  return client;
}

/** The statuses of all responses, and whether the last one announces the end of its connection. */
function responses(received: string): [string[], boolean] {
  const statuses = received.match(/(?<=HTTP\/1\.1 )\d+/g) ?? [];
  return [[...statuses], /^connection: close\r$/im.test(received)];
}

/** Responds as in the documentation of Node. */
const ends: ApplicationOptions['server'] = {
  clientErrorHandler: (error, socket) => {
    if (error.code !== 'ECONNRESET' && socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
  },
};

test.each([
  ['bytes beyond its length', STRAY, {}],
  ['bytes beyond its length, and a handler that ends the socket', STRAY, ends],
  ['a request with headers that are too long', `GET /own HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, {}],
  ['a request of the application with a malformed body', `${OWN_HEAD}\r\nzz\r\n`, {}],
  [
    'a request whose head takes too long',
    'POST /pay/charges HTTP/1.1\r\n',
    { requestTimeout: 60_000, http: { connectionsCheckingInterval: 20 } },
  ],
] as const)('a write that is followed by %s gets the response of the upstream', async (_, bytes, server) => {
  const { app, url, arrived, respond, reported } = await start({
    server,
    extend: (app) => void app.post('/own', () => 'own'),
  });
  const client = await charge(url);
  await arrived(1);
  Object.assign(app.server, { headersTimeout: 50, requestTimeout: 50 }); // only where they are checked often
  client.write(bytes);
  await reported('clientError');
  respond();
  const received = await client.ended(WITHIN);
  expect(responses(received)).toEqual([['201'], true]);
  expect(received).toMatch(/\bdone\b/);
});

test('a write that is followed by other bytes, and to which the upstream never responds, has an unknown outcome', async () => {
  const { url, arrived } = await start({}, { timeout: '2s', perTryTimeout: '1s', retry: { attempts: 1 } });
  const client = await charge(url);
  await arrived(1);
  client.write(STRAY);
  const received = await client.ended(WITHIN);
  expect(responses(received)).toEqual([['504'], true]);
  expect(received).toMatch(/^tidegate-outcome: unknown\r$/im);
});

test('a response that has begun when other bytes follow its request is completed, and the connection closes', async () => {
  let end: () => void = () => undefined;
  const upstream = await listen((_request, response) => {
    response.writeHead(201, { 'content-length': '9' }).write('beg');
    end = () => void response.end('inning');
  });
  const { app, url } = await startApplication({ config: { upstreams: { api: { url: upstream.url } } } });
  const reported = serverEvents(app.server);
  const client = await charge(url);
  await client.until('beg', WITHIN);
  client.write(STRAY);
  await reported('clientError');
  end();
  expect(await client.ended(WITHIN)).toMatch(/^HTTP\/1\.1 201 [^]*\r\n\r\nbeginning$/);
});

test('pipelined writes and requests of the application that precede unreadable bytes get their responses in order', async () => {
  let own: (text: string) => void = () => undefined;
  const { url, arrived, respond, reported } = await start({
    extend: (app) => void app.get('/own', () => new Promise((resolve) => (own = resolve))),
  });
  const client = await openRaw(url);
  client.write(`GET /own HTTP/1.1\r\nHost: x\r\n\r\n${CHARGE.replace('one', 'two')}${CHARGE}`);
  await arrived(2);
  client.write(STRAY);
  await reported('clientError');
  respond();
  own('own');
  expect(responses(await client.ended(WITHIN))).toEqual([['200', '201', '201'], true]);
});

test('a streamed write that breaks off behind another write gets its own response after that of the first', async () => {
  const { url, arrived, respond, reported } = await start();
  const client = await charge(url);
  await arrived(1);
  client.write(
    `POST /pay/charges HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n${'x'.repeat(0x20000)}\r\n`,
  );
  await arrived(2);
  client.write('zz\r\n');
  await reported('clientError');
  respond();
  const received = await client.ended(WITHIN);
  expect(responses(received)).toEqual([['201', '504'], true]);
  expect(received).toMatch(/^tidegate-outcome: unknown\r$/im);
});

test('the clientErrorHandler of the application runs once, when the connection of the write has closed', async () => {
  const handled: unknown[] = [];
  const { url, arrived, respond, reported } = await start({
    server: { clientErrorHandler: (error, socket) => void handled.push([error.code, socket.destroyed]) },
  });
  const client = await charge(url);
  await arrived(1);
  client.write(STRAY);
  await reported('clientError');
  client.write(STRAY);
  expect(handled).toEqual([]);
  respond();
  await client.ended(WITHIN);
  await eventually(
    () => handled,
    ({ length }) => length > 0,
  );
  expect(handled).toEqual([['HPE_INVALID_METHOD', true]]);
});

test.each([
  [
    'CONNECT',
    (app: FastifyInstance) => app.server.on('connect', (_request, socket) => socket.end('HTTP/1.1 405 No\r\n\r\n')),
  ],
  [
    'GET',
    (app: FastifyInstance) => app.server.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 426 No\r\n\r\n')),
  ],
])(
  'a write that is followed by an upgrade with %s, which the application accepts, gets a close',
  async (method, extend) => {
    const { url, arrived } = await start({ extend: (app) => void extend(app) });
    const client = await charge(url);
    await arrived(1);
    client.write(`${method} /own HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n`);
    expect(await client.ended(WITHIN)).toBe('');
  },
);

test('a write whose client sends more and then ends its side gets a close and no response', async () => {
  const { url, arrived, log } = await start();
  const { socket, received } = await openHalf(url);
  socket.write(CHARGE);
  await arrived(1);
  socket.end(STRAY);
  const requests = await eventually(
    () => log().filter(({ outcome }) => outcome !== undefined),
    ({ length }) => length === 1,
  );
  expect(requests).toMatchObject([{ outcome: 'client_gone' }]);
  expect(received()).toBe('');
});

test('on a further server of the application, bytes after a write do not end it either', async () => {
  const { app, url, arrived, respond } = await start();
  const server = createServer((request, response) => app.routing(request, response)).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const client = await charge(`http://${new URL(url).hostname}:${(server.address() as AddressInfo).port}`);
  await arrived(1);
  const reported = serverEvents(server);
  client.write(STRAY);
  await reported('clientError');
  respond();
  expect(responses(await client.ended(WITHIN))).toEqual([['201'], true]);
});
