import { describe, expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { openHalf, openRaw, sendRaw } from '../../support/clients/raw-socket.ts';
import type { AttackTarget } from '../../support/proxy/attack-harness.ts';
import { runAttack } from '../../support/proxy/attack-harness.ts';
import { readResponses } from '../../support/clients/strict-http.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

async function start(more = '') {
  const upstream = await startHttpUpstream((_n, response) => response.end('upstream'));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}\n${more}`);
  return { upstream, gate, host: new URL(gate.url).host };
}

const lines = (...all: string[]) => [...all, '', ''].join('\r\n');
const byte = (code: number) => String.fromCharCode(code);
const name = (bytes: string) => JSON.stringify(bytes.slice(0, 60));

/** Status and reason of the only response, which is a problem and closes the connection. */
async function sendMalformed(
  { gate }: AttackTarget,
  bytes: string,
): Promise<readonly [status: number, reason: unknown]> {
  const [answer, ...more] = readResponses(await sendRaw(gate.url, bytes, 10_000), []);
  if (answer === undefined || more.length > 0) throw new Error(`${more.length} answers more to ${name(bytes)}`);
  const { headers, body } = answer;
  expect(headers).toContain('application/problem+json');
  expect(headers[headers.indexOf('Proxy-Status') + 1]).toMatch(/^tidegate; error=http_request_error; details="\w+"$/);
  expect(headers).toContain('close');
  const problem = JSON.parse(body) as Record<string, unknown>;
  expect(problem).toMatchObject({ status: answer.status });
  expect(problem['detail']).toMatch(/^[A-Z].*\.$/);
  return [answer.status, problem['reason']];
}

/** Expects an error for each, and that none reaches the upstream. */
async function expectRefused(
  all: readonly string[],
  [status, reason]: readonly [status: number, reason: string],
): Promise<void> {
  await runAttack({}, async (attack) => {
    for (let i = 0; i < all.length; i += 16) {
      const some = all.slice(i, i + 16);
      const results = await Promise.all(some.map(async (bytes) => [name(bytes), await sendMalformed(attack, bytes)]));
      expect(results).toEqual(some.map((bytes) => [name(bytes), [status, reason]]));
    }
    expect(attack.reached()).toEqual([]);
    expect(attack.gate.requests().filter((line) => line['reason'] === reason)).toHaveLength(all.length);
  });
}

describe('a malformed request is answered with an error', () => {
  test('for its request line', () =>
    expectRefused(
      [
        ...[' GET / HTTP/1.1', 'GET\t/ HTTP/1.1', 'GET / HTTP/1.1 ', 'GET / HTTP/1.1 x', 'GET /a b HTTP/1.1', 'GET'],
        ...['get / HTTP/1.1', 'POST/ HTTP/1.1', 'BREW / HTTP/1.1', '\0GET / HTTP/1.1', 'G\0ET / HTTP/1.1'],
        ...['GET / http/1.1', 'GET / HTTP', 'GET / HTTP/1', 'GET / HTTP/11.1', 'GET / HTTP/1.10', 'GET / HTTP/01.1'],
        ...['GET / HTTP/1.2', 'GET / HTTP/3.0', 'GET / ICE/1.0', 'GET / HTTP/1.1\r', 'GET / HTTP/1.1\n'],
        ...[
          'GET pay HTTP/1.1',
          'GET ?a HTTP/1.1',
          'GET javascript:x HTTP/1.1',
          'GET http:/x HTTP/1.1',
          'PRI * HTTP/2.0',
        ],
        ...['x'.repeat(100_000), '{"json": true}', '<xml/>', '-', '\xff\xfe\xfd'],
        '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03', // TLS
        '\0\0\0\x12\x04\0\0\0\0', // HTTP/2 without its preface
        '*1\r\n$4\r\nPING', // Redis
        'SSH-2.0-OpenSSH_9.9',
        ...['SOURCE /mount ICE/1.0', 'DESCRIBE / RTSP/1.0', 'SETUP / RTSP/1.0', 'PLAY / RTSP/1.1', 'FLUSH / RTSP/1.0'],
      ].map((line) => lines(line, 'Host: a')),
      [400, 'malformed'],
    ));

  test('for any invalid byte of its target', () => {
    // Printable ASCII is valid; a backslash and a fragment have errors of their own.
    const codes = Array.from({ length: 256 }, (_, code) => code).filter((code) => code <= 0x20 || code >= 0x7f);
    return expectRefused(
      codes.map((code) => lines(`GET /a${byte(code)}b HTTP/1.1`, 'Host: a')),
      [400, 'malformed'],
    );
  });

  test('for any invalid byte of a header', () => {
    const tchar = /[!#$%&'*+.^_`|~0-9A-Za-z:-]/;
    const names = Array.from({ length: 256 }, (_, code) => byte(code)).filter((each) => !tchar.test(each));
    const values = [...Array.from({ length: 32 }, (_, code) => code).filter((code) => code !== 9), 0x7f];
    return expectRefused(
      [
        ...names.map((each) => lines('GET / HTTP/1.1', 'Host: a', `X${each}Y: z`)),
        ...values.map((code) => lines('GET / HTTP/1.1', 'Host: a', `X: y${byte(code)}z`)),
        ...[': no name', 'no colon', ' folded', '\tfolded', ''].map(
          (line) => `GET / HTTP/1.1\r\nHost: a\r\n${line}\n\r\n`,
        ),
      ],
      [400, 'malformed'],
    );
  });

  test('for an unsupported version', () =>
    expectRefused(
      ['GET /', 'GET / HTTP/0.9', 'GET / HTTP/2.0', 'POST / HTTP/2.0'].map((line) => lines(line, 'Host: a')),
      [505, 'http_version'],
    ));

  test('for bare line feeds', () =>
    expectRefused(
      ['GET / HTTP/1.1\nHost: a\n\n', 'GET / HTTP/1.1\r\nHost: a\n\r\n', 'GET / HTTP/1.1\r\nHost: a\r\n\n'],
      [400, 'malformed'],
    ));
});

