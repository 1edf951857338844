/** A client never gets the key that was derived for the upstream: neither in interim responses nor in one that changes the protocol. */
import { createServer, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

/** An upstream that shows each request its key, in all that it sends. */
async function setUp() {
  const keys: string[] = [];
  const keyOf = ({ headers }: IncomingMessage): string => {
    const key = String(headers['idempotency-key']);
    keys.push(key);
    return key;
  };
  const server = createServer((request, response) => {
    const key = keyOf(request);
    response.writeEarlyHints({ link: '</style.css>; rel=preload', 'idempotency-key': key }, () =>
      response.setHeader('Idempotency-Key', key).end(),
    );
  });
  server.on('upgrade', (request, socket) => {
    const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
    socket.end([...head, `Idempotency-Key: ${keyOf(request)}`, '', ''].join('\r\n'));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  atEnd(() => server.close());
  const { port } = server.address() as AddressInfo;
  const gate = await startTidegate(`
clients: {key: ["header:X-Client", ip]}
upstreams: {psp: {url: "http://127.0.0.1:${port}", accounts: [{name: main, value: "Bearer of-main"}]}}`);
  return { keys, gate };
}

const HEADERS = { 'X-Client': 'alice', 'Idempotency-Key': 'order-1' };

test('early hints have the key of the client', async () => {
  const { keys, gate } = await setUp();
  const shown: unknown[] = [];
  await new Promise<void>((resolve, reject) => {
    const request = httpRequest(gate.url, { method: 'POST', headers: HEADERS });
    request.on('information', ({ headers }: { readonly headers: IncomingHttpHeaders }) => {
      shown.push(headers['idempotency-key']);
    });
    request.on('response', (response) => {
      shown.push(response.headers['idempotency-key']);
      response.resume().on('end', resolve);
    });
    request.on('error', reject).end();
  });
  expect(shown).toEqual(['order-1', 'order-1']);
  expect(keys).toEqual([expect.stringMatching(/^[\da-f]{8}-/)]);
});

test('the response to an upgrade has the key of the client', async () => {
  const { keys, gate } = await setUp();
  const shown = await new Promise<unknown>((resolve, reject) => {
    const headers = { ...HEADERS, Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' };
    const request = httpRequest(gate.url, { headers: { ...headers, 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' } });
    request.on('upgrade', (response, socket) => {
      socket.destroy();
      resolve(response.headers['idempotency-key']);
    });
    request.on('error', reject).end();
  });
  expect(shown).toBe('order-1');
  expect(keys).toEqual([expect.stringMatching(/^[\da-f]{8}-/)]);
});
