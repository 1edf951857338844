import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request } from 'node:http';
import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeTrustCheck } from '../../../src/http/request/client-identity.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Sends a request over a Unix socket. */
async function ask(socketPath: string, path: string, headers: Record<string, string> = {}) {
  const outgoing = request({ socketPath, path, headers }).end();
  outgoing.on('error', () => undefined); // reported below, where the response is awaited
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return { status: incoming.statusCode, body: Buffer.concat(chunks).toString() };
}

async function start(
  yaml = '',
  upstream = '',
): Promise<{ gate: Tidegate; socket: string; seen: readonly (readonly string[])[] }> {
  const seen: (readonly string[])[] = [];
  const { url } = await startHttpUpstream((_n, response, { headers }) => {
    seen.push(headers);
    response.end('fine');
  });
  const socket = join(makeFolder(), 'gate.sock');
  const listen = yaml.includes('{socket}') ? '' : `listen: unix:${socket}\n`;
  const gate = await startTidegate(
    `${listen}${yaml.replaceAll('{socket}', socket)}\nupstreams: {api: {url: "${url}"${upstream}}}`,
  );
  return { gate, socket, seen };
}

test('serves clients on a Unix socket, and removes its file when the process exits', async () => {
  const { gate, socket, seen } = await start();
  expect(gate.url).toBe(`unix:${socket}`);
  expect(await ask(socket, '/', { 'x-forwarded-for': '203.0.113.7' })).toEqual({ status: 200, body: 'fine' });
  // RFC 7239 §6.2: the name of an unknown client; an untrusted client's claims about others are dropped.
  expect(headerOf(seen[0] ?? [], 'x-forwarded-for')).toBe('unknown');
  await gate.drain();
  expect(existsSync(socket)).toBe(false);
});

test('creates the socket with the configured permissions', async () => {
  for (const [permissions, mode] of [
    ['0660', 0o660],
    ['600', 0o600],
  ] as const) {
    const admin = join(makeFolder(), 'admin.sock');
    const { socket } = await start(
      `listen: {address: "unix:{socket}", permissions: "${permissions}"}\nadmin: {listen: "unix:${admin}", permissions: "${permissions}"}`,
    );
    expect(statSync(socket).mode & 0o777).toBe(mode);
    expect(statSync(admin).mode & 0o777).toBe(mode);
    expect((await ask(socket, '/')).status).toBe(200);
    expect((await ask(admin, '/livez')).status).toBe(200);
  }
});

test('counts all socket connections as one client, unless a key distinguishes them', async () => {
  const { gate, socket } = await start('clients: {key: ["header:x-api-key", ip]}');
  await ask(socket, '/');
  await ask(socket, '/', { 'x-forwarded-for': '203.0.113.7' });
  await ask(socket, '/', { 'x-api-key': 'a' });
  const lines = await eventually(gate.requests, ({ length }) => length === 3);
  const [one, again, other] = lines.map(({ client }) => client);
  expect(again).toBe(one);
  expect(other).not.toBe(one);
});

test('trusts forwarding headers from the socket only where it is listed as a trusted proxy', async () => {
  const { gate, socket, seen } = await start(
    'clients: {key: [ip], trustedProxies: [unix, 10.0.0.0/8]}\nforwarded: true',
  );
  const froms = [
    '203.0.113.7',
    '6.6.6.6, 203.0.113.7',
    '203.0.113.7, 10.1.2.3',
    '203.0.113.8',
    '203.0.113.7, unknown',
    'unknown',
  ];
  for (const from of froms) await ask(socket, '/', { 'x-forwarded-for': from });
  await ask(socket, '/');
  const lines = await eventually(gate.requests, ({ length }) => length === froms.length + 1);
  const [plain, behindLiar, behindProxy, other, behindUnknown, unknown, none] = lines.map(({ client }) => client);
  expect(behindLiar).toBe(plain);
  expect(behindProxy).toBe(plain);
  expect(other).not.toBe(plain);
  // A client that the front proxy could not identify is not that proxy: entries before it are not believed.
  expect(behindUnknown).not.toBe(plain);
  expect(behindUnknown).toBe(none);
  expect(unknown).toBe(none);
  expect(headerOf(seen[0] ?? [], 'x-forwarded-for')).toBe('203.0.113.7, unknown');
  expect(headerOf(seen[0] ?? [], 'forwarded')).toMatch(/^for=unknown;/);
});

test('does not treat TCP clients as trusted socket clients', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}"}}\nclients: {key: [ip], trustedProxies: [unix]}`,
  );
  await send(gate.url, '/');
  await send(gate.url, '/', { headers: ['X-Forwarded-For', '203.0.113.7'] });
  const lines = await eventually(gate.requests, ({ length }) => length === 2);
  expect(lines[0]?.['client']).toBe(lines[1]?.['client']);
  // Nor is a client that has disconnected, so that its address is unknown.
  expect(makeTrustCheck(['unix'], false)('unknown')).toBe(false);
});

test('reaches an upstream on a Unix socket, with retries and WebSockets', async () => {
  const path = join(makeFolder(), 'upstream.sock');
  const hosts: (string | undefined)[] = [];
  let n = 0;
  const server = createServer((incoming: IncomingMessage, response: ServerResponse) => {
    hosts.push(incoming.headers.host);
    n += 1;
    response.writeHead(n === 1 ? 503 : 200).end('behind a socket');
  });
  server.on('upgrade', (_incoming, socket) => {
    socket.on('error', () => undefined);
    onTestFinished(() => {
      socket.destroy();
    });
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello');
  });
  server.listen(path);
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const gate = await startTidegate(`upstreams:
  api: {url: "unix:${path}", retry: {backOff: {strategy: fixed, baseInterval: 10ms}}}
  kept: {url: "unix:${path}", preserveHost: true}
routes: [{path: /, upstream: api}, {path: /kept, upstream: kept}]`);
  const answer = await send(gate.url, '/', { headers: ['Host', 'shop.example'] });
  expect({ status: answer.status, body: answer.body.toString() }).toEqual({ status: 200, body: 'behind a socket' });
  expect(answer.header('tidegate-attempts')).toBe('2');
  await send(gate.url, '/kept', { headers: ['Host', 'shop.example'] });
  expect(hosts).toEqual(['localhost', 'localhost', 'shop.example']);
  const { hostname, port } = new URL(gate.url);
  const client = connect({ host: hostname, port: Number(port) });
  client.on('error', () => undefined); // a reset at its end does not matter here
  onTestFinished(() => {
    client.destroy();
  });
  let text = '';
  client.on('data', (data: Buffer) => (text += data.toString()));
  client.write(
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n',
  );
  await eventually(
    () => text,
    (seen) => seen.includes('hello'),
  );
});

test('treats a missing upstream socket as a failure to connect', async () => {
  const path = join(makeFolder(), 'nobody.sock');
  const gate = await startTidegate(`upstreams: {api: {url: "unix:${path}", retry: {attempts: 1}}}`);
  const answer = await send(gate.url, '/', { method: 'POST', body: 'pay' });
  expect(answer.status).toBe(502);
  expect(answer.json()).toMatchObject({ reason: 'connect' });
  expect(gate.requests()).toMatchObject([{ cause: 'ENOENT' }]);
});
