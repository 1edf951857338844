/**
 * Writes to a mounted proxy whose connection ends, or gets a response of the application, while hooks of the application run: they
 * are not sent, because the client has been informed that they were not processed.
 */
import type { Socket } from 'node:net';
import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { openHalf, openRaw } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import { startApplication, type ApplicationOptions } from '../../support/proxy/fastify-application.ts';
import { serverEvents } from '../../support/proxy/server-events.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';

/** Milliseconds. Only what hangs takes as long. */
const WITHIN = 30_000;
const OWN = 'HTTP/1.1 400 Own\r\n\r\n';
const WRITE = 'POST /pay/held HTTP/1.1\r\nHost: x\r\nIdempotency-Key: one\r\nContent-Length: 8\r\n\r\n{"a":"b"';
/** Apart from the rest: the types of Fastify have no `http` beside a clientErrorHandler. */
const CHECKED_OFTEN = { requestTimeout: 60_000, http: { connectionsCheckingInterval: 20 } };
const UPLOAD = `POST /pay/held HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n${'x'.repeat(0x1000)}\r\n`;

/** An application with a hook that holds requests for `/pay/held` until the test releases them. */
async function start({ extend, ...options }: ApplicationOptions = {}) {
  const targets: (string | undefined)[] = [];
  const upstream = await listen((request, response) => {
    targets.push(request.url);
    request.on('error', () => undefined).resume();
    response.end();
  });
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  const held: ServerResponse[] = [];
  const application = await startApplication(
    { config: { upstreams: { api: { url: upstream.url, retry: { replayLimit: '1KiB' } } } } },
    {
      ...options,
      extend: (app) => {
        extend?.(app);
        app.addHook('onRequest', async ({ raw }, reply) => {
          if (raw.url !== '/pay/held') return;
          held.push(reply.raw);
          await released;
        });
      },
    },
  );
  onTestFinished(() => release(undefined)); // before the application closes
  const isHeld = async (): Promise<ServerResponse> => {
    const [response] = await eventually(
      () => held,
      ({ length }) => length > 0,
    );
    if (response === undefined) throw new Error('no request is held');
    return response;
  };
  /** Lets the hook end, and returns the requests that the upstream then has. */
  const sent = async () => {
    release(undefined);
    expect((await send(application.url, '/pay/last')).status).toBe(200);
    return targets;
  };
  return { ...application, reported: serverEvents(application.app.server), isHeld, release, sent };
}

test.each([
  ['a chunk that is malformed', UPLOAD, 'zz\r\n'],
  ['bytes beyond its length', WRITE, '"}'],
])('a write with %s, to which a clientErrorHandler responds, is not sent', async (_, bytes, rest) => {
  const { url, isHeld, sent } = await start({ server: { clientErrorHandler: (_error, socket) => socket.end(OWN) } });
  const { socket, received } = await openHalf(url);
  socket.write(bytes);
  await isHeld();
  socket.write(rest);
  await eventually(received, (text) => text !== '');
  expect(await sent()).toEqual(['/last']);
  expect(received()).toBe(OWN);
});

test.each([
  ['has not responded yet', UPLOAD, 'zz\r\n'],
  ['has not responded yet', WRITE, '"}'],
])('a write with an error to which a clientErrorHandler %s is not sent, and gets a 400', async (_, bytes, rest) => {
  const { url, isHeld, reported, sent } = await start({ server: { clientErrorHandler: () => undefined } });
  const client = await openRaw(url);
  client.write(bytes);
  await isHeld();
  client.write(rest);
  await reported('clientError');
  expect(await sent()).toEqual(['/last']);
  const received = await client.ended(WITHIN);
  expect(received).toMatch(/^HTTP\/1\.1 400 [^]*"reason":"malformed"/);
  expect(received).not.toMatch(/^tidegate-outcome/im);
});

test('a write whose body exceeds the requestTimeout, to which a clientErrorHandler responds, is not sent', async () => {
  const { app, url, isHeld, sent } = await start({
    server: { ...CHECKED_OFTEN, clientErrorHandler: (_error, socket) => socket.end(OWN) },
  });
  const { socket, received } = await openHalf(url);
  socket.write(UPLOAD);
  await isHeld();
  Object.assign(app.server, { headersTimeout: 50, requestTimeout: 50 });
  await eventually(received, (text) => text !== '');
  Object.assign(app.server, { headersTimeout: 0, requestTimeout: 0 });
  expect(await sent()).toEqual(['/last']);
});

test('a write whose connection a timeout listener of the application ends is not sent', async () => {
  const { url, isHeld, sent } = await start({
    extend: (app) => void app.server.on('timeout', (socket: Socket) => socket.end(OWN)),
  });
  const { socket, received } = await openHalf(url);
  socket.write(WRITE);
  (await isHeld()).socket?.setTimeout(20);
  await eventually(received, (text) => text !== '');
  expect(await sent()).toEqual(['/last']);
  expect(received()).toBe(OWN);
});

test.each([
  ['closes', (app: FastifyInstance) => void app.close()],
  ['times out', (_app: FastifyInstance, { socket }: ServerResponse) => void socket?.setTimeout(20)],
])('a write whose connection %s is not sent', async (_, act) => {
  const { app, url, isHeld, release, log } = await start({ server: { forceCloseConnections: true } });
  const client = await openRaw(url);
  client.write(WRITE);
  act(app, await isHeld());
  expect(await client.ended(WITHIN)).toBe('');
  release(undefined);
  await app.close();
  expect(log().filter(({ outcome }) => outcome !== undefined)).toEqual([]);
});

test('a write whose response the application has begun itself is not sent', async () => {
  const { url, isHeld, sent } = await start();
  const client = await openRaw(url);
  client.write(WRITE);
  const response = await isHeld();
  response.writeHead(503).write('own');
  await client.until('own', WITHIN);
  expect(await sent()).toEqual(['/last']);
  expect(client.received()).toMatch(/^HTTP\/1\.1 503 /);
});

test('a write whose connection the application has upgraded is not sent', async () => {
  const { url, isHeld, sent } = await start({
    extend: (app) =>
      void app.server.on('upgrade', (_request, socket) =>
        socket
          .on('end', () => socket.destroy())
          .resume()
          .write('HTTP/1.1 101 Own\r\n\r\n'),
      ),
  });
  const client = await openRaw(url);
  client.write(`${WRITE}GET /own HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n`);
  await isHeld();
  await client.until('101', WITHIN);
  expect(await sent()).toEqual(['/last']);
});

test('a write to which a handlerTimeout of the application is about to respond is not sent', async () => {
  const { promise: rewritten, resolve: rewrite } = Promise.withResolvers<undefined>();
  const { promise: expired, resolve: expire } = Promise.withResolvers<undefined>();
  const { url, sent } = await start({
    server: { handlerTimeout: 50 },
    extend: (app) =>
      app.addHook('onSend', async ({ raw }) => {
        if (raw.url !== '/pay/held') return;
        expire(undefined);
        await rewritten;
      }),
  });
  const client = await openRaw(url);
  client.write(WRITE);
  await expired;
  expect(await sent()).toEqual(['/last']);
  rewrite(undefined);
  await client.until('FST_ERR_HANDLER_TIMEOUT', WITHIN);
});
