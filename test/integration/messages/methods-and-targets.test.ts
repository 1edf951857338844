import { METHODS } from 'node:http';
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { openRaw, sendRaw } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

async function start() {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  return { upstream, gate };
}

test('forwards every HTTP method except CONNECT', async () => {
  const { upstream, gate } = await start();
  for (const method of METHODS.filter((each) => each !== 'CONNECT')) {
    const answer = await sendRaw(gate.url, `${method} /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(answer, method).toMatch(/^HTTP\/1\.1 200 /);
    expect(upstream.hits.at(-1)).toMatchObject({ method, target: '/x' });
    expect(answer.endsWith('fine')).toBe(method !== 'HEAD');
  }
  const unusual = 'tidegate_requests_total{route="/",method="other",code="200",outcome="forwarded"}';
  expect(await gate.metric(unusual)).toBeGreaterThan(20);
});

test.each([
  ['in lower case', 'get / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['that is unknown', 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['without an end', 'X'.repeat(100_000)],
  ['of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
])('cleanly rejects a method %s', async (_, bytes) => {
  const { gate, upstream } = await start();
  expect(await sendRaw(gate.url, bytes)).toMatch(
    /^HTTP\/1\.1 400 [^]*\r\nProxy-Status: tidegate; error=http_request_error; [^]*\{.*\}$/,
  );
  expect(upstream.connections()).toBe(0);
});

test('forwards a target byte for byte: encoding, case, order and empty parts', async () => {
  const { upstream, gate } = await start();
  for (const target of [
    '/',
    '/a%2Fb/%7Euser/%7euser/~user',
    '/CaSe/%e2%82%AC/%E2%82%ac',
    '/a;p=1/b,c/d:e@f/!$&()*+=',
    '/q?',
    '/q?b=2&a=1&b=&=&&c',
    '/q?x=%20+%2B&y=a/b?c&z=%00',
    '/?',
    '/?/../x?//',
    '/a%2fb%2Fc/;/d;;e/%2E%2e%2e/%',
    `/q?brackets[]=1&braces={}&pipe=|&quote='"&caret=^&tick=\``,
    '//'.slice(1) + 'a//b///',
    `/${'long'.repeat(2000)}`,
  ]) {
    const answer = await sendRaw(gate.url, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(answer, target).toMatch(/^HTTP\/1\.1 200 /);
    expect(upstream.hits.at(-1)?.target).toBe(target);
  }
});

test('forwards OPTIONS *, on the connections of other requests', async () => {
  const { upstream, gate } = await start();
  for (const target of ['*', '/x', '*', '*', '/y']) {
    const answer = await sendRaw(gate.url, `OPTIONS ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 [^]*fine$/);
    expect(upstream.hits.at(-1)).toMatchObject({ method: 'OPTIONS', target });
  }
  expect(upstream.connections()).toBe(1);
});

test('answers 400 at once to a request that cannot be sent upstream', async () => {
  const { upstream, gate } = await start();
  // Node's parser accepts such bytes in a target; the result must not count as an upstream failure.
  const answer = await sendRaw(gate.url, 'GET /caf\xe9\x80 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(answer).toMatch(/^HTTP\/1\.1 (?:200|400) /);
  expect(await gate.metric('tidegate_retries_total{upstream="api",reason="connect"}')).toBe(0);
  for (const { target } of upstream.hits) expect(target).toBe('/caf\xe9\x80');
});

test('keeps connections as HTTP/1.0 and HTTP/1.1 clients ask', async () => {
  const { upstream, gate } = await start();
  const ask = (version: string, connection: string) =>
    `GET / HTTP/${version}\r\nHost: x\r\n${connection === '' ? '' : `Connection: ${connection}\r\n`}\r\n`;
  expect(await sendRaw(gate.url, ask('1.0', ''))).toMatch(/fine$/);
  expect(await sendRaw(gate.url, ask('1.1', 'close'))).toMatch(/fine/);
  const kept = await openRaw(gate.url);
  for (let i = 1; i <= 3; i += 1) {
    kept.write(ask('1.1', ''));
    await eventually(
      () => kept.received().split('HTTP/1.1 200 OK').length,
      (parts) => parts === i + 1,
    );
  }
  expect(kept.socket.readableEnded).toBe(false);
  expect(upstream.hits).toHaveLength(5);
  expect(upstream.connections()).toBe(1);
});

test('forwards a request whose upgrade the upstream declines as an ordinary one', async () => {
  const { upstream, gate } = await start();
  const answer = await send(gate.url, '/chat', {
    headers: ['Connection', 'Upgrade', 'Upgrade', 'websocket', 'Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
  });
  expect(answer.status).toBe(200);
  expect(upstream.hits[0]).toMatchObject({ method: 'GET', target: '/chat' });
});
