import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request } from 'node:http';
import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeTrusts } from '../../src/http/request/client-identity.ts';
import { startHttpUpstream } from '../support/http-upstream.ts';
import { headerOf, send } from '../support/send.ts';
import type { Tidegate } from '../support/tidegate.ts';
import { eventually, startTidegate } from '../support/tidegate.ts';

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Asks over a Unix socket. */
async function ask(socketPath: string, path: string, headers: Record<string, string> = {}) {
  const outgoing = request({ socketPath, path, headers }).end();
  outgoing.on('error', () => undefined); // heard of below, while its answer is waited for
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

test('clients are served on a Unix socket, whose file goes when the process does', async () => {
  const { gate, socket, seen } = await start();
  expect(gate.url).toBe(`unix:${socket}`);
  expect(await ask(socket, '/', { 'x-forwarded-for': '203.0.113.7' })).toEqual({ status: 200, body: 'fine' });
  // RFC 7239 §6.2: who cannot be told has this name; what a stranger says of others is not passed on.
  expect(headerOf(seen[0] ?? [], 'x-forwarded-for')).toBe('unknown');
  await gate.drain();
  expect(existsSync(socket)).toBe(false);
});

test('its permissions are those that are wanted', async () => {
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

test('who connects there is one client, unless a key tells it apart', async () => {
  const { gate, socket } = await start('clients: {key: ["header:x-api-key", ip]}');
  await ask(socket, '/');
  await ask(socket, '/', { 'x-forwarded-for': '203.0.113.7' });
  await ask(socket, '/', { 'x-api-key': 'a' });
  const lines = await eventually(gate.requests, ({ length }) => length === 3);
  const [one, again, other] = lines.map(({ client }) => client);
  expect(again).toBe(one);
  expect(other).not.toBe(one);
});

test('a proxy in front of it is believed where it is trusted by name, and only it', async () => {
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
  // Whoever had no name for that proxy is not the proxy: what it said before is not believed.
  expect(behindUnknown).not.toBe(plain);
  expect(behindUnknown).toBe(none);
  expect(unknown).toBe(none);
  expect(headerOf(seen[0] ?? [], 'x-forwarded-for')).toBe('203.0.113.7, unknown');
  expect(headerOf(seen[0] ?? [], 'forwarded')).toMatch(/^for=unknown;/);
});

test('where clients come by TCP, nobody is trusted as if they came by the socket', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}"}}\nclients: {key: [ip], trustedProxies: [unix]}`,
  );
  await send(gate.url, '/');
  await send(gate.url, '/', { headers: ['X-Forwarded-For', '203.0.113.7'] });
  const lines = await eventually(gate.requests, ({ length }) => length === 2);
  expect(lines[0]?.['client']).toBe(lines[1]?.['client']);
  // Nor a client whose address nobody can tell any more, because it has gone.
  expect(makeTrusts(['unix'], false)('unknown')).toBe(false);
});

test('an upstream on a Unix socket is reached, retries and all, and a WebSocket too', async () => {
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
  client.on('error', () => undefined); // that its end is a reset is no matter here
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

test('an upstream whose socket is not there is one that cannot be reached', async () => {
  const path = join(makeFolder(), 'nobody.sock');
  const gate = await startTidegate(`upstreams: {api: {url: "unix:${path}", retry: {attempts: 1}}}`);
  const answer = await send(gate.url, '/', { method: 'POST', body: 'pay' });
  expect(answer.status).toBe(502);
  expect(answer.json()).toMatchObject({ reason: 'connect' });
  expect(gate.requests()).toMatchObject([{ cause: 'ENOENT' }]);
});
