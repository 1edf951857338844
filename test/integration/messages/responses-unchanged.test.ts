import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { openRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

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

test('forwards every status from 200 to 999 with its reason', async () => {
  const upstream = await startRawUpstream((socket, head) => {
    const status = Number(/\d+/.exec(head)?.[0]);
    const hasBody = status !== 204 && status !== 304;
    socket.write(`HTTP/1.1 ${status} Thus & ${status}!\r\n${hasBody ? 'Content-Length: 4\r\n\r\nbody' : '\r\n'}`);
  });
  // Observe mode, because most of these statuses would otherwise cause retries or holds.
  const gate = await startTidegate(`mode: observe\nupstreams: {api: {url: "${upstream.url}"}}`);
  const agent = keepAlive();
  for (let status = 200; status <= 999; status += 1) {
    const answer = await send(gate.url, `/${status}`, { agent });
    expect(answer.status).toBe(status);
    expect(answer.reason).toBe(`Thus & ${status}!`);
    expect(answer.body.toString()).toBe(status === 204 || status === 304 ? '' : 'body');
  }
});

test.each([
  ['none', 'HTTP/1.1 200 ', 'HTTP/1.1 200 '],
  ['without a space before it', 'HTTP/1.1 200', 'HTTP/1.1 200 '],
  ['one in latin1', 'HTTP/1.1 200 Tr\xe8s bien', 'HTTP/1.1 200 Tr\xe8s bien'],
  ['one in UTF-8', 'HTTP/1.1 200 Tr\xc3\xa8s bien \xe2\x82\xac', 'HTTP/1.1 200 Tr\xc3\xa8s bien \xe2\x82\xac'],
  ['a tab in it', 'HTTP/1.1 404 not\there', 'HTTP/1.1 404 not\there'],
])('forwards a reason byte for byte: %s', async (_, statusLine, passed) => {
  const { gate } = await startSaying(`${statusLine}\r\nContent-Length: 2\r\n\r\nok`);
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  expect((await client.until(/ok$/)).split('\r\n')[0]).toBe(passed);
});

test('sends no body where none is allowed, and keeps its length header', async () => {
  const { gate, upstream } = await startSaying(
    'HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nETag: "a"\r\n\r\n', // to HEAD
    'HTTP/1.1 204 No Content\r\n\r\n',
    'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n',
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
  for (let i = 1; i <= 2; i += 1) {
    const none = await ask('GET');
    expect(none).toMatch(/^HTTP\/1\.1 204 /);
    expect(none).not.toMatch(/transfer-encoding|content-length/i); // RFC 9110 §8.6: no length in a 204 either
  }
  const unmodified = await ask('GET');
  expect(unmodified).toMatch(/^HTTP\/1\.1 304 /);
  expect(unmodified).toMatch(/\r\nContent-Length: 99\r\n/);
  expect(unmodified).not.toMatch(/transfer-encoding/i);
  expect(unmodified.split('\r\n\r\n')[1]).toBe('');
  expect(await ask('GET')).toMatch(/^HTTP\/1\.1 205 [^]*Content-Length: 0/);
  expect(client.socket.readableEnded).toBe(false);
  expect(upstream.connections.length).toBeGreaterThan(0);
});

test('drops a body where none is allowed, and does not mix it into the next response', async () => {
  const stray = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray';
  const { gate } = await startSaying(
    stray, // to HEAD
    `HTTP/1.1 204 No Content\r\nContent-Length: ${stray.length}\r\n\r\n${stray}`,
    `HTTP/1.1 304 Not Modified\r\nContent-Length: ${stray.length}\r\n\r\n${stray}`,
    'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown',
  );
  const agent = keepAlive();
  for (const [method, status, body] of [
    ['HEAD', 200, ''],
    ['GET', 204, ''],
    ['GET', 304, ''],
    ['GET', 200, 'own'],
  ] as const) {
    const answer = await send(gate.url, '/', { method, agent });
    expect([answer.status, answer.body.toString()]).toEqual([status, body]);
  }
});

test('forwards unannounced trailers, except framing fields', async () => {
  const { gate } = await startSaying(
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: caf\xe9\r\nConnection: X-Hop\r\nTrailer: x\r\nX-Hop: 1\r\nx-sum: 2\r\n\r\n',
  );
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(await client.until('x-sum: 2\r\n\r\n')).toMatch(/\r\n3\r\nabc\r\n0\r\nX-Sum: caf\xe9\r\nx-sum: 2\r\n\r\n$/);
});

test.each(['2', '  2', '\t2', '2 ', '\t 2   '])('ignores whitespace around a length: %j', async (length) => {
  const { gate } = await startSaying(`HTTP/1.1 200 OK\r\nContent-Length:${length}\r\n\r\nok`);
  const agent = keepAlive();
  for (let i = 0; i < 2; i += 1) {
    expect((await send(gate.url, '/', { agent })).body.toString()).toBe('ok');
  }
  expect(gate.requests().map(({ cut }) => cut)).toEqual([undefined, undefined]);
});

test('forwards latin1 headers before the body has arrived', async () => {
  const { gate, upstream } = await startSaying('HTTP/1.1 200 OK\r\nX-Name: caf\xe9\r\nContent-Length: 3\r\n\r\n');
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(await client.until('\r\n\r\n')).toContain('\r\nX-Name: caf\xe9\r\n');
  upstream.connections[0]?.socket.write('abc');
  await client.until(/abc$/);
});

test.each(['HEAD', 'GET'])('forwards a response to %s that announces trailers', async (method) => {
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

test('drops trailers where the client cannot read them', async () => {
  const { gate } = await startSaying(
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 42\r\n\r\n',
  );
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.0\r\nHost: x\r\n\r\n');
  const answer = await client.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(answer).toMatch(/\r\n\r\nabc$/);
});

test('tolerates a Trailer header beside a length', async () => {
  const { gate } = await startSaying('HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTrailer: X-Sum\r\n\r\nabc');
  const answer = await send(gate.url, '/');
  expect(answer.status).toBe(200);
  expect(answer.body.toString()).toBe('abc');
});

test('forwards a response that ends with its connection', async () => {
  const { gate } = await startSaying('close:HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\nuntil the end');
  const answer = await send(gate.url, '/');
  expect(answer.body.toString()).toBe('until the end');
});

const FLAWED = [
  ['nonsense', 'close:nonsense\r\n\r\n', 'http_protocol_error', 'malformed_answer'],
  ['no status', 'close:HTTP/1.1 abc\r\n\r\n', 'http_protocol_error', 'malformed_answer'],
  ['nothing', 'close:', 'connection_terminated', 'reset'],
  ['half a head', 'close:HTTP/1.1 200 OK\r\nContent-Le', 'connection_terminated', 'reset'],
  [
    'two lengths',
    'close:HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    'http_protocol_error',
    'malformed_answer',
  ],
  [
    'a length and chunks',
    'close:HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'http_protocol_error',
    'malformed_answer',
  ],
  [
    'chunks wrapped in gzip',
    'close:HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    'http_response_transfer_coding',
    'answer_transfer_coding',
  ],
  [
    'gzip as a transfer coding',
    'close:HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nzip',
    'http_response_transfer_coding',
    'answer_transfer_coding',
  ],
  [
    'larger headers than 64 KiB',
    `HTTP/1.1 200 OK\r\nX-Flood: ${'x'.repeat(64 * 1024)}\r\nContent-Length: 0\r\n\r\n`,
    'http_response_header_section_size',
    'answer_headers_too_large',
  ],
] as const;

test.each(FLAWED)('answers 502 for an upstream that responds with %s', async (_, bytes, error, reason) => {
  const { gate } = await startSaying(bytes);
  const answer = await send(gate.url, '/');
  expect(answer.status).toBe(502);
  expect(answer.json()).toMatchObject({ status: 502, reason });
  expect(answer.header('proxy-status')).toBe(`tidegate; error=${error}; details="${reason}"`);
  const [line] = await eventually(gate.requests, ({ length }) => length === 1);
  expect(line).toMatchObject({ status: 502, outcome: 'upstream_error', reason });
});

test.each(FLAWED)(
  'reports an unknown outcome for a write that is answered with %s',
  async (_, bytes, _error, reason) => {
    const { gate } = await startSaying(bytes);
    const answer = await send(gate.url, '/', { method: 'POST', body: 'pay' });
    expect(answer.status).toBe(504);
    expect(answer.json()).toMatchObject({ status: 504, reason, outcome: 'unknown' });
    expect(answer.header('tidegate-outcome')).toBe('unknown');
  },
);

test('forwards headers of up to 64 KiB', async () => {
  const large = 'x'.repeat(32_000);
  const { gate } = await startSaying(
    `HTTP/1.1 200 OK\r\nX-A: ${large}\r\nX-B: ${large}\r\nContent-Length: 2\r\n\r\nok`,
  );
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(await client.until(/ok$/)).toContain(`\r\nX-A: ${large}\r\nX-B: ${large}\r\n`);
});

test('forwards many and long headers', async () => {
  const cookies = Array.from({ length: 60 }, (_, i) => `Set-Cookie: c${i}=${'x'.repeat(700)}\r\n`).join('');
  const { gate } = await startSaying(`HTTP/1.1 200 OK\r\n${cookies}Content-Length: 2\r\n\r\nok`);
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const answer = await client.until(/ok$/);
  expect(answer).toContain(cookies);
});

test('waits for an upstream that sends its head slowly, byte by byte', async () => {
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

test('adds nothing to a response except its own identification', async () => {
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
