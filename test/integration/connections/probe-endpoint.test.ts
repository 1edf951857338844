import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { probeEndpoint } from '../../../src/process/probes/probe-endpoint.ts';
import { makeCertificates } from '../../support/certificates.ts';

const { path, ...certificates } = makeCertificates();

beforeAll(() => {
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  certificates.issueExpired('expired', 'IP:127.0.0.1');
});
afterAll(() => certificates.remove());

const OPTIONS = {
  connectTimeout: 5000,
  http2: false,
  tls: { minVersion: 'TLSv1.2', insecure: false },
} as const;

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy(); // a server that never reads does not notice the end of a connection
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function startHttps(name: string): Promise<string> {
  const server = createHttpsServer({ cert: certificates.read(`${name}.crt`), key: certificates.read(`${name}.key`) });
  return `https://127.0.0.1:${await portOf(server)}`;
}

test('finds no problem at a plain endpoint, and sends no request', async () => {
  let requests = 0;
  const server = createHttpServer(() => (requests += 1));
  const ended = once(server, 'connection').then(async ([socket]: unknown[]) => once(socket as Server, 'close'));
  expect(await probeEndpoint(`http://127.0.0.1:${await portOf(server)}`, OPTIONS)).toBeUndefined();
  await ended; // the probe leaves no connection behind
  expect(requests).toBe(0);
});

test('finds no problem at an https endpoint whose certificate is trusted', async () => {
  const url = await startHttps('server');
  const tls = { ...OPTIONS.tls, ca: path('ca.crt') };
  expect(await probeEndpoint(url, { ...OPTIONS, tls })).toBeUndefined();
  expect(await probeEndpoint(url, { ...OPTIONS, tls, http2: true })).toBeUndefined();
});

test('names what is wrong with a certificate', async () => {
  expect((await probeEndpoint(await startHttps('server'), OPTIONS))?.text).toBe(
    'its certificate is from an authority that this proxy does not trust',
  );
  const tls = { ...OPTIONS.tls, ca: path('ca.crt') };
  expect((await probeEndpoint(await startHttps('expired'), { ...OPTIONS, tls }))?.text).toBe(
    'its certificate has expired',
  );
});

test('suggests http for an https url if the endpoint answers without TLS', async () => {
  const port = await portOf(createHttpServer());
  expect((await probeEndpoint(`https://127.0.0.1:${port}`, OPTIONS))?.text).toBe(
    'it does not speak TLS at this port: the url probably needs http in place of https',
  );
});

test('reports a handshake that the endpoint cuts off', async () => {
  const port = await portOf(createServer((socket) => socket.destroy()));
  expect((await probeEndpoint(`https://127.0.0.1:${port}`, OPTIONS))?.text).toBe('the connection was reset');
});

test('reports a refused connection, an unknown name and a missing socket', async () => {
  const server = createServer();
  const port = await portOf(server);
  server.close();
  await once(server, 'close');
  expect((await probeEndpoint(`http://127.0.0.1:${port}`, OPTIONS))?.text).toBe('connection refused');
  expect((await probeEndpoint('http://nowhere.invalid', OPTIONS))?.text).toMatch(
    /^the host name (?:does not exist|could not be)/,
  );
  expect((await probeEndpoint('unix:/nowhere/api.sock', OPTIONS))?.text).toBe('the socket does not exist');
});

test('reports an endpoint that does not complete the handshake within connectTimeout', async () => {
  const port = await portOf(createServer());
  expect((await probeEndpoint(`https://127.0.0.1:${port}`, { ...OPTIONS, connectTimeout: 50 }))?.text).toBe(
    'connecting timed out',
  );
});
