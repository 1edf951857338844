import { describe, expect, test } from 'vitest';
import { writeInterimResponse } from '../../../src/http/server/write-response.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { openRaw, sendRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const HINTS = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nLink: </b.css>; rel=preload\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const FALSE_WORDS =
  'Tidegate-Outcome: unknown\r\nTIDEGATE-Attempts: 99\r\nVia: 1.1 tidegate-x\r\nProxy-Status: tidegate; error=reset\r\n';
const FRAMING = 'Content-Length: 10\r\nTrailer: X-Sum\r\n';
const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

async function startSaying(answer: string, more = 'retry: {attempts: 1}') {
  const upstream = await startRawUpstream((socket) => {
    socket.write(Buffer.from(answer, 'latin1'));
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${more}}}`);
  return { upstream, gate };
}

describe('an unrequested 100', () => {
  test.each([
    ['once', CONTINUE],
    ['more than once', CONTINUE.repeat(3)],
    ['with headers', 'HTTP/1.1 100 Go On\r\nX-A: 1\r\nContent-Length: 7\r\n\r\n'],
    ['beside others', `${CONTINUE}HTTP/1.1 102 Processing\r\n\r\n${CONTINUE}`],
  ])('%s, is dropped without harm to the exchange', async (_, interim) => {
    const { gate, upstream } = await startSaying(interim + OK);
    const client = await openRaw(gate.url);
    for (let i = 1; i <= 3; i += 1) {
      client.write(GET);
      await client.until(new RegExp(`(?:ok[^]*){${i - 1}}ok$`));
    }
    expect(client.received()).not.toContain('HTTP/1.1 100');
    expect(client.received().match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3);
    expect(upstream.connections).toHaveLength(1);
  });

  test('is dropped when it arrives byte by byte', async () => {
    const upstream = await startRawUpstream((socket) => {
      const text = CONTINUE + OK;
      let at = 0;
      const timer = setInterval(() => {
        socket.write(text.slice(at, at + 1));
        at += 1;
        if (at === text.length) clearInterval(timer);
      }, 1);
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`);
    expect((await send(gate.url, '/')).body.toString()).toBe('ok');
  });

  test('does not disturb an upload', async () => {
    let length = 0;
    const upstream = await listen((request, response) => {
      response.writeContinue();
      request.on('data', (chunk: Buffer) => {
        length += chunk.length;
        response.writeContinue();
      });
      request.on('end', () => response.end('ok'));
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`);
    const body = Buffer.alloc(1_000_000, 'x');
    for (const chunked of [false, true]) {
      expect((await send(gate.url, '/', { method: 'POST', body, chunked })).body.toString()).toBe('ok');
    }
    expect(length).toBe(2 * body.length);
  });
});

describe('other interim responses', () => {
  test('reach the client at once, in order, with their headers', async () => {
    let finish = (): void => undefined;
    const upstream = await startRawUpstream((socket) => {
      socket.write(`HTTP/1.1 102 Processing\r\n\r\n${HINTS}`);
      socket.write(
        'HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /up/1\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n',
      );
      finish = () => socket.write(OK);
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write(GET);
    const interim = await client.until('/up/1\r\n\r\n');
    expect(interim).toBe(`HTTP/1.1 102 Processing\r\n\r\n${HINTS}HTTP/1.1 104 unknown\r\nLocation: /up/1\r\n\r\n`);
    finish();
    expect((await client.until(/ok$/)).slice(interim.length)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  test('are not sent to HTTP/1.0, which does not know them', async () => {
    const { gate } = await startSaying(CONTINUE + HINTS + OK);
    expect(await sendRaw(gate.url, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  test('follow the response to an earlier request of the connection', async () => {
    let finish: (() => void) | undefined;
    const upstream = await startRawUpstream((socket, head) => {
      if (head.startsWith('GET /first ')) finish = () => socket.write(OK);
      else socket.write(HINTS + OK);
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write(`${GET.replace('/ ', '/first ')}${GET}`);
    await eventually(
      () => finish,
      (seen) => seen !== undefined,
    );
    expect(client.received()).toBe('');
    finish?.();
    const answers = await client.until(/ok[^]*ok$/);
    const first = answers.slice(0, answers.indexOf('ok'));
    expect(first.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
    expect(answers.match(/HTTP\/1\.1 \d+/g)?.length).toBeGreaterThan(2);
  });

  test('are not final: what follows them is retried as usual', async () => {
    let asked = 0;
    const upstream = await startRawUpstream((socket) => {
      asked += 1;
      socket.write(`${HINTS}${asked === 1 ? 'HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n' : OK}`);
    });
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", retry: {backOff: {strategy: fixed, baseInterval: 1ms}}}}`,
    );
    const client = await openRaw(gate.url);
    client.write(GET);
    expect((await client.until(/ok$/)).match(/HTTP\/1\.1 \d+/g)).toEqual([
      'HTTP/1.1 103',
      'HTTP/1.1 103',
      'HTTP/1.1 200',
    ]);
  });

  test('are dropped for a client that does not read them', async () => {
    let written = 0;
    const { url } = await listen((_request, response) => {
      while (written < 1000 && writeInterimResponse(response, 103, ['Link', 'x'.repeat(60_000)])) written += 1;
      response.end('ok');
    });
    const client = await openRaw(url);
    client.socket.pause();
    client.write(GET);
    await eventually(
      () => written,
      (hints) => hints > 0,
    );
    expect(written).toBeLessThan(600);
    client.socket.resume();
    await client.until(/ok\r\n0\r\n\r\n$|ok$/);
  });

  test('are bounded to thirty-two, so that an endless sequence does not fill the memory', async () => {
    const { gate } = await startSaying(HINTS.repeat(20) + 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(20) + OK);
    const client = await openRaw(gate.url);
    client.write(GET);
    const answers = (await client.until(/ok$/)).match(/HTTP\/1\.1 \d+/g) ?? [];
    const count = (status: number): number => answers.filter((each) => each === `HTTP/1.1 ${status}`).length;
    expect([103, 102, 200].map(count)).toEqual([20, 12, 1]);
  });

  test('carry no framing fields and no Tidegate headers', async () => {
    const { gate } = await startSaying(
      `HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n${FALSE_WORDS}${FRAMING}\r\n${OK}`,
    );
    const client = await openRaw(gate.url);
    client.write(GET);
    expect(await client.until(/ok$/)).toMatch(/^HTTP\/1\.1 103 Early Hints\r\nLink: <\/a\.css>\r\n\r\nHTTP\/1\.1 200 /);
  });
});

test('drops Tidegate headers from trailers', async () => {
  const { gate } = await startSaying(
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n${FALSE_WORDS}\r\n`,
  );
  const client = await openRaw(gate.url);
  client.write(GET);
  expect(await client.until('X-Sum: 1\r\n\r\n')).toMatch(/\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n$/);
});

test.each([
  ['101 with an upgrade', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ['101 without', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ['099', 'HTTP/1.1 099 Odd\r\n\r\n'],
  ['000', 'HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n'],
])('answers 502 to an unrequested %s, and does not forward it', async (_, interim) => {
  const { gate } = await startSaying(interim + OK);
  const client = await openRaw(gate.url);
  client.write(GET);
  expect(await client.until('"malformed_answer"')).toMatch(
    /^HTTP\/1\.1 502 [^]*\r\nProxy-Status: tidegate; error=http_protocol_error; details="malformed_answer"\r\n/,
  );
});
