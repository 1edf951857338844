/** Max-Forwards (RFC 9110 §7.6.2), and the server that a request is about (RFC 9112 §3.2). */
import { describe, expect, test } from 'vitest';
import { startApplication } from '../../support/proxy/fastify-application.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { sendRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

async function start(more = '', upstreamMore = '') {
  const upstream = await startRawUpstream((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine'));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"${upstreamMore}}}\n${more}`);
  /** The heads that the upstream received. */
  const heads = () => upstream.connections.flatMap(({ received }) => received().split('\r\n\r\n').slice(0, -1));
  const lastHead = () => heads().at(-1) ?? '';
  const ask = (requestLine: string, ...headers: string[]) =>
    sendRaw(gate.url, [requestLine, ...headers, 'Connection: close', '', ''].join('\r\n'));
  return { upstream, gate, heads, lastHead, ask };
}

describe('Max-Forwards', () => {
  test.each(['OPTIONS', 'TRACE'])('of %s is decremented', async (method) => {
    const { ask, lastHead } = await start();
    for (const [came, goes] of [
      ['1', '0'],
      ['2', '1'],
      ['010', '9'],
      ['10000000000000000000000', String(Number.MAX_SAFE_INTEGER - 1)],
    ] as const) {
      expect(await ask(`${method} /x HTTP/1.1`, 'Host: x', `Max-FORWARDS: ${came}`)).toMatch(/^HTTP\/1\.1 200 OK/);
      expect(lastHead()).toMatch(
        new RegExp(`^${method} /x HTTP/1\\.1\\r\\n[^]*\\r\\nMax-FORWARDS: ${goes}(?:\\r\\n|$)`),
      );
    }
  });

  test.each(['-1', '1.0', 'many', '', '+1', '1, 2', '0x0'])('of %j is invalid, and unchanged', async (value) => {
    const { ask, lastHead } = await start();
    expect(await ask('OPTIONS /x HTTP/1.1', 'Host: x', `Max-Forwards: ${value}`)).toMatch(/fine$/);
    expect(lastHead()).toContain(`\r\nMax-Forwards: ${value}`);
  });

  test('on two lines becomes the smaller one, on one line', async () => {
    const { ask, lastHead, heads } = await start();
    expect(await ask('TRACE /x HTTP/1.1', 'Host: x', 'Max-Forwards: 0', 'max-forwards: 3')).toMatch(/message\/http/);
    expect(heads()).toEqual([]);
    await ask('OPTIONS /x HTTP/1.1', 'Host: x', 'Max-Forwards: 7', 'max-forwards: 3');
    expect(lastHead().match(/max-forwards: \d/gi)).toEqual(['Max-Forwards: 2']);
    await ask('OPTIONS /x HTTP/1.1', 'Host: x', 'Max-Forwards: 7', 'max-forwards: many');
    expect(lastHead().match(/max-forwards: \w+/gi)).toEqual(['Max-Forwards: 7', 'max-forwards: many']);
  });

  test('of other methods is unchanged', async () => {
    const { ask, lastHead } = await start();
    for (const method of ['GET', 'DELETE', 'PURGE']) {
      expect(await ask(`${method} / HTTP/1.1`, 'Host: x', 'Max-Forwards: 0')).toMatch(/fine$/);
      expect(lastHead()).toMatch(/\r\nMax-Forwards: 0/);
    }
  });

  test('of 0 answers OPTIONS itself, without a body', async () => {
    const { ask, heads, gate } = await start();
    for (const target of ['/x', '*', `http://x/y`]) {
      const answer = await ask(`OPTIONS ${target} HTTP/1.1`, 'Host: x', 'Max-Forwards: 00');
      expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Length: 0\r\n[^]*\r\n\r\n$/);
    }
    expect(heads()).toEqual([]);
    const [line] = await eventually(gate.requests, (lines) => lines.length === 3);
    expect(line).toMatchObject({
      method: 'OPTIONS',
      status: 200,
      outcome: 'refused',
      reason: 'max_forwards',
      path: '/x',
    });
  });

  test('of 0 keeps the connection, with what follows the body', async () => {
    const { gate, heads } = await start();
    const answers = await sendRaw(
      gate.url,
      'OPTIONS /x HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\nContent-Length: 4\r\n\r\nbodyGET /y HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    expect(answers.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(heads()).toHaveLength(1);
  });

  test('of 0 answers TRACE with the request itself, without secrets', async () => {
    const { ask, heads } = await start('clients: {key: [header:x-merchant, ip]}');
    const answer = await ask(
      'TRACE /a%2Fb?q HTTP/1.1',
      ...[
        'Host: x',
        'Max-Forwards: 0',
        'X-Latin: caf\xe9',
        'Authorization: Bearer s3',
        'Cookie: sid=s3',
        'Via: 1.0 fred',
      ],
      ...['X-Api-Key: s3', 'X-Merchant: s3', 'Idempotency-Key: s3', 'Proxy-Authorization: s3', 'X-Csrf-Token: s3'],
    );
    const body =
      'TRACE /a%2Fb?q HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\nX-Latin: caf\xe9\r\nVia: 1.0 fred\r\nConnection: close\r\n\r\n';
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\nContent-Type: message\/http\r\n/);
    expect(answer).toContain(`Content-Length: ${body.length}\r\n`);
    expect(answer.slice(answer.indexOf('\r\n\r\n') + 4)).toBe(body);
    expect(heads()).toEqual([]);
  });

  test('is decremented by each of two in a chain: the second answers', async () => {
    const { gate, heads } = await start();
    const front = await startTidegate(`upstreams: {api: {url: "${gate.url}"}}`);
    const answer = await send(front.url, '/x', { method: 'TRACE', headers: ['Max-Forwards', '1'] });
    expect(answer.body.toString()).toMatch(/^TRACE \/x HTTP\/1\.1\r\n[^]*\r\nMax-Forwards: 0\r\nVia: 1\.1 tidegate-/);
    expect(heads()).toEqual([]);
    await send(front.url, '/x', { method: 'OPTIONS', headers: ['Max-Forwards', '2'] });
    expect(heads()).toHaveLength(1);
  });
});

describe('OPTIONS for a whole server', () => {
  test('is forwarded as OPTIONS *, from both of its forms', async () => {
    const { ask, lastHead } = await start('', ', preserveHost: true');
    for (const [target, host] of [
      ['*', 'x'],
      ['http://h.test', 'h.test'],
      ['HTTP://H.test:80', 'h.test'],
      ['http://h.test:8001', 'h.test:8001'],
      ['https://h.test:443', 'h.test'],
    ] as const) {
      expect(await ask(`OPTIONS ${target} HTTP/1.1`, `Host: ${host}`), target).toMatch(/^HTTP\/1\.1 200 OK[^]*fine$/);
      expect(lastHead(), target).toMatch(/^OPTIONS \* HTTP\/1\.1\r\n/);
      expect(lastHead().toLowerCase(), target).toContain(`\r\nhost: ${host}`);
    }
  });

  test('differs from OPTIONS for its root, with or without a query', async () => {
    const { ask, lastHead } = await start();
    for (const [target, goes] of [
      ['http://h.test/', '/'],
      ['http://h.test?', '/?'],
      ['http://h.test?q', '/?q'],
      ['http://h.test/*', '/*'],
      ['/*', '/*'],
    ] as const) {
      expect(await ask(`OPTIONS ${target} HTTP/1.1`, 'Host: h.test'), target).toMatch(/fine$/);
      expect(lastHead(), target).toMatch(
        new RegExp(`^OPTIONS ${goes.replaceAll(/[*?]/g, String.raw`\$&`)} HTTP/1\\.1`),
      );
    }
    expect(await ask('GET http://h.test HTTP/1.1', 'Host: h.test')).toMatch(/fine$/);
    expect(lastHead()).toMatch(/^GET \/ HTTP/);
  });

  test('takes the route of /, without its rewritePrefix', async () => {
    const { upstream, gate, lastHead } = await start();
    await gate.rewrite(`
upstreams: {api: {url: "${upstream.url}"}, other: {url: "http://127.0.0.1:1"}}
routes: [{path: /, host: b.test, upstream: api, rewritePrefix: /v1}, {path: /v1, upstream: other}]
`);
    const ask = (host: string) => sendRaw(gate.url, `OPTIONS * HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(await ask('b.test')).toMatch(/fine$/);
    expect(lastHead()).toMatch(/^OPTIONS \* HTTP/);
    expect(await ask('c.test')).toMatch(/^HTTP\/1\.1 404 /);
  });

  test('is retried, and counts as the root under path limits', async () => {
    let n = 0;
    const upstream = await startRawUpstream((socket) => {
      n += 1;
      socket.write(`HTTP/1.1 ${n === 1 ? '503 No' : '200 OK'}\r\nContent-Length: 0\r\n\r\n`);
    });
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", retry: {backOff: {strategy: fixed, baseInterval: 1ms}}, limits: [{name: items, match: {path: "/items/{id}"}, each: [path]}]}}`,
    );
    const answer = await send(gate.url, '*', { method: 'OPTIONS' });
    expect(answer.status).toBe(200);
    expect(answer.header('tidegate-attempts')).toBe('2');
    expect(upstream.connections.map(({ received }) => received()).join('')).not.toMatch(/OPTIONS \/ /);
  });

  test('answers 400 to any other method', async () => {
    const { ask, heads } = await start();
    for (const method of ['GET', 'TRACE', 'POST']) {
      expect(await ask(`${method} * HTTP/1.1`, 'Host: x')).toMatch(/^HTTP\/1\.1 400 [^]*only OPTIONS may have/);
    }
    expect(heads()).toEqual([]);
  });

  test('is forwarded by a proxy mounted at the root of an application', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
    const { url } = await startApplication({ config: { upstreams: { api: { url: upstream.url } } } }, { prefix: '' });
    for (const [line, target] of [
      ['GET http://h.test', '/'],
      ['OPTIONS http://h.test', '*'],
      ['OPTIONS *', '*'],
    ]) {
      const answer = await sendRaw(url, `${line} HTTP/1.1\r\nHost: h.test\r\nConnection: close\r\n\r\n`);
      expect(answer, line).toMatch(/fine$/);
      expect(upstream.hits.at(-1)?.target, line).toBe(target);
    }
  });
});

