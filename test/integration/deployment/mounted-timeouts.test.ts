/** Timeouts of Node and of the application while a write is in flight through a mounted proxy. */
import type { Socket } from 'node:net';
import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { expect, test } from 'vitest';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { startApplication, type ApplicationOptions } from '../../support/proxy/fastify-application.ts';
import { serverEvents } from '../../support/proxy/server-events.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';

/** Milliseconds. Only what hangs takes as long. */
const WITHIN = 30_000;
const WRITE = 'POST /pay/charges HTTP/1.1\r\nHost: x\r\nIdempotency-Key: one\r\nContent-Length: 8\r\n\r\n{"a":"b"';
const UPLOAD = `POST /pay/charges HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n${'x'.repeat(0x1000)}\r\n`;
const OWN = 'HTTP/1.1 408 Own\r\n\r\n';

/** An application with a write in flight. */
async function start(options: ApplicationOptions, bytes = WRITE) {
  const waiting: ServerResponse[] = [];
  const upstream = await listen((request, response) => {
    request.on('error', () => undefined).resume();
    waiting.push(response);
  });
  const api = { url: upstream.url, retry: { replayLimit: '1KiB' } };
  const sockets: Socket[] = [];
  const extend = (app: FastifyInstance): void => {
    options.extend?.(app);
    app.server.on('connection', (socket: Socket) => void sockets.push(socket));
  };
  const application = await startApplication({ config: { upstreams: { api } } }, { ...options, extend });
  const reported = serverEvents(application.app.server);
  const client = await openRaw(application.url);
  client.write(bytes);
  await eventually(
    () => waiting.length,
    (count) => count === 1,
  );
  // From here on, so that no timeout expires before the upstream has the write.
  const expire = (): void => void sockets[0]?.setTimeout(20);
  return { ...application, client, reported, expire, respond: () => waiting[0]?.writeHead(201).end('done') };
}

test('a timeout listener of the application does not respond to a write in flight', async () => {
  const { client, reported, expire, respond } = await start({
    extend: (app) => void app.server.on('timeout', (socket: Socket) => socket.end(OWN)),
  });
  expire();
  await reported('timeout');
  respond();
  expect(await client.until('done', WITHIN)).toMatch(/^HTTP\/1\.1 201 /);
});

test.each([
  ['response', WRITE, ({ raw }: FastifyReply) => raw],
  ['request', UPLOAD, ({ request }: FastifyReply) => request.raw],
] as const)('a timeout that a hook sets on the %s closes the connection of a write in flight', async (_, bytes, of) => {
  const extend = (app: FastifyInstance): void => {
    app.addHook('onRequest', (_request, reply, done) => {
      of(reply).setTimeout(60_000, () => reply.raw.writeHead(408).end());
      done();
    });
  };
  const { client, expire } = await start({ extend }, bytes);
  expire();
  expect(await client.ended(WITHIN)).toBe('');
});

test('the connectionTimeout of the application closes the connection of a write in flight', async () => {
  const { client, expire, log } = await start({
    server: { connectionTimeout: 60_000 },
    extend: (app) => app.addHook('onTimeout', async (_request, reply) => void (await reply.code(408).send('own'))),
  });
  expire();
  expect(await client.ended(WITHIN)).toBe('');
  const requests = await eventually(
    () => log().filter(({ outcome }) => outcome !== undefined),
    ({ length }) => length === 1,
  );
  expect(requests).toMatchObject([{ outcome: 'client_gone', unknown: true }]);
});

test('a handlerTimeout of the application does not respond to a write in flight', async () => {
  const signals: AbortSignal[] = [];
  const { client, respond } = await start({
    server: { handlerTimeout: 50 },
    extend: (app) =>
      app.addHook('onRequest', (request, reply, done) => {
        signals.push(request.signal);
        setTimeout(() => signals.push(reply.request.signal), 60);
        done();
      }),
  });
  await eventually(
    () => signals,
    ({ length }) => length === 2,
  );
  respond();
  expect(await client.until('done', WITHIN)).toMatch(/^HTTP\/1\.1 201 /);
});

test('forced closing of connections closes that of a write in flight without a response', async () => {
  const { app, client } = await start({ server: { forceCloseConnections: true } });
  const closed = app.close();
  expect(await client.ended(WITHIN)).toBe('');
  await closed;
});