describe('a flood', () => {
  const header = (value: string) => lines('GET / HTTP/1.1', 'Host: a', `X: ${value}`);

  test('of header bytes is rejected with 431', () =>
    expectRefused(
      [
        header('x'.repeat(33_000)),
        header('x'.repeat(1_000_000)),
        lines(`GET /${'x'.repeat(40_000)} HTTP/1.1`, 'Host: a'),
        lines('GET / HTTP/1.1', 'Host: a', `${'x'.repeat(40_000)}: y`),
        lines('GET / HTTP/1.1', `Host: ${'a'.repeat(40_000)}`),
        lines('GET / HTTP/1.1', 'Host: a', ...Array.from({ length: 100 }, (_, i) => `X-${i}: ${'x'.repeat(400)}`)),
      ],
      [431, 'headers_too_large'],
    ));

  test('of header fields is rejected with 431, and realistic numbers of them are forwarded', async () => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => `X-${i}: y`);
    await runAttack({}, async (attack) => {
      for (const count of [256, 600, 1100, 3000]) {
        const rest = ['Connection: close', 'Content-Length: 2'];
        const bytes = `${lines('POST / HTTP/1.1', 'Host: a', ...many(count), ...rest)}ok`;
        expect([count, await sendMalformed(attack, bytes)]).toEqual([count, [431, 'headers_too_large']]);
      }
      expect(attack.reached()).toEqual([]);
      const bytes = `${lines('POST / HTTP/1.1', 'Host: a', ...many(252), 'Connection: close', 'Content-Length: 2')}ok`;
      expect(await sendRaw(attack.gate.url, bytes)).toMatch(/^HTTP\/1\.1 200 /);
      expect(attack.reached()).toMatchObject([{ body: 'ok', headers: expect.arrayContaining(['X-251']) as unknown }]);
    });
  });

  test('gets its error even if the client reads only after sending everything', async () => {
    await runAttack({}, async ({ gate }) => {
      const client = await openRaw(gate.url);
      client.socket.pause();
      const sent = new Promise<Error | null | undefined>((resolve) => {
        client.socket.write(header('x'.repeat(8_000_000)), resolve);
      });
      expect(await sent).toBeFalsy();
      client.socket.resume();
      expect(readResponses(await client.ended(10_000), [])).toMatchObject([{ status: 431, isWhole: true }]);
    });
  });

  test('of trailers or chunk extensions is bounded alike', async () => {
    const chunked = lines('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked');
    await runAttack({}, async (attack) => {
      expect(await sendMalformed(attack, `${chunked}1\r\nx\r\n0\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`)).toEqual([
        431,
        'headers_too_large',
      ]);
      for (const extensions of [';x'.repeat(20_000), `;a="${'x'.repeat(20_000)}"`, `;${'x'.repeat(200_000)}`]) {
        expect(await sendMalformed(attack, `${chunked}1${extensions}\r\nx\r\n0\r\n\r\n`)).toEqual([
          413,
          'extensions_too_large',
        ]);
      }
      expect(attack.reached()).toEqual([]);
    });
  });

  test('of an oversized body is rejected with 413', () =>
    expectRefusedBodies(['9007199254740992', '18446744073709551615'], [413, 'body_too_large']));

  async function expectRefusedBodies(lengths: readonly string[], expected: readonly [number, string]): Promise<void> {
    await runAttack({}, async (attack) => {
      for (const length of lengths) {
        const bytes = `${lines('POST / HTTP/1.1', 'Host: a', `Content-Length: ${length}`)}ok`;
        expect([length, await sendMalformed(attack, bytes)]).toEqual([length, expected]);
      }
      expect(attack.reached()).toEqual([]);
    });
  }

  test('of unfinished bodies uses bounded memory', async () => {
    const yaml = 'limits: {replayMemory: 200KiB}\nupstreams: {api: {url: "{upstream}", retry: {attempts: 1}}}';
    await runAttack({ yaml }, async ({ gate }) => {
      const clients = await Promise.all(Array.from({ length: 40 }, () => openRaw(gate.url)));
      for (const client of clients) {
        client.write(`${lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 60001')}${'x'.repeat(60_000)}`);
      }
      const inFlight = 'tidegate_requests_in_flight{route="/"}';
      await eventually(
        () => gate.metric(inFlight),
        (count) => count >= 40,
      );
      const kept = await eventually(
        () => gate.metric('tidegate_replay_buffer_bytes'),
        (bytes) => bytes > 100 * 1024,
      );
      expect(kept).toBeLessThanOrEqual(200 * 1024);
      for (const client of clients) client.write('.');
      const answers = await Promise.all(clients.map((client) => client.until(/x\.$/)));
      for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 200 /);
      for (const client of clients) client.socket.destroy();
    });
  });
});