describe('an absolute target', () => {
  test.each([
    ['http://h.test:80/x', 'h.test'],
    ['http://h.test/x', 'h.test:80'],
    ['http://H.TEST/x', 'h.test'],
    ['HTTP://h.test:/x', 'h.test'],
    ['http://h.test:080/x', 'h.test'],
    ['https://h.test:443/x', 'h.test'],
    ['https://h.test/x', 'H.test:443'],
    ['http://h.test:8080/x', 'h.test:8080'],
    ['http://[::1]:80/x', '[::1]'],
    ['http://[2001:DB8::1]/x', '[2001:db8::1]:80'],
  ])('%s matches the Host %s', async (target, host) => {
    const { ask, lastHead } = await start();
    expect(await ask(`GET ${target} HTTP/1.1`, `Host: ${host}`)).toMatch(/fine$/);
    expect(lastHead()).toMatch(/^GET \/x HTTP/);
    expect(lastHead()).toContain(`\r\nX-Forwarded-Host: ${host}`);
  });

  test.each([
    ['http://h.test:8080/x', 'h.test'],
    ['http://h.test:443/x', 'h.test'],
    ['https://h.test:80/x', 'h.test'],
    ['https://h.test/x', 'h.test:80'],
    ['http://h.test.evil/x', 'h.test'],
    ['http://u@h.test/x', 'h.test'],
    ['http://h.test:80@evil/x', 'h.test'],
    ['http://:80/x', ''],
    ['ftp://h.test/x', 'h.test'],
  ])('%s does not match the Host %s', async (target, host) => {
    const { ask, heads } = await start();
    expect(await ask(`GET ${target} HTTP/1.1`, `Host: ${host}`)).toMatch(/^HTTP\/1\.1 400 /);
    expect(heads()).toEqual([]);
  });

  test('names the host of an HTTP/1.0 request without a Host', async () => {
    const { ask, lastHead } = await start('', ', preserveHost: true');
    expect(await ask('GET http://h.test/x HTTP/1.0')).toMatch(/fine$/);
    expect(lastHead()).toMatch(/^GET \/x HTTP\/1\.1\r\nhost: h\.test\r\n[^]*\r\nX-Forwarded-Host: h\.test/i);
  });
});

