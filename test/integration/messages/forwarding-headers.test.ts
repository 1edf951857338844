import { describe, expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

async function start(more = '', upstreamMore = '') {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(200, ['Via', '1.1 theirs']).end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"${upstreamMore}}}\n${more}`);
  const seen = (name: string) => headerOf(upstream.hits.at(-1)!.headers, name);
  return { upstream, gate, seen };
}

const TRUSTED = 'clients: {trustedProxies: [127.0.0.1]}';

describe('the client address', () => {
  test('comes from the socket, not from an untrusted client’s headers', async () => {
    const { gate, seen } = await start('forwarded: true');
    await send(gate.url, '/', {
      headers: [
        ...['X-Forwarded-For', '6.6.6.6', 'X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'evil.example'],
        ...['Forwarded', 'for=6.6.6.6', 'Host', 'shop.example:81'],
      ],
    });
    expect(seen('x-forwarded-for')).toBe('127.0.0.1');
    expect(seen('x-forwarded-proto')).toBe('http');
    expect(seen('x-forwarded-host')).toBe('shop.example:81');
    expect(seen('forwarded')).toBe('for=127.0.0.1;host="shop.example:81";proto=http');
  });

  test('is appended to the header of a trusted proxy', async () => {
    const { gate, seen } = await start(`forwarded: true\n${TRUSTED}`);
    await send(gate.url, '/', {
      headers: [
        ...['X-Forwarded-For', '203.0.113.7', 'X-Forwarded-For', '10.0.0.1', 'X-Forwarded-Proto', 'https'],
        ...['X-Forwarded-Host', 'shop.example', 'Forwarded', 'for=203.0.113.7', 'Host', 'inner'],
      ],
    });
    expect(seen('x-forwarded-for')).toBe('203.0.113.7, 10.0.0.1, 127.0.0.1');
    expect(seen('x-forwarded-proto')).toBe('https');
    expect(seen('x-forwarded-host')).toBe('shop.example');
    expect(seen('forwarded')).toBe('for=203.0.113.7, for=127.0.0.1;host="inner";proto=http');
  });

  test('neither forwards nor writes Forwarded unless configured', async () => {
    const { gate, seen } = await start();
    await send(gate.url, '/', { headers: ['Forwarded', 'for=6.6.6.6'] });
    expect(seen('forwarded')).toBeUndefined();
  });
});

describe('Host', () => {
  test('is the upstream’s own', async () => {
    const { gate, seen, upstream } = await start();
    await send(gate.url, '/', { headers: ['Host', 'shop.example'] });
    expect(seen('host')).toBe(new URL(upstream.url).host);
  });

  test('is the client’s with preserveHost, for signatures that cover it', async () => {
    const { gate, seen } = await start('', ', preserveHost: true');
    await send(gate.url, '/', { headers: ['Host', 'Bucket.s3.example:8443'] });
    expect(seen('host')).toBe('Bucket.s3.example:8443');
  });
});

describe('headers between proxies', () => {
  test('are dropped from an untrusted client', async () => {
    const { gate, upstream } = await start();
    await send(gate.url, '/', {
      headers: [
        ...['Tidegate-Attempts', '9', 'x-envoy-attempt-count', '9', 'X-Envoy-Max-Retries', '9', 'X-Other', '1'],
        // CGI and its descendants read these as the same names.
        ...['X_Forwarded_For', '6.6.6.6', 'X-Forwarded_Proto', 'https', 'Tidegate_Outcome', 'unknown'],
        ...['x_envoy_attempt_count', '9', 'X_Other', '2'],
      ],
    });
    const names = upstream.hits[0]!.headers.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
    expect(names.filter((name) => /^(?:tidegate|x[-_]envoy)/.test(name))).toEqual([]);
    expect(names.filter((name) => name.startsWith('x'))).toEqual([
      ...['x-other', 'x_other', 'x-request-id', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'],
    ]);
  });

  test('are forwarded from a trusted proxy, except Tidegate’s own', async () => {
    const { gate, seen } = await start(TRUSTED);
    await send(gate.url, '/', { headers: ['Tidegate-Attempts', '9', 'x-envoy-attempt-count', '1'] });
    expect(seen('x-envoy-attempt-count')).toBe('1');
    expect(seen('tidegate-attempts')).toBeUndefined();
  });
});

describe('a Tidegate header in an upstream response', () => {
  const start = async (...headers: string[]) => {
    const upstream = await startHttpUpstream((_n, response) => response.writeHead(200, headers).end());
    return startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  };

  test('does not reach the client', async () => {
    const gate = await start(
      'Tidegate-Attempts',
      '7',
      'tidegate-request-id',
      'forged',
      'Tidegate-Other',
      'x',
      'X-Y',
      'z',
    );
    const answer = await send(gate.url, '/');
    expect(answer.header('tidegate-attempts')).toBe('1');
    expect(answer.header('tidegate-request-id')).toMatch(/^[0-9a-f]{8}-[0-9a-z]+$/);
    expect(answer.header('tidegate-other')).toBeUndefined();
    expect(answer.header('x-y')).toBe('z');
  });

  test('is accepted only for an unknown write, as the upstream may be another Tidegate', async () => {
    expect((await send((await start('Tidegate-Outcome', 'unknown')).url, '/')).header('tidegate-outcome')).toBe(
      'unknown',
    );
    const certain = await start('Tidegate-Outcome', 'certain', 'Tidegate-Outcome', 'done');
    expect((await send(certain.url, '/')).header('tidegate-outcome')).toBeUndefined();
  });
});

describe('Via', () => {
  test('is appended in both directions', async () => {
    const { gate, seen } = await start();
    const answer = await send(gate.url, '/', { headers: ['Via', '1.0 fred, 1.1 p.example'] });
    expect(seen('via')).toMatch(/^1\.0 fred, 1\.1 p\.example, 1\.1 tidegate-[0-9a-f]+$/);
    expect(answer.header('via')).toMatch(/^1\.1 theirs, 1\.1 tidegate-[0-9a-f]+$/);
  });

  test('allows a chain of two, but no loop', async () => {
    const { gate, upstream } = await start();
    const front = await startTidegate(`upstreams: {api: {url: "${gate.url}"}}`);
    const through = await send(front.url, '/');
    expect(through.status).toBe(200);
    expect(headerOf(upstream.hits[0]!.headers, 'via')?.split(', ')).toHaveLength(2);

    const own = through.header('via')?.split(', ').at(-1) ?? '';
    const loop = await send(front.url, '/', { headers: ['Via', `1.1 someone, ${own}`] });
    expect(loop.status).toBe(508);
    expect(loop.json()).toMatchObject({ status: 508, reason: 'loop' });
    expect(loop.header('proxy-status')).toContain('proxy_loop_detected');
    expect(upstream.hits).toHaveLength(1);
  });

  test('keeps one set of Tidegate headers in a chain of two', async () => {
    const { gate } = await start();
    const front = await startTidegate(`upstreams: {api: {url: "${gate.url}"}}`);
    const answer = await send(front.url, '/');
    for (const name of ['tidegate-attempts', 'tidegate-request-id', 'x-request-id']) {
      expect(answer.header(name), name).not.toContain(',');
    }
  });
});

describe('X-Request-Id', () => {
  test('is forwarded, and returned', async () => {
    const { gate, seen } = await start();
    const answer = await send(gate.url, '/', { headers: ['X-Request-Id', 'abc-123'] });
    expect(seen('x-request-id')).toBe('abc-123');
    expect(answer.header('x-request-id')).toBe('abc-123');
    expect(answer.header('tidegate-request-id')).not.toBe('abc-123');
  });

  test('is generated where it is absent or cannot be logged', async () => {
    const { gate, seen } = await start();
    const first = await send(gate.url, '/');
    expect(first.header('x-request-id')).toBe(first.header('tidegate-request-id'));
    expect(seen('x-request-id')).toBe(first.header('x-request-id'));
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: a b\xe9\r\n\r\n');
    const second = await client.ended();
    const made = /x-request-id: (.*)\r\n/i.exec(second)?.[1];
    expect(made).toMatch(/^[0-9a-f]{8}-[0-9a-z]+$/);
    expect(made).not.toBe(first.header('x-request-id'));
    expect(seen('x-request-id')).toBe(made);
  });

  test('is the same for each attempt, and in proxy responses', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.destroy());
    const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 1ms}}}}
`);
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(502);
    const ids = upstream.hits.map(({ headers }) => headerOf(headers, 'x-request-id'));
    expect(ids).toEqual([answer.header('x-request-id'), answer.header('x-request-id')]);
    expect(answer.header('via')).toMatch(/^1\.1 tidegate-/);
  });
});