test('rejects a target that is ambiguous or leads elsewhere', () =>
  expectRefused(
    [
      'http://elsewhere.example/',
      'ftp://a/',
      'http://user@a/',
      'http://a@elsewhere.example/',
      'http:///x',
      '*',
      '//evil.example/x',
      '///x',
      '/a\\b',
      '/a%5Cb',
      '/a%00b',
      '/public/../admin',
      '/a/./b',
      '/public/..',
      '/..',
      '/public/%2e%2E/admin',
      '/public/.%2e/admin',
      '/public/%2e./admin',
      '/public%2f..%2Fadmin',
      '/public%2F%2E%2E%2Fadmin',
      '/public/..;x=1/admin',
      '/public/..?x',
      '/public/..%5cadmin',
      'http://a/public/../admin',
      'http://a/%2e%2e/admin',
      '/a#b',
    ].map((target) => lines(`GET ${target} HTTP/1.1`, 'Host: a', 'Connection: close')),
    [400, 'bad_request'],
  ));

test('counts malformed requests', async () => {
  await runAttack({}, async (attack) => {
    await sendMalformed(attack, 'NONSENSE\r\n\r\n');
    const counted = 'tidegate_requests_total{route="(none)",method="other",code="400",outcome="refused"}';
    expect(await attack.gate.metric(counted)).toBe(1);
  });
});