describe('Via', () => {
  test('has the version of the client’s request', async () => {
    const { ask, lastHead } = await start();
    await ask('GET / HTTP/1.0', 'Host: x', 'Via: 1.1 a');
    expect(lastHead()).toMatch(/\r\nVia: 1\.1 a, 1\.0 tidegate-[0-9a-f]+\r\n/);
    await ask('GET / HTTP/1.1', 'Host: x');
    expect(lastHead()).toMatch(/\r\nVia: 1\.1 tidegate-[0-9a-f]+\r\n/);
  });

  test('has the version of each upstream response on a connection', async () => {
    let n = 0;
    const upstream = await startRawUpstream((socket) => {
      n += 1;
      socket.write(
        `HTTP/1.${n === 2 ? '1' : '0'} 200 OK\r\nConnection: keep-alive\r\nVia: 1.1 b\r\nContent-Length: 2\r\n\r\nok`,
      );
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const vias: (string | undefined)[] = [];
    for (let i = 0; i < 3; i += 1) vias.push((await send(gate.url, '/')).header('via')?.replace(/-[0-9a-f]+/g, ''));
    expect(vias).toEqual(['1.1 b, 1.0 tidegate', '1.1 b, 1.1 tidegate', '1.1 b, 1.0 tidegate']);
    expect(upstream.connections).toHaveLength(1);
    expect(headerOf((await send(gate.url, '/')).headers, 'via')).toContain('1.0 tidegate');
  });
});
