/** Responses whose body has to be inspected to classify them. */
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { MAX_PREVIEW_BYTES } from '../../../src/http/upstream/error-codes.ts';
import { listen, sha256, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { openRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import { keepAlive, send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const RULES = '{codeField: "errors.*.code", answers: [{status: [200, 400], path: /g, code: SLOW, is: throttled}]}';
const JSON_TYPE = { 'Content-Type': 'application/json' };
const SLOW = '{"errors":[{"code":"SLOW"}]}';

function startGate(url: string, settings = '') {
  return startTidegate(`
upstreams:
  api:
    url: ${url}
    throttle: ${RULES}
    retry: {backOff: {strategy: fixed, baseInterval: 5ms}}
    ${settings}
`);
}

const THROTTLED = 'tidegate_upstream_throttled_total{upstream="api",reason="SLOW"}';

test('treats a 200 with a rejection code as a 429: retries it, and never shows it to the client', async () => {
  const upstream = await startHttpUpstream((n, response) => {
    response.writeHead(200, JSON_TYPE).end(n <= 2 ? SLOW : '{"data":1}');
  });
  const gate = await startGate(upstream.url);
  const answer = await send(gate.url, '/g');
  expect([answer.status, answer.body.toString(), upstream.hits.length]).toEqual([200, '{"data":1}', 3]);
  expect(await gate.metric('tidegate_retries_total{upstream="api",reason="status_429"}')).toBe(2);
  expect(await gate.metric(THROTTLED)).toBe(2);
  expect(upstream.connections()).toBe(1);
});

test.each(['application/x-amz-json-1.1', 'text/json'])(
  'treats a 400 in %s with a rejection code as a rejection, and waits',
  async (type) => {
    const upstream = await startHttpUpstream((n, response) => {
      const headers = ['Content-Type', type, 'X-Amz-Retry-After', '40'];
      if (n === 1) response.writeHead(400, headers).end(SLOW);
      else response.end('served');
    });
    const gate = await startGate(upstream.url);
    const answer = await send(gate.url, '/g');
    expect([answer.status, upstream.hits.length]).toEqual([200, 2]);
    expect(answer.took).toBeGreaterThanOrEqual(40);
    expect(await gate.metric(THROTTLED)).toBe(1);
  },
);

test('can treat a 999 as a rejection, and forwards it unchanged when retries are exhausted', async () => {
  const upstream = await startHttpUpstream((n, response) => {
    if (n === 2) response.end('served');
    else response.writeHead(999, 'Request denied', ['X-Theirs', 'yes']).end('no');
  });
  const gate = await startTidegate(`
upstreams:
  api:
    url: ${upstream.url}
    throttle: {answers: [{status: 999, is: throttled}]}
    retry: {backOff: {strategy: fixed, baseInterval: 5ms}}
`);
  expect((await send(gate.url, '/')).status).toBe(200);
  const write = await send(gate.url, '/', { method: 'POST', body: '{}' });
  expect([write.status, write.reason, write.header('x-theirs'), write.body.toString()]).toEqual([
    999,
    'Request denied',
    'yes',
    'no',
  ]);
  expect(write.header('tidegate-outcome')).toBeUndefined(); // it had no effect
  expect(await gate.metric('tidegate_upstream_throttled_total{upstream="api",reason="unspecified"}')).toBe(2);
});

test('forwards a rejection unchanged when retries are exhausted', async () => {
  const upstream = await startHttpUpstream((_, response) => {
    response.writeHead(200, 'Fine', { ...JSON_TYPE, Etag: '"x"' }).end(SLOW);
  });
  const gate = await startGate(upstream.url);
  const answer = await send(gate.url, '/g', { method: 'POST', body: '{}' });
  expect([answer.status, answer.reason, answer.header('etag'), answer.body.toString()]).toEqual([
    200,
    'Fine',
    '"x"',
    SLOW,
  ]);
  expect([upstream.hits.length, answer.header('tidegate-attempts')]).toEqual([1, '1']);
  const [line] = await eventually(
    () => gate.requests(),
    ({ length }) => length > 0,
  );
  expect(line).toMatchObject({ status: 200, attempts: 1 });
  expect(await gate.metric(THROTTLED)).toBe(1);
});

describe('an inspected response is forwarded byte for byte', () => {
  const bodies: Readonly<Record<string, Buffer>> = {
    short: Buffer.from('{"data":"ok"}'),
    'invalid JSON': Buffer.from('{"errors":[{"code":"SLOW"}'),
    'no JSON at all': Buffer.from([0, 255, 254, 10, 13]),
    'as long as is looked into': Buffer.alloc(MAX_PREVIEW_BYTES, ' '),
    'a byte longer': Buffer.alloc(MAX_PREVIEW_BYTES + 1, ' '),
    huge: Buffer.alloc(3_000_000, '{"a":1}'),
    'SLOW, behind too much': Buffer.from(`{"x":"${'x'.repeat(MAX_PREVIEW_BYTES)}","errors":[{"code":"SLOW"}]}`),
  };

  test.each(Object.keys(bodies))('%s, with a length and in chunks', async (name) => {
    const body = bodies[name] ?? Buffer.alloc(0);
    const upstream = await startHttpUpstream((n, response) => {
      response.writeHead(200, n === 1 ? { ...JSON_TYPE, 'Content-Length': body.length } : JSON_TYPE);
      for (let at = 0; at < body.length; at += 5000) response.write(body.subarray(at, at + 5000));
      response.end();
    });
    const gate = await startGate(upstream.url);
    const agent = keepAlive();
    for (const header of ['content-length', 'transfer-encoding']) {
      const answer = await send(gate.url, '/g', { agent });
      expect(answer.header(header)).toBeDefined();
      expect(sha256(answer.body)).toBe(sha256(body));
    }
    expect(await gate.metric(THROTTLED)).toBe(0);
  });

  test('followed by its trailers', async () => {
    const upstream = await startHttpUpstream((_, response) => {
      response.writeHead(200, { ...JSON_TYPE, Trailer: 'X-Sum' });
      response.addTrailers({ 'X-Sum': '7' });
      response.end('{"data":1}');
    });
    const gate = await startGate(upstream.url);
    const answer = await send(gate.url, '/g');
    expect([answer.body.toString(), answer.trailers]).toEqual(['{"data":1}', ['X-Sum', '7']]);
  });

  test('still compressed, though its code was read', async () => {
    const packed = gzipSync(SLOW);
    const upstream = await startHttpUpstream((_, response) => {
      response.writeHead(200, { ...JSON_TYPE, 'Content-Encoding': 'gzip' }).end(packed);
    });
    const gate = await startGate(upstream.url, '');
    const answer = await send(gate.url, '/g', { method: 'POST', body: '' });
    expect([answer.body.equals(packed), answer.header('content-encoding')]).toEqual([true, 'gzip']);
    expect(await gate.metric(THROTTLED)).toBe(1);
  });

  test.each(['HEAD', 'GET'])('at once for a %s without a body', async (method) => {
    const upstream = await startRawUpstream((socket) => {
      const head = method === 'HEAD' ? '200 OK\r\nContent-Length: 40' : '204 No Content';
      socket.write(`HTTP/1.1 ${head}\r\nContent-Type: application/json\r\n\r\n`);
    });
    const gate = await startGate(upstream.url);
    const { status, body } = await send(gate.url, '/g', { method });
    expect([status, body.length]).toEqual([method === 'HEAD' ? 200 : 204, 0]);
  });
});

test('with a character split between two chunks', async () => {
  const body = Buffer.from('{"é":"日本","errors":[{"code":"SLOW"}]}');
  const { url } = await listen(async (_, response) => {
    response.writeHead(200, JSON_TYPE);
    for (const byte of body) {
      response.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    response.end();
  });
  const gate = await startGate(url);
  const answer = await send(gate.url, '/g', { method: 'POST', body: '' });
  expect(answer.body.equals(body)).toBe(true);
  expect(await gate.metric(THROTTLED)).toBe(1);
});

test('delays only the status and path of a rule, and streams all others from the first byte', async () => {
  let asking = 0;
  const { url } = await listen((_, response) => {
    asking += 1;
    response.writeHead(200, JSON_TYPE).write('{');
  });
  const gate = await startGate(url);
  const other = await openRaw(gate.url);
  other.write('GET /other HTTP/1.1\r\nHost: x\r\n\r\n');
  await other.until('\r\n\r\n1\r\n{');
  const asked = await openRaw(gate.url);
  asked.write('GET /g HTTP/1.1\r\nHost: x\r\n\r\n');
  await eventually(
    () => asking,
    (n) => n === 2,
  );
  await pause(300);
  expect(asked.received()).toBe('');
});

test('inspects a slow body until the attempt times out, then forwards it from the first byte', async () => {
  let ended = false;
  const { url } = await listen((request, response) => {
    response.writeHead(200, JSON_TYPE).write('{"first":');
    const timer = setInterval(() => response.write(' '), 20);
    request.socket.once('close', () => {
      clearInterval(timer);
      ended = true;
    });
  });
  const gate = await startGate(url, 'perTryTimeout: 300ms');
  const client = await openRaw(gate.url);
  client.write('GET /g HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(await client.until('"first":')).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  const before = client.received().length;
  await eventually(
    () => client.received().length,
    (length) => length > before + 20,
  );
  expect(ended).toBe(false);
  expect(await gate.metric('tidegate_retries_total{upstream="api",reason="timeout"}')).toBe(0);
});

test.each(['with a length', 'in chunks'])(
  'forwards a body truncated during inspection, %s, as truncated',
  async (how) => {
    const framing = how === 'in chunks' ? 'Transfer-Encoding: chunked' : 'Content-Length: 100';
    const piece = how === 'in chunks' ? '5\r\n{"a":\r\n' : '{"a":';
    const upstream = await startRawUpstream((socket) => {
      socket.end(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${framing}\r\n\r\n${piece}`);
    });
    const gate = await startGate(upstream.url);
    const client = await openRaw(gate.url);
    client.write('POST /g HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
    const all = await client.ended();
    expect(all).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(all).toContain('{"a":');
    expect(all).not.toMatch(/0\r\n\r\n$/);
  },
);

test('ends the request of a client that disconnects during inspection, and no other', async () => {
  let come = 0;
  let closed = 0;
  const { url } = await listen((request, response) => {
    come += 1;
    request.socket.once('close', () => {
      closed += 1;
    });
    response.writeHead(200, JSON_TYPE);
    if (request.url === '/g?hang') response.write('{');
    else response.end('{"data":1}');
  });
  const gate = await startGate(url);
  await sendAndLeave(gate.url, '/g?hang', {}, () => come === 1);
  await eventually(
    () => closed,
    (n) => n === 1,
  );
  expect((await send(gate.url, '/g')).json()).toEqual({ data: 1 });
  const lines = await eventually(
    () => gate.requests(),
    ({ length }) => length === 2,
  );
  expect(lines.map(({ outcome }) => outcome)).toEqual(['client_gone', 'forwarded']);
  const exposed = await (await fetch(`${gate.adminUrl}/metrics`)).text();
  expect(exposed).toMatch(/^tidegate_requests_in_flight\{.*\} 0$/m);
});

test('reads a long response no faster than its client, inspected or not', async () => {
  const size = 64 * 1024 * 1024;
  let written = 0;
  const { url } = await listen(async (_, response) => {
    response.writeHead(200, { ...JSON_TYPE, 'Content-Length': size });
    const piece = Buffer.alloc(64 * 1024, ' ');
    while (written < size && !response.destroyed) {
      written += piece.length;
      if (!response.write(piece)) {
        await new Promise((resolve) => {
          response.once('drain', resolve);
        });
      }
    }
  });
  const gate = await startGate(url);
  const client = await openRaw(gate.url);
  client.socket.pause();
  client.write('GET /g HTTP/1.1\r\nHost: x\r\n\r\n');
  let before = -1;
  await eventually(
    async () => {
      before = written;
      await new Promise((resolve) => {
        setTimeout(resolve, 200);
      });
      return written;
    },
    (now) => now > 0 && now === before,
  );
  expect(written).toBeLessThan(size);
});

test('inspects over HTTP/1.1 in observe mode too: learns from it, and forwards it unchanged', async () => {
  const upstream = await startHttpUpstream((_, response) => {
    response.writeHead(200, JSON_TYPE).end(SLOW);
  });
  const gate = await startTidegate(`mode: observe\nupstreams: {api: {url: "${upstream.url}", throttle: ${RULES}}}`);
  const answer = await send(gate.url, '/g');
  expect([answer.status, answer.body.toString(), upstream.hits.length]).toEqual([200, SLOW, 1]);
  expect(await gate.metric(THROTTLED)).toBe(1);
});

test('starts and stops inspecting after a reload, on existing connections', async () => {
  const upstream = await startHttpUpstream((_, response) => {
    response.writeHead(200, JSON_TYPE).end(SLOW);
  });
  const config = (throttle: string) => `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}${throttle}}}`;
  const gate = await startTidegate(config(''));
  await send(gate.url, '/g');
  expect(await gate.metric(THROTTLED)).toBe(0);
  expect(await gate.rewrite(config(`, throttle: ${RULES}`))).toMatchObject({ kind: 'applied' });
  await send(gate.url, '/g');
  expect(await gate.metric(THROTTLED)).toBe(1);
  expect(await gate.rewrite(config(''))).toMatchObject({ kind: 'applied' });
  await send(gate.url, '/g');
  expect([await gate.metric(THROTTLED), upstream.connections()]).toEqual([1, 1]);
});
