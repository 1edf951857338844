/** Empty elements of list headers: a recipient ignores them (RFC 9110 §5.6.1.2), a sender writes none (§5.6.1.1). */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { openRaw, sendRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { isRequestFarFromQuadratic, longText } from '../../support/linear-time.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

async function start(more = '') {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}\n${more}`);
  const seen = (name: string) => headerOf(upstream.hits.at(-1)!.headers, name);
  return { upstream, gate, seen };
}

test.each(['', ' ', ',', ' , ,\t', ',100-continue', '100-continue,', ' , 100-Continue , '])(
  'ignores the empty elements of Expect: %j',
  async (expectation) => {
    const { upstream, gate } = await start();
    const client = await openRaw(gate.url);
    client.write(`POST / HTTP/1.1\r\nHost: x\r\nExpect:${expectation}\r\nContent-Length: 4\r\n\r\n`);
    if (/100/.test(expectation)) await client.until('HTTP/1.1 100 Continue\r\n\r\n');
    client.write('body');
    await client.until('fine');
    expect(client.received()).toContain('HTTP/1.1 200 OK');
    expect(client.received().includes('100 Continue')).toBe(/100/.test(expectation));
    expect(upstream.hits[0]?.body.toString()).toBe('body');
    expect(headerOf(upstream.hits[0]!.headers, 'expect')).toBeUndefined();
  },
);

test.each(['100-continue, a-miracle', 'x-100-continue', ',a-miracle', '100-continue;x', '"100-continue"'])(
  'answers 417 to Expect: %j',
  async (expectation) => {
    const { upstream, gate } = await start();
    const answer = await sendRaw(
      gate.url,
      `GET / HTTP/1.1\r\nHost: x\r\nExpect: ${expectation}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 417 /);
    expect(upstream.hits).toHaveLength(0);
  },
);

test('finds the client despite empty elements of X-Forwarded-For, and trims them at both ends', async () => {
  const { gate, seen } = await start('clients: {trustedProxies: [127.0.0.1], key: [ip]}\nmode: observe');
  const clientOf = async (...forwarded: string[]) => {
    await send(gate.url, '/', { headers: forwarded.flatMap((value) => ['X-Forwarded-For', value]) });
    return seen('x-forwarded-for');
  };
  for (const value of ['203.0.113.7', '203.0.113.7, ', '203.0.113.7,,', ' ,\t203.0.113.7 ,']) {
    expect(await clientOf(value)).toBe('203.0.113.7, 127.0.0.1');
  }
  expect(await clientOf('203.0.113.7', '')).toBe('203.0.113.7, 127.0.0.1');
  expect(await clientOf('', '203.0.113.7')).toBe('203.0.113.7, 127.0.0.1');
  expect(await clientOf('')).toBe('127.0.0.1');
  expect(await clientOf(',')).toBe('127.0.0.1');
  await clientOf('203.0.113.8, ,127.0.0.1, ');
  // Two named clients, and the connecting address for all others.
  const requests = await eventually(gate.requests, (lines) => lines.length === 9);
  const clients = new Set(requests.map(({ client }) => client));
  expect(clients.size).toBe(3);
});

test('closes the connection for close after an empty element of Connection', async () => {
  const { gate, seen } = await start();
  for (const connection of [', close', 'close,', ',,close', ' , close , ', 'keep-alive, , close', ',\tclose']) {
    const answer = await sendRaw(
      gate.url,
      `GET / HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n`,
    );
    expect(answer.match(/HTTP\/1\.1 200 OK/g), connection).toHaveLength(1);
    expect(answer, connection).toMatch(/\r\nConnection: close\r\n/);
  }
  await sendRaw(gate.url, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: ,x-a,, ,close\r\nX-A: 1\r\nX-B: 2\r\n\r\n');
  expect([seen('x-a'), seen('x-b')]).toEqual([undefined, '2']);
});

test('keeps an HTTP/1.0 connection for keep-alive after an empty element', async () => {
  const { gate } = await start();
  const client = await openRaw(gate.url);
  const get = 'GET / HTTP/1.0\r\nHost: x\r\nConnection: , keep-alive\r\n\r\n';
  client.write(get);
  expect(await client.until(/fine$/)).toMatch(/\r\nConnection: keep-alive\r\n/);
  client.write(get);
  expect((await client.until(/fine[^]*fine$/)).match(/200 OK/g)).toHaveLength(2);
});

test('does not reuse a connection whose response has close after an empty element', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nConnection: , close\r\nContent-Length: 2\r\n\r\nok');
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  for (let i = 0; i < 3; i += 1) expect((await send(gate.url, '/')).body.toString()).toBe('ok');
  expect(upstream.connections).toHaveLength(3);
});

test('upgrades to websocket despite empty elements of Upgrade and Connection', async () => {
  const upstream = await startRawUpstream((socket, head) => {
    const key = /^sec-websocket-key: (.*)$/im.exec(head)?.[1] ?? '';
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: , Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const client = await openRaw(gate.url);
  client.write(
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: , Upgrade,\r\nUpgrade: , websocket\r\nExpect: ,\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  expect(await client.until('HTTP/1.1 101 ')).toMatch(/^HTTP\/1\.1 101 /);
});

test('detects a loop despite empty elements of Via and any space after its version', async () => {
  const { gate, seen } = await start();
  const own = (await send(gate.url, '/')).header('via')?.split(' ')[1] ?? '';
  for (const via of [`, 1.1 ${own}`, `1.0 a,,1.1 ${own} , `, `1.1\t${own}`, `1.1  ${own} (a comment)`]) {
    expect((await send(gate.url, '/', { headers: ['Via', via] })).status, via).toBe(508);
  }
  await send(gate.url, '/', { headers: ['Via', ', 1.0 fred, ', 'Via', ''] });
  expect(seen('via')).toBe(`1.0 fred, 1.1 ${own}`);
});

test('trims empty elements of Forwarded at both ends', async () => {
  const { gate, seen } = await start('forwarded: true\nclients: {trustedProxies: [127.0.0.1]}');
  await send(gate.url, '/', { headers: ['Forwarded', ', for="a,,b", ', 'Forwarded', ',', 'Host', 'h'] });
  expect(seen('forwarded')).toBe('for="a,,b", for=127.0.0.1;host="h";proto=http');
});

test('appends to an upstream’s Via with empty elements', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(200, ['Via', '1.1 theirs, , ']).end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  expect((await send(gate.url, '/')).header('via')).toMatch(/^1\.1 theirs, 1\.1 tidegate-[0-9a-f]+$/);
});

test.each(['Connection', 'Via', 'Expect', 'TE', 'Upgrade'])(
  'reads a long run of spaces within %s in linear time',
  async (name) => {
    const { gate } = await start();
    const request = (value: string) =>
      sendRaw(gate.url, `GET / HTTP/1.1\r\nHost: x\r\nConnection: close, upgrade\r\n${name}: ${value}\r\n\r\n`);
    await request('a, b');
    expect(await isRequestFarFromQuadratic(() => request(longText(', a', ' ', 'b,')))).toBe(true);
  },
);
