import { describe, expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { openRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

describe('hop-by-hop headers are removed', () => {
  test('from requests', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write(
      [
        'GET / HTTP/1.1',
        'Host: x',
        'Connection: close, X-Private , Idempotency-Hint',
        'connection: x-other',
        'X-Private: 1',
        'x-OTHER: 2',
        'Idempotency-Hint: 3',
        'Keep-Alive: timeout=5',
        'Proxy-Connection: keep-alive',
        'Proxy-Authorization: Basic c2VjcmV0',
        'Proxy-Authenticate: Basic',
        'TE: trailers, gzip;q=0.5',
        'Trailer: X-Sum',
        'Upgrade: websocket, h2c',
        'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
        'X-Public: 4',
        '',
        '',
      ].join('\r\n'),
    );
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 /);
    const { headers } = upstream.hits[0]!;
    for (const name of [
      ...['x-private', 'x-other', 'idempotency-hint', 'keep-alive', 'proxy-connection', 'proxy-authorization'],
      ...['proxy-authenticate', 'te', 'trailer', 'upgrade', 'transfer-encoding'],
    ]) {
      expect(headerOf(headers, name), name).toBeUndefined();
    }
    expect(headerOf(headers, 'connection')).toBe('keep-alive'); // the proxy’s own; no TE (RFC 9110 §10.1.4)
    expect(headerOf(headers, 'x-public')).toBe('4');
  });

  test('from responses', async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.write(
        [
          'HTTP/1.1 407 Who Is There',
          'Connection: keep-alive, X-Private',
          'X-Private: 1',
          'Keep-Alive: timeout=99',
          'Proxy-Authenticate: Basic',
          'Proxy-Connection: close',
          'Upgrade: h2c',
          'X-Public: 2',
          'Content-Length: 2',
          '',
          'ok',
        ].join('\r\n'),
      );
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(407);
    expect(answer.body.toString()).toBe('ok');
    for (const name of ['x-private', 'proxy-authenticate', 'proxy-connection', 'upgrade']) {
      expect(answer.header(name), name).toBeUndefined();
    }
    expect(answer.header('keep-alive')).not.toBe('timeout=99');
    expect(answer.header('x-public')).toBe('2');
  });

  test('but Connection cannot remove headers that frame a message', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    for (const chunked of [false, true]) {
      await send(gate.url, '/', {
        method: 'POST',
        headers: ['Connection', 'Content-Length, Host, Transfer-Encoding, close'],
        body: Buffer.alloc(70_000, 'x'),
        chunked,
      });
      expect(upstream.hits.at(-1)?.body).toHaveLength(70_000);
    }
  });
});

describe('other headers are forwarded unchanged', () => {
  test('keeping case, duplicates, order and every byte', async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.write(
        Buffer.from(
          'HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX-MiXeD: 1\r\nSet-Cookie: b=2\r\nX-Latin: caf\xe9 \x80\r\nX-Empty:\r\nx-mixed: 2\r\nContent-Length: 0\r\n\r\n',
          'latin1',
        ),
      );
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write(
      'GET / HTTP/1.1\r\nHost: x\r\nX-MiXeD: 1\r\naCCept: a\r\nX-Latin: caf\xe9 \x80\r\nX-Empty:\r\nAccept: b\r\nx-mixed: 2\r\nCookie: a=1; b="2"\r\n\r\n',
    );
    const answer = await client.until('\r\n\r\n');
    expect(answer).toContain(
      '\r\nSet-Cookie: a=1\r\nX-MiXeD: 1\r\nSet-Cookie: b=2\r\nX-Latin: caf\xe9 \x80\r\nX-Empty: \r\nx-mixed: 2\r\n',
    );
    expect(upstream.connections[0]?.received()).toContain(
      '\r\nX-MiXeD: 1\r\naCCept: a\r\nX-Latin: caf\xe9 \x80\r\nX-Empty: \r\nAccept: b\r\nx-mixed: 2\r\nCookie: a=1; b="2"\r\n',
    );
  });

  test('with interim responses before the final one', async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.write(
        'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
      );
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(200);
    expect(answer.body.toString()).toBe('ok');
  });
});
