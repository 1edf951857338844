import { expect, test } from 'vitest';
import { startHttpUpstream } from '../support/http-upstream.ts';
import { openRaw, startRawUpstream } from '../support/raw.ts';
import { send } from '../support/send.ts';
import { eventually, startTidegate } from '../support/tidegate.ts';

async function startSaying(...answers: string[]) {
  let n = 0;
  const upstream = await startRawUpstream((socket) => {
    const answer = answers[Math.min(n, answers.length - 1)] ?? '';
    n += 1;
    if (answer.startsWith('close:')) socket.end(Buffer.from(answer.slice(6), 'latin1'));
    else socket.write(Buffer.from(answer, 'latin1'));
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`);
  return { upstream, gate };
}

test.each([200, 203, 226, 299, 300, 399, 418, 451, 499, 501, 511, 599])(
  'status %i passes with its reason',
  async (status) => {
    const { gate } = await startSaying(`HTTP/1.1 ${status} Thus & So!\r\nContent-Length: 4\r\n\r\nbody`);
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(status);
    expect(answer.reason).toBe('Thus & So!');
    expect(answer.body.toString()).toBe('body');
  },
);

test.each([
  ['an empty reason', 'HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n', ''],
  ['a reason in another alphabet', 'HTTP/1.1 200 Tr\xe8s bien\r\nContent-Length: 0\r\n\r\n', 'Tr\xe8s bien'],
])('%s', async (_, bytes, reason) => {
  const { gate } = await startSaying(bytes);
  const answer = await send(gate.url, '/');
  expect(answer.status).toBe(200);
  expect([reason, 'OK']).toContain(answer.reason);
});

test('statuses beyond those there are do no harm', async () => {
  const { gate } = await startSaying('HTTP/1.1 999 Strange\r\nContent-Length: 2\r\n\r\nok');
  expect((await send(gate.url, '/')).status).toBe(999);
});

test('answers without a body have none, and say how long it would be', async () => {
  const { gate, upstream } = await startSaying(
    'HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nETag: "a"\r\n\r\n', // to HEAD
    'HTTP/1.1 204 No Content\r\n\r\n',
    'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 99\r\n\r\n',
    'HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n',
  );
  const client = await openRaw(gate.url);
  const ask = async (method: string) => {
    const before = client.received().length;
    client.write(`${method} / HTTP/1.1\r\nHost: x\r\n\r\n`);
    await eventually(
      () => client.received().slice(before),
      (text) => text.includes('\r\n\r\n'),
    );
    return client.received().slice(before);
  };
  const head = await ask('HEAD');
  expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Length: 1234\r\nETag: "a"\r\n/);
  expect(head.split('\r\n\r\n')[1]).toBe('');
  const none = await ask('GET');
  expect(none).toMatch(/^HTTP\/1\.1 204 /);
  expect(none).not.toMatch(/transfer-encoding|content-length/i);
  const unmodified = await ask('GET');
  expect(unmodified).toMatch(/^HTTP\/1\.1 304 /);
  expect(unmodified).not.toMatch(/transfer-encoding/i);
  expect(unmodified.split('\r\n\r\n')[1]).toBe('');
  expect(await ask('GET')).toMatch(/^HTTP\/1\.1 205 [^]*Content-Length: 0/);
  expect(client.socket.readableEnded).toBe(false);
  expect(upstream.connections.length).toBeGreaterThan(0);
});

test.each(['HEAD', 'GET'])('an answer to %s that announces trailers passes', async (method) => {
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n';
  const { gate } = await startSaying(
    method === 'HEAD' ? head : `${head}3\r\nabc\r\n0\r\nX-Sum: 42\r\nX-Sum: 43\r\n\r\n`,
  );
  const answer = await send(gate.url, '/', { method });
  expect(answer.status).toBe(200);
  if (method === 'GET') {
    expect(answer.body.toString()).toBe('abc');
    expect(answer.header('trailer')).toBe('X-Sum');
    expect(answer.trailers).toEqual(['X-Sum', '42', 'X-Sum', '43']);
  }
});

test('trailers are left out where the client could not read them', async () => {
  const { gate } = await startSaying(
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 42\r\n\r\n',
  );
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.0\r\nHost: x\r\n\r\n');
  const answer = await client.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(answer).toMatch(/\r\n\r\nabc$/);
});

test('a trailer announced beside a length is a slip of the upstream, not a reason to fail', async () => {
  const { gate } = await startSaying('HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTrailer: X-Sum\r\n\r\nabc');
  const answer = await send(gate.url, '/');
  expect(answer.status).toBe(200);
  expect(answer.body.toString()).toBe('abc');
});

test('an answer that ends with its connection passes', async () => {
  const { gate } = await startSaying('close:HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\nuntil the end');
  const answer = await send(gate.url, '/');
  expect(answer.body.toString()).toBe('until the end');
});

test.each([
  ['nonsense', 'close:nonsense\r\n\r\n'],
  ['no status', 'close:HTTP/1.1 abc\r\n\r\n'],
  ['nothing', 'close:'],
  ['half a head', 'close:HTTP/1.1 200 OK\r\nContent-Le'],
  ['two lengths', 'close:HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['a length and chunks', 'close:HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  [
    'an upgrade nobody asked for',
    'close:HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
  ],
  ['more headers than anybody needs', `close:HTTP/1.1 200 OK\r\nX-Flood: ${'x'.repeat(200_000)}\r\n\r\n`],
])('an upstream that answers with %s is a 502', async (_, bytes) => {
  const { gate } = await startSaying(bytes);
  const answer = await send(gate.url, '/');
  expect(answer.status).toBe(502);
  expect(answer.json()).toMatchObject({ status: 502, reason: 'reset' });
  expect(answer.header('proxy-status')).toMatch(/^tidegate; error=/);
});

test('many and long headers pass', async () => {
  const cookies = Array.from({ length: 60 }, (_, i) => `Set-Cookie: c${i}=${'x'.repeat(700)}\r\n`).join('');
  const { gate } = await startSaying(`HTTP/1.1 200 OK\r\n${cookies}Content-Length: 2\r\n\r\nok`);
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const answer = await client.until(/ok$/);
  expect(answer).toContain(cookies);
});

test('an upstream that is slow to send its head byte by byte is waited for', async () => {
  const upstream = await startRawUpstream((socket) => {
    const text = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    let sent = 0;
    const timer = setInterval(() => {
      socket.write(text.slice(sent, sent + 5));
      sent += 5;
      if (sent >= text.length) clearInterval(timer);
    }, 10);
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  expect((await send(gate.url, '/')).body.toString()).toBe('ok');
});

test('nothing is added to an answer but what says who passed it on', async () => {
  const upstream = await startHttpUpstream((_n, response) => {
    response.sendDate = false;
    response.writeHead(200, ['Date', 'Wed, 21 Oct 2026 07:28:00 GMT', 'Content-Length', '0']).end();
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const { headers } = await send(gate.url, '/');
  const names = headers.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
  expect(names.toSorted((a, b) => a.localeCompare(b))).toEqual([
    ...['connection', 'content-length', 'date', 'keep-alive', 'tidegate-attempts', 'tidegate-request-id', 'via'],
    'x-request-id',
  ]);
  expect(headers).toContain('Wed, 21 Oct 2026 07:28:00 GMT');
});