describe('an unusual but valid request is forwarded', () => {
  test.each([
    '/...',
    '/.well-known/x',
    '/a.b/..c',
    '/a//b',
    '/%2e%2e%2e',
    '/%252e%252e/x',
    '/x?next=/../y\\z',
    '/x?z=%00',
    '/x?u=http://a/#'.slice(0, -1),
  ])('%s', async (target) => {
    const { upstream, gate } = await start();
    const answer = await sendRaw(gate.url, lines(`GET ${target} HTTP/1.1`, 'Host: a', 'Connection: close'));
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(upstream.hits[0]?.target).toBe(target);
  });

  test.each(['a', 'A.Example:80', 'a-b_c.~d', '[::1]', '[FE80::1]:8080', '[::ffff:127.0.0.1]', '127.0.0.1:', ''])(
    'Host: %s',
    async (host) => {
      const { gate } = await start();
      const answer = await sendRaw(gate.url, lines('GET / HTTP/1.1', `Host: ${host}`, 'Connection: close'));
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  test('an absolute target for its own host', async () => {
    const { upstream, gate, host } = await start();
    for (const [target, seen] of [
      [`http://${host}/a?b`, '/a?b'],
      [`http://${host}`, '/'],
      [`HTTP://${host}?q`, '/?q'],
    ]) {
      await sendRaw(gate.url, lines(`GET ${target} HTTP/1.1`, `Host: ${host}`, 'Connection: close'));
      expect(upstream.hits.at(-1)?.target).toBe(seen);
    }
  });

  test('non-UTF-8 bytes in headers and bodies', async () => {
    await runAttack({}, async ({ gate, reached }) => {
      const odd = '\xc3\x28\xa0\xa1\xff\xfe\xed\xa0\x80\xf4\x90\x80\x80';
      const head = lines('POST / HTTP/1.1', 'Host: a', `X-Odd: ${odd}`, 'Connection: close', 'Content-Length: 13');
      expect(await sendRaw(gate.url, head + odd)).toMatch(/^HTTP\/1\.1 200 /);
      expect(reached()[0]).toMatchObject({ body: odd, headers: expect.arrayContaining([odd]) as unknown });
    });
  });

  test('empty lines before a request, as old clients send them', async () => {
    const { upstream, gate } = await start();
    const answer = await sendRaw(gate.url, `\r\n\r\n${lines('GET /late HTTP/1.1', 'Host: a', 'Connection: close')}`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(upstream.hits[0]?.target).toBe('/late');
  });

  test('HTTP/1.0 without a Host', async () => {
    const { upstream, gate } = await start();
    const answer = await sendRaw(gate.url, lines('GET /old HTTP/1.0'));
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toMatch(/upstream$/);
    expect(upstream.hits[0]?.target).toBe('/old');
  });
});

describe('CONNECT', () => {
  const connect = lines('CONNECT pay.example:443 HTTP/1.1', 'Host: pay.example:443');

  test('is rejected: this is no forward proxy', async () => {
    await runAttack({}, async (attack) => {
      expect(await sendMalformed(attack, connect)).toEqual([405, 'connect']);
      expect(await sendMalformed(attack, connect + connect)).toEqual([405, 'connect']);
    });
  });

  test('disturbs no others when its client resets the connection', async () => {
    await runAttack({}, async ({ gate }) => {
      for (let i = 0; i < 5; i += 1) {
        const { socket, received } = await openHalf(gate.url);
        socket.write(connect);
        await eventually(received, (text) => text.includes('"connect"'));
        socket.resetAndDestroy();
      }
      await eventually(
        () => gate.requests().filter(({ reason }) => reason === 'connect'),
        ({ length }) => length === 5,
      );
      expect(gate.view().limits[0]?.state).toBe('open');
    });
  });
});
