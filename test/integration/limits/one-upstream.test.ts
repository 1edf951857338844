import { describe, expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { sendRaw } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

/** The configured upstream, another server, and a Tidegate before the former. */
async function start(more = '') {
  const upstream = await startHttpUpstream((_n, response) => response.end('configured'));
  const other = await startHttpUpstream((_n, response) => response.end('WRONG'));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"${more}}}`);
  return { upstream, other, gate, host: new URL(other.url).host };
}

describe('the upstream of a request is chosen by the configuration alone', () => {
  test.each<[string, (host: string) => string[]]>([
    ['an absolute form', (host) => [`GET http://${host}/x HTTP/1.1`, `Host: ${host}`]],
    ['an absolute form beside another Host', (host) => [`GET http://${host}/x HTTP/1.1`, 'Host: mine']],
    ['an absolute form with a user', (host) => [`GET http://mine@${host}/x HTTP/1.1`, 'Host: mine']],
    ['a Host', (host) => ['GET /x HTTP/1.1', `Host: ${host}`]],
    ['two Hosts', (host) => ['GET /x HTTP/1.1', 'Host: mine', `Host: ${host}`]],
    ['a Host with a path', (host) => ['GET /x HTTP/1.1', `Host: mine@${host}/y`]],
    ['a Host with two names', (host) => ['GET /x HTTP/1.1', `Host: mine, ${host}`]],
    ['an authority form', (host) => [`CONNECT ${host} HTTP/1.1`, `Host: ${host}`]],
    ['two slashes', (host) => [`GET //${host}/x HTTP/1.1`, 'Host: mine']],
    ['slashes within', (host) => [`GET /x//${host}/y HTTP/1.1`, 'Host: mine']],
    ['an at sign', (host) => [`GET /@${host}/x HTTP/1.1`, 'Host: mine']],
    ['no slash and an at sign', (host) => [`GET @${host}/x HTTP/1.1`, 'Host: mine']],
    ['a backslash', (host) => [`GET /\\${host}/x HTTP/1.1`, 'Host: mine']],
    ['a URL as a path', (host) => [`GET /http://${host}/x HTTP/1.1`, 'Host: mine']],
    ['X-Forwarded-Host', (host) => ['GET /x HTTP/1.1', 'Host: mine', `X-Forwarded-Host: ${host}`]],
    ['Forwarded', (host) => ['GET /x HTTP/1.1', 'Host: mine', `Forwarded: host="${host}";proto=http`]],
    [
      'headers of other proxies',
      (host) => [
        'GET /x HTTP/1.1',
        'Host: mine',
        `X-Original-URL: http://${host}/`,
        `X-Rewrite-URL: http://${host}/`,
        `X-Host: ${host}`,
        `X-Forwarded-Server: ${host}`,
        `x-envoy-original-dst-host: ${host}`,
      ],
    ],
    [
      'an upgrade to h2c',
      (host) => [
        'GET /x HTTP/1.1',
        'Host: mine',
        'Connection: Upgrade, HTTP2-Settings',
        'Upgrade: h2c',
        'HTTP2-Settings: AAMAAABkAAQAAP__',
        `X-Forwarded-Host: ${host}`,
      ],
    ],
  ])('%s does not choose another', async (_, request) => {
    const { gate, upstream, other, host } = await start();
    const answer = await sendRaw(gate.url, `${[...request(host), 'Connection: close'].join('\r\n')}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 (?:200|4\d\d) /);
    expect(answer.includes('WRONG')).toBe(false);
    expect(other.connections()).toBe(0);
    // A forwarded request names the upstream as its Host.
    for (const { headers } of upstream.hits) {
      expect(headers[headers.findIndex((name) => name.toLowerCase() === 'host') + 1]).toBe(new URL(upstream.url).host);
    }
  });

  test('a preserved Host does not choose another', async () => {
    const { gate, upstream, other, host } = await start(', preserveHost: true');
    expect((await send(gate.url, '/x', { headers: ['Host', host] })).body.toString()).toBe('configured');
    expect(upstream.hits).toHaveLength(1);
    expect(other.connections()).toBe(0);
  });

  test('the rest of a path after a replaced prefix does not choose another', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end('configured'));
    const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}"}}
routes: [{path: /v1, rewritePrefix: /, upstream: api}]
`);
    const answer = await send(gate.url, '/v1//evil.example/x');
    expect(answer.status).toBe(400);
    expect(answer.json()).toMatchObject({ reason: 'bad_request' });
    expect(upstream.hits).toHaveLength(0);
    await send(gate.url, '/v1/a//b');
    expect(upstream.hits.map(({ target }) => target)).toEqual(['/a//b']);
  });
});

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])('with status %s is left to the client', async (status) => {
    const other = await startHttpUpstream((_n, response) => response.end('WRONG'));
    const upstream = await startHttpUpstream((_n, response) =>
      response.writeHead(status, { Location: `${other.url}/elsewhere` }).end(),
    );
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    for (const method of ['GET', 'POST']) {
      const answer = await send(gate.url, '/x', {
        method,
        headers: ['Authorization', 'Bearer t', 'Idempotency-Key', 'k'],
      });
      expect(answer.status).toBe(status);
      expect(answer.header('location')).toBe(`${other.url}/elsewhere`);
    }
    expect(upstream.hits).toHaveLength(2);
    expect(other.connections()).toBe(0);
  });
});
