/** Every 429 and 503 has a Retry-After, from the upstream or from the proxy. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { fetchExplanation } from '../../support/admin/explanations.ts';
import type { Answerer } from '../../support/upstreams/http-upstream.ts';
import { listen, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startApplication } from '../../support/proxy/fastify-application.ts';
import { pause } from '../../support/pause.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import type { Received } from '../../support/clients/send.ts';
import { begin, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

/** Retry-After is rounded up or down at random: with this, down. */
function withFixedRandom(value = 0): void {
  const spy = vi.spyOn(Math, 'random').mockReturnValue(value);
  onTestFinished(() => spy.mockRestore());
}

/** Answers each request with this status; `send` sends one. */
async function startRefusing(status: number, headers: readonly string[], more = '') {
  return start((_n, response) => response.writeHead(status, [...headers]).end('the upstream’s own'), more);
}

async function start(answer: Answerer, more = '', upstreamMore = 'retry: {attempts: 1}') {
  const upstream = await startHttpUpstream(answer);
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${upstreamMore}}}\n${more}`);
  return { upstream, gate };
}

function all(answer: Received, name: string): string[] {
  return answer.headers.filter((_, i, raw) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === name);
}

describe('an upstream rejection without a Retry-After', () => {
  test.each([429, 503])('gets one from the proxy: %i', async (status) => {
    const { gate } = await startRefusing(status, ['Content-Type', 'text/plain']);
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(status);
    expect(answer.body.toString()).toBe('the upstream’s own');
    expect(all(answer, 'retry-after')).toEqual(['1']);
    expect(all(answer, 'ratelimit')).toEqual(status === 429 ? ['"tidegate";r=0;t=1'] : []);
    const series = `tidegate_retry_after_total{route="/",code="${status}",from="tidegate"}`;
    expect(await gate.metric(series)).toBe(1);
    const [line] = await eventually(gate.requests, ({ length }) => length === 1);
    expect(line).toMatchObject({ status, outcome: 'forwarded', retryAfter: 1, retryAfterFrom: 'tidegate' });
    const explanation = await fetchExplanation(gate, answer.header('tidegate-request-id'));
    expect(explanation.verdict).toContain('Retry-After of Tidegate: 1 s');
    expect(explanation.steps.at(-1)).toMatchObject({ retryAfterSeconds: 1, retryAfterFrom: 'tidegate' });
  });

  test.each<[string, string[], string]>([
    ['retry-after-ms', ['Retry-After-Ms', '1001'], '2'],
    ['x-amz-retry-after', ['X-Amz-Retry-After', '2500'], '3'],
    // A quota window that all clients share: a proxy request goes first when it begins, at the rest of the rate.
    ['RateLimit', ['RateLimit', '"default";r=0;t=7'], '8'],
    ['X-RateLimit-Reset', ['X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '4'], '5'],
    ['a wait longer than hints are believed for', ['Retry-After-Ms', '600000'], '600'],
    ['a quota window longer than that', ['RateLimit', '"hour";r=0;t=3600'], '3600'],
  ])('gets one that is not earlier than %s', async (_, headers, seconds) => {
    withFixedRandom();
    const { gate } = await startRefusing(429, headers);
    const answer = await send(gate.url, '/');
    expect(all(answer, 'retry-after')).toEqual([seconds]);
    for (let i = 0; i < headers.length; i += 2) {
      expect(all(answer, headers[i]!.toLowerCase())).toEqual([headers[i + 1]!]);
    }
  });

  test('gets one that is not earlier where each client has its own limit', async () => {
    withFixedRandom();
    const headers = ['Retry-After-Ms', '2900'];
    const upstream = await startHttpUpstream((_n, response) => response.writeHead(429, headers).end());
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, rateLimit: {scope: client}}}`,
    );
    expect(Number((await send(gate.url, '/')).header('retry-after'))).toBeGreaterThanOrEqual(3);
  });

  test('gets one, no earlier, where the upstream lists its Retry-After as hop-by-hop', async () => {
    const { gate } = await startRefusing(503, ['Retry-After', '9', 'Connection', 'retry-after']);
    expect(all(await send(gate.url, '/'), 'retry-after')).toEqual(['9']);
    expect(await gate.metric('tidegate_retry_after_total{route="/",code="503",from="tidegate"}')).toBe(1);
  });

  test('gets one for HEAD too, and over HTTP/1.0', async () => {
    const { gate } = await startRefusing(429, []);
    const head = await send(gate.url, '/', { method: 'HEAD' });
    expect(head.header('retry-after')).toMatch(/^\d+$/);
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.0\r\nHost: x\r\n\r\n');
    expect(await client.until('\r\n\r\n')).toMatch(/^retry-after: \d+\r$/im);
  });

  test('gets one for a WebSocket request', async () => {
    const server = await listen((_request, response) => void response.end());
    server.server.on('upgrade', (_request, socket) => {
      socket.end('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${server.url}", retry: {attempts: 1}}}`);
    const client = await openRaw(gate.url);
    client.write(
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
    const head = await client.until('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1.1 503 /);
    expect(head).toMatch(/^retry-after: \d+\r$/im);
  });

  test('gets one where the proxy is mounted in an application', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.writeHead(429).end());
    const { url } = await startApplication({
      config: { upstreams: { api: { url: upstream.url, retry: { attempts: 1 } } } },
    });
    expect((await send(url, '/pay/x')).header('retry-after')).toMatch(/^\d+$/);
  });

  test('gets one from each of several workers', async () => {
    const upstream = await startHttpUpstream((_n, response) =>
      response.writeHead(429, ['Retry-After-Ms', '2500']).end(),
    );
    const gate = await startWorkers(`
workers: 2
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}
clients: {key: ["header:x-api-key"]}
`);
    const keys = Array.from({ length: 12 }, (_, i) => `client-${i}`);
    const answers = await Promise.all(keys.map((key) => send(gate.url, '/', { headers: ['X-Api-Key', key] })));
    for (const answer of answers) {
      expect([429, 503]).toContain(answer.status);
      // A request that arrives later is refused by a worker, for what is left of that time.
      const isForwarded = answer.status === 429 && answer.body.length === 0;
      expect(Number(answer.header('retry-after'))).toBeGreaterThanOrEqual(isForwarded ? 3 : 1);
    }
    const counter = 'tidegate_retry_after_total{';
    expect(
      await eventually(
        () => gate.sum(counter),
        (sum) => sum === keys.length,
      ),
    ).toBe(keys.length);
  });

  test('gets the time of the next probe where it blocks the upstream', async () => {
    withFixedRandom(0.5);
    const { gate } = await startRefusing(503, ['Retry-After-Ms', '3000']);
    let last: Received | undefined;
    for (let i = 0; i < 40 && gate.view().limits[0]?.state !== 'blocked'; i += 1) {
      last = await send(gate.url, '/', { headers: ['X-Api-Key', String(i)] });
    }
    expect(last?.header('proxy-status')).toBeUndefined(); // the response that caused the block is the upstream’s
    expect(Number(last?.header('retry-after'))).toBeGreaterThanOrEqual(3);
    const refused = await send(gate.url, '/');
    expect(refused.json()).toMatchObject({ reason: 'blocked' });
    expect(Number(refused.header('retry-after'))).toBeGreaterThanOrEqual(3);
  });

  test('gives a time at which the client is queued instead of rejected', async () => {
    const { gate, upstream } = await start(
      (n, response) => (n % 2 === 1 ? response.writeHead(429).end() : response.end('served')),
      'clients: {key: ["header:x-api-key"]}',
      'retry: {attempts: 1}, queue: {maxWait: 0}',
    );
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
    const answers = await Promise.all(
      keys.map(async (key) => {
        const headers = ['X-Api-Key', key];
        const first = await send(gate.url, '/', { headers });
        if (first.status === 200) return first;
        await pause(1000 * Number(first.header('retry-after')));
        return send(gate.url, '/', { headers });
      }),
    );
    // The upstream may reject again; the proxy does not.
    for (const answer of answers) expect(answer.header('proxy-status')).toBeUndefined();
    expect(upstream.hits.length).toBeGreaterThan(keys.length);
  });
});

describe('a Retry-After of the upstream', () => {
  test.each<[number, string[]]>([
    [429, ['7']],
    [503, ['0']],
    [429, ['Wed, 21 Oct 2026 07:28:00 GMT']],
    [503, ['soon']],
    [503, ['']],
    [429, ['-3']],
    [429, ['1.5']],
    [429, ['3', '9']],
    [503, ['86400']],
  ])('of a %i is forwarded as it is: %j', async (status, values) => {
    const { gate } = await startRefusing(
      status,
      values.flatMap((value) => ['rEtRy-AfTeR', value]),
    );
    const answer = await send(gate.url, '/');
    expect(all(answer, 'retry-after')).toEqual(values);
    expect(answer.headers).toContain('rEtRy-AfTeR');
    expect(all(answer, 'ratelimit')).toEqual([]);
    expect(await gate.metric(`tidegate_retry_after_total{route="/",code="${status}",from="upstream"}`)).toBe(1);
    const [line] = await eventually(gate.requests, ({ length }) => length === 1);
    expect(line).toMatchObject({ retryAfterFrom: 'upstream' });
    if (values[0] === '7') expect(line).toMatchObject({ retryAfter: 7 });
    if (values[0] === 'soon') expect(line).not.toHaveProperty('retryAfter');
  });

  test.each<[string, string[], number]>([
    ['a quota that resets', ['Retry-After', '2', 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '3600'], 3600],
    [
      'a quota beyond a long one',
      ['Retry-After', '400', 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '3600'],
      3600,
    ],
    ['a RateLimit', ['Retry-After', '301', 'RateLimit', '"d";r=0;t=3000'], 3000],
    ['a delay', ['Retry-After', '2', 'Retry-After-Ms', '900000'], 900],
    ['a header that a rule names', ['Retry-After', '2', 'X-Come-Back', '4000'], 4000],
    ['that header alone', ['X-Come-Back', '4000'], 4000],
    ['a quota beyond that header', ['Retry-After', '2', 'X-Come-Back', '30', 'RateLimit', '"d";r=0;t=3000'], 3000],
  ])('gives way to the latest time in the response, however late: %s', async (_, headers, seconds) => {
    const throttle =
      'throttle: {answers: [{status: [429, 503], is: throttled, wait: {header: X-Come-Back, format: seconds}}]}';
    for (const status of [429, 503]) {
      withFixedRandom();
      const upstream = await startHttpUpstream((_n, response) => response.writeHead(status, headers).end());
      const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, ${throttle}}}`);
      const answer = await send(gate.url, '/');
      expect([answer.status, all(answer, 'retry-after')]).toEqual([status, [String(seconds)]]);
      const [line] = await eventually(gate.requests, ({ length }) => length === 1);
      expect(line).toMatchObject({ retryAfter: seconds, retryAfterFrom: 'tidegate' });
    }
  });

  test.each<[string[], string]>([
    [['Retry-After', '7', 'X-RateLimit-Reset', '3600'], '7'], // nothing says that this quota is exhausted
    [['Retry-After', '7', 'X-RateLimit-Remaining', '3', 'X-RateLimit-Reset', '3600'], '7'],
    [['Retry-After', '7200', 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '3600'], '7200'],
  ])('stays beside %j', async (headers, seconds) => {
    const { gate } = await startRefusing(429, headers);
    expect(all(await send(gate.url, '/'), 'retry-after')).toEqual([seconds]);
  });

  test('keeps its RateLimit header', async () => {
    const { gate } = await startRefusing(429, ['RateLimit', 'limit=10, remaining=0, reset=2']);
    const answer = await send(gate.url, '/');
    expect(all(answer, 'ratelimit')).toEqual(['limit=10, remaining=0, reset=2']);
    expect(answer.header('retry-after')).toBe('2');
  });
});

describe('no Retry-After is added', () => {
  test.each([200, 202, 204, 304, 301, 403, 409, 425, 500, 502, 504])('to a %i', async (status) => {
    const { gate } = await startRefusing(status, []);
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(status);
    expect(answer.header('retry-after')).toBeUndefined();
    expect(answer.header('ratelimit')).toBeUndefined();
  });

  test.each([429, 503])('to a %i in observe mode', async (status) => {
    const { gate } = await startRefusing(status, ['Retry-After-Ms', '1500'], 'mode: observe');
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(status);
    expect(answer.header('retry-after')).toBeUndefined();
    expect(answer.header('ratelimit')).toBeUndefined();
  });
});

/** Each place where the proxy itself sends a 429 or a 503; those of the upstream are above. */
describe('a rejection by the proxy has a Retry-After', () => {
  function expectTime(answer: Received, reason: string): void {
    expect([429, 503]).toContain(answer.status);
    expect(answer.json()).toMatchObject({ reason, status: answer.status });
    const seconds = Number(answer.header('retry-after'));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(answer.json()['retryAfter']).toBe(seconds);
  }

  const ONE = 'rateLimit: {initialRate: 0.1/s}, queue: {maxWait: 0}';

  test('over_share', async () => {
    const { gate } = await start((_n, response) => response.end(), '', ONE);
    await send(gate.url, '/');
    expectTime(await send(gate.url, '/'), 'over_share');
  });

  test('held', async () => {
    const { gate } = await startRefusing(429, ['Retry-After', '3']);
    await send(gate.url, '/');
    const answer = await send(gate.url, '/');
    expectTime(answer, 'held');
    expect(answer.header('retry-after')).toBe('3');
  });

  test('queue_timeout', async () => {
    const upstream = await listen(() => undefined);
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", connections: 1, timeout: 60s, queue: {maxWait: 100ms}}}`,
    );
    begin(gate.url, '/', {})
      .on('error', () => undefined)
      .end();
    await eventually(upstream.connections, (count) => count === 1);
    expectTime(await send(gate.url, '/'), 'queue_timeout');
  });

  test('queue_full', async () => {
    const { gate } = await start(
      (_n, response) => response.end(),
      '',
      'rateLimit: {initialRate: 0.5/s}, queue: {maxWait: 1m, maxDepth: 1}',
    );
    await send(gate.url, '/');
    begin(gate.url, '/', {})
      .on('error', () => undefined)
      .end();
    await eventually(
      () => gate.metric('tidegate_queue_depth{upstream="api"}'),
      (depth) => depth === 1,
    );
    expectTime(await send(gate.url, '/'), 'queue_full');
  });

  test('blocked by an operator, until the block ends', async () => {
    withFixedRandom();
    const { gate } = await start(
      (_n, response) => response.end(),
      'admin: {listen: 127.0.0.1:0, token: correct-horse-battery-staple}',
    );
    const block = (time: string) =>
      fetch(`${gate.adminUrl}/api/upstreams/api/block${time}`, {
        method: 'POST',
        headers: { authorization: 'Bearer correct-horse-battery-staple' },
      });
    expect((await block('')).status).toBe(200);
    expectTime(await send(gate.url, '/'), 'blocked');
    expect((await block('?for=20m')).status).toBe(200);
    const answer = await send(gate.url, '/');
    expectTime(answer, 'blocked');
    expect(Number(answer.header('retry-after'))).toBeGreaterThan(1190);
  });

  test('draining', async () => {
    const upstream = await listen(() => undefined);
    const gate = await startTidegate(
      `drain: {delay: 0, timeout: 100ms}\nupstreams: {api: {url: "${upstream.url}", connections: 1, timeout: 60s, queue: {maxWait: 30s}}}`,
    );
    begin(gate.url, '/', {})
      .on('error', () => undefined)
      .end();
    await eventually(upstream.connections, (count) => count === 1);
    const waits = send(gate.url, '/');
    await eventually(
      () => gate.metric('tidegate_queue_depth{upstream="api"}'),
      (depth) => depth === 1,
    );
    void gate.drain();
    expectTime(await waits, 'draining');
  });

  test('too_many_requests', async () => {
    const upstream = await listen(() => undefined);
    const gate = await startTidegate(`limits: {requests: 1}\nupstreams: {api: {url: "${upstream.url}"}}`);
    begin(gate.url, '/', {})
      .on('error', () => undefined)
      .end();
    await eventually(upstream.connections, (count) => count === 1);
    expectTime(await send(gate.url, '/'), 'too_many_requests');
    const from = 'tidegate_retry_after_total{route="(none)",code="503",from="tidegate"}';
    expect(await gate.metric(from)).toBe(1);
  });

  test('a check, in each dialect', async () => {
    const { gate } = await start(
      (_n, response) => response.end(),
      'check: {}\nclients: {trustedProxies: [127.0.0.0/8]}',
      ONE,
    );
    await send(gate.url, '/check?dialect=http');
    for (const dialect of ['http', 'envoy']) {
      expectTime(await send(gate.url, `/check?dialect=${dialect}`), 'over_share');
    }
    const headers = ['X-Original-Method', 'GET', 'X-Original-URI', '/'];
    const nginx = await send(gate.url, '/check?dialect=nginx', { headers });
    expect(nginx.status).toBe(403);
    expect(nginx.header('tidegate-status')).toBe('429');
    expect(Number(nginx.header('tidegate-retry-after'))).toBeGreaterThanOrEqual(1);
    expect(nginx.header('retry-after')).toBe(nginx.header('tidegate-retry-after'));
  });

  test('an admin port that closes', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`drain: {delay: 300ms, timeout: 1s}\nupstreams: {api: {url: "${upstream.url}"}}`);
    const drained = gate.drain();
    const ready = await fetch(`${gate.adminUrl}/readyz`);
    expect(ready.status).toBe(503);
    expect(ready.headers.get('retry-after')).toBe('1');
    await drained;
  });

  test('an admin port with the maximum number of viewers', async () => {
    const { gate } = await start((_n, response) => response.end());
    for (let i = 0; i < 200; i += 1) {
      const answer = await fetch(`${gate.adminUrl}/api/events`);
      if (answer.status === 200) continue;
      expect(answer.status).toBe(503);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      return;
    }
    throw new Error('nobody was turned away');
  });
});
