/** CORS: preflights that no limit delays, and rejections that a page may read. */
import { describe, expect, test } from 'vitest';
import type { Answerer } from '../../support/upstreams/http-upstream.ts';
import { listen, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import type { Received } from '../../support/clients/send.ts';
import { begin, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const APP = 'https://app.example.com';
const PREFLIGHT = [
  'Origin',
  APP,
  'Access-Control-Request-Method',
  'POST',
  'Access-Control-Request-Headers',
  'x-api-key',
];
const RULES = `cors: {origins: ["${APP}", "https://*.example.org:8443"], exposeHeaders: [X-Total]}`;
/** One in ten seconds, and no queue. */
const ONE = 'rateLimit: {initialRate: 0.1/s, maxRate: 0.1/s}, queue: {maxWait: 0}';

async function start(
  route: string,
  answer: Answerer = (_n, response) => response.end('served'),
  upstreamMore = '',
  more = '',
) {
  const upstream = await startHttpUpstream(answer);
  const yaml = (routes: string) =>
    `upstreams: {api: {url: "${upstream.url}"${upstreamMore === '' ? '' : `, ${upstreamMore}`}}}\nroutes: [{upstream: api${routes === '' ? '' : `, ${routes}`}}]\n${more}`;
  const gate = await startTidegate(yaml(route));
  return { upstream, gate, yaml };
}

function preflight(url: string, headers: readonly string[] = PREFLIGHT, target = '/'): Promise<Received> {
  return send(url, target, { method: 'OPTIONS', headers });
}

function all(answer: Received, name: string): string[] {
  return answer.headers.filter((_, i, raw) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === name);
}

test.each<[string, string, readonly string[], number]>([
  ['OPTIONS', '/', ['Max-Forwards', '0'], 200],
  ['POST', '/', [], 404],
])(
  'lets a page read a proxy response to %s that never reached the upstream',
  async (method, target, headers, status) => {
    const { gate } = await start(`path: /, methods: [GET, OPTIONS], ${RULES}`);
    const answer = await send(gate.url, target, { method, headers: ['Origin', APP, ...headers] });
    expect([answer.status, all(answer, 'access-control-allow-origin')]).toEqual([status, [APP]]);
  },
);

const decisions = (decision: string) => `tidegate_ratelimit_decisions_total{upstream="api",decision="${decision}"}`;

describe('a preflight for a route with cors', () => {
  test('is answered by the proxy with the allowed methods and headers', async () => {
    const { gate, upstream } = await start(RULES);
    const answer = await preflight(gate.url);
    expect(answer.status).toBe(204);
    expect(all(answer, 'access-control-allow-origin')).toEqual([APP]);
    expect(all(answer, 'access-control-allow-methods')).toEqual(['POST']);
    expect(all(answer, 'access-control-allow-headers')).toEqual(['x-api-key']);
    expect(all(answer, 'access-control-max-age')).toEqual(['600']);
    expect(answer.header('access-control-allow-credentials')).toBeUndefined();
    expect(answer.header('vary')).toContain('Origin');
    expect(upstream.hits).toHaveLength(0);
    const series = 'tidegate_requests_total{route="/",method="OPTIONS",code="204",outcome="preflight"}';
    await eventually(
      () => gate.metric(series),
      (count) => count === 1,
    );
  });

  test.each([
    ['of another origin', ['Origin', 'https://evil.example.com', ...PREFLIGHT.slice(2)]],
    ['of an origin with the same ending', ['Origin', 'https://evilapp.example.com', ...PREFLIGHT.slice(2)]],
    ['over plain HTTP', ['Origin', 'http://app.example.com', ...PREFLIGHT.slice(2)]],
    ['of a wildcard without a subdomain', ['Origin', 'https://.example.org:8443', ...PREFLIGHT.slice(2)]],
    ['of a wildcard with another port', ['Origin', 'https://a.example.org', ...PREFLIGHT.slice(2)]],
    ['of a wildcard with an invalid host', ['Origin', 'https://evil.com#.example.org:8443', ...PREFLIGHT.slice(2)]],
    ['of null', ['Origin', 'null', ...PREFLIGHT.slice(2)]],
  ])('allows nothing to a page %s', async (_, headers) => {
    const { gate, upstream } = await start(RULES);
    const answer = await preflight(gate.url, headers);
    expect(answer.status).toBe(204);
    expect(answer.headers.filter((name) => /^access-control-/i.test(name))).toEqual([]);
    expect(answer.header('vary')).toContain('Origin');
    expect(upstream.hits).toHaveLength(0);
  });

  test.each(['https://a.example.org:8443', 'https://a.b-c.example.org:8443'])(
    'allows the subdomain %s',
    async (origin) => {
      const { gate } = await start(RULES);
      const answer = await preflight(gate.url, ['Origin', origin, ...PREFLIGHT.slice(2)]);
      expect(answer.header('access-control-allow-origin')).toBe(origin);
    },
  );

  test('returns the configured methods, headers, credentials and max age', async () => {
    const { gate } = await start(
      `cors: {origins: ["${APP}"], methods: [GET, PUT], headers: [X-A, X-B], credentials: true, maxAge: 30s}`,
    );
    const answer = await preflight(gate.url);
    expect(answer.header('access-control-allow-methods')).toBe('GET, PUT');
    expect(answer.header('access-control-allow-headers')).toBe('X-A, X-B');
    expect(answer.header('access-control-allow-credentials')).toBe('true');
    expect(answer.header('access-control-max-age')).toBe('30');
  });

  test('allows every origin with *', async () => {
    const { gate } = await start('cors: {origins: ["*"], methods: ["*"], headers: ["*"], maxAge: 0}');
    const answer = await preflight(gate.url);
    expect(answer.header('access-control-allow-origin')).toBe('*');
    expect(answer.header('access-control-allow-methods')).toBe('*');
    expect(answer.header('access-control-allow-headers')).toBe('*');
    expect(answer.header('access-control-max-age')).toBe('0');
  });

  test('finds its route by the requested method', async () => {
    const { gate } = await start(`methods: [POST], ${RULES}`);
    expect((await preflight(gate.url)).header('access-control-allow-methods')).toBe('POST');
    const other = ['Origin', APP, 'Access-Control-Request-Method', 'DELETE'];
    expect((await preflight(gate.url, other)).status).toBe(404);
  });

  test('is answered while the limit is spent, the upstream is blocked and the process is full', async () => {
    const upstream = await listen(() => undefined);
    const gate = await startTidegate(
      `limits: {requests: 1}\nupstreams: {api: {url: "${upstream.url}"}}\nroutes: [{upstream: api, ${RULES}}]`,
    );
    begin(gate.url, '/', {})
      .on('error', () => undefined)
      .end();
    await eventually(upstream.connections, (count) => count === 1);
    const refused = await send(gate.url, '/', { headers: ['Origin', APP] });
    expect(refused.json()).toMatchObject({ reason: 'too_many_requests' });
    expect(refused.header('access-control-allow-origin')).toBe(APP);
    expect((await preflight(gate.url)).header('access-control-allow-origin')).toBe(APP);
  });
});

describe('a proxy rejection', () => {
  test('can be read by a page of an allowed origin', async () => {
    const { gate } = await start(RULES, undefined, ONE);
    await send(gate.url, '/');
    const refused = await send(gate.url, '/', { headers: ['Origin', APP] });
    expect(refused.status).toBe(429);
    expect(all(refused, 'access-control-allow-origin')).toEqual([APP]);
    expect(refused.header('vary')).toBe('Origin');
    const exposed = refused.header('access-control-expose-headers')?.split(', ');
    expect(exposed).toEqual(expect.arrayContaining(['Retry-After', 'RateLimit', 'Tidegate-Request-Id', 'X-Total']));
    expect(refused.header('access-control-allow-credentials')).toBeUndefined();
  });

  test('can be read with credentials', async () => {
    const { gate } = await start(`cors: {origins: ["${APP}"], credentials: true}`, undefined, ONE);
    await send(gate.url, '/');
    const refused = await send(gate.url, '/', { headers: ['Origin', APP] });
    expect(refused.header('access-control-allow-credentials')).toBe('true');
  });

  test('cannot be read by other origins, and varies by Origin for caches', async () => {
    const { gate } = await start(RULES, undefined, ONE);
    await send(gate.url, '/');
    for (const headers of [['Origin', 'https://evil.example'], []]) {
      const refused = await send(gate.url, '/', { headers });
      expect(refused.status).toBe(429);
      expect(refused.header('access-control-allow-origin')).toBeUndefined();
      expect(refused.header('vary')).toBe('Origin');
    }
  });

  test.each([
    ['502', 502, 'http://127.0.0.1:9', ''],
    ['504', 504, undefined, ', timeout: 200ms, perTryTimeout: 200ms, retry: {attempts: 1}'],
  ])('can be read as a %s', async (_, status, url, more) => {
    const silent = await listen(() => undefined);
    const gate = await startTidegate(
      `upstreams: {api: {url: "${url ?? silent.url}"${more}}}\nroutes: [{upstream: api, ${RULES}}]`,
    );
    const answer = await send(gate.url, '/', { headers: ['Origin', APP] });
    expect(answer.status).toBe(status);
    expect(answer.header('access-control-allow-origin')).toBe(APP);
  });

  test('has no CORS headers where the upstream handles CORS', async () => {
    const { gate } = await start('cors: pass-through', undefined, ONE);
    await send(gate.url, '/', { headers: ['Origin', APP] });
    const refused = await send(gate.url, '/', { headers: ['Origin', APP] });
    expect(refused.status).toBe(429);
    expect(refused.headers.filter((name) => /^(?:access-control-|vary$)/i.test(name))).toEqual([]);
  });

  test('of a check has CORS headers for the page that the ingress serves', async () => {
    const { gate } = await start(RULES, undefined, ONE, 'check: {}\nclients: {trustedProxies: [127.0.0.0/8]}');
    await send(gate.url, '/check/');
    const refused = await send(gate.url, '/check/', { headers: ['Origin', APP] });
    expect(refused.status).toBe(429);
    expect(refused.header('access-control-allow-origin')).toBe(APP);
  });
});

describe('an upstream response', () => {
  test('without CORS headers gets those of the route', async () => {
    const { gate } = await start(RULES, (_n, response) =>
      response.writeHead(429, ['Vary', 'Accept', 'Access-Control-Allow-Credentials', 'true']).end(),
    );
    const answer = await send(gate.url, '/', { headers: ['Origin', APP] });
    expect(all(answer, 'access-control-allow-origin')).toEqual([APP]);
    expect(all(answer, 'access-control-allow-credentials')).toEqual([]); // the upstream alone may not grant it
    expect(all(answer, 'vary')).toEqual(['Accept', 'Origin']);
    expect(answer.header('access-control-expose-headers')).toContain('Retry-After');
  });

  test.each([['Origin'], ['accept, origin'], ['*']])('with Vary: %s does not get a second Origin', async (vary) => {
    const { gate } = await start(RULES, (_n, response) => response.writeHead(200, ['Vary', vary]).end());
    expect(all(await send(gate.url, '/', { headers: ['Origin', APP] }), 'vary')).toEqual([vary]);
  });

  test('with CORS headers keeps them, and exposes the headers that the proxy adds', async () => {
    const own = ['Access-Control-Allow-Origin', 'https://other.example', 'Access-Control-Allow-Credentials', 'true'];
    const { gate } = await start(RULES, (_n, response) =>
      response.writeHead(200, [...own, 'Access-Control-Expose-Headers', 'X-Own']).end(),
    );
    const answer = await send(gate.url, '/', { headers: ['Origin', APP] });
    expect(all(answer, 'access-control-allow-origin')).toEqual(['https://other.example']);
    expect(all(answer, 'access-control-allow-credentials')).toEqual(['true']);
    const [upstreams, ours] = all(answer, 'access-control-expose-headers');
    expect(upstreams).toBe('X-Own');
    expect(ours).toContain('Retry-After');
  });

  test.each([
    ['of an allowed origin', ['Origin', APP]],
    ['of another origin', ['Origin', 'https://evil.example']],
    ['without an origin', []],
  ])('with CORS headers varies by Origin for caches, for a request %s', async (_, headers) => {
    const { gate } = await start(RULES, (_n, response, { target }) => {
      const vary = target === '/origin' ? ['Vary', 'origin'] : [];
      return response.writeHead(200, ['Access-Control-Allow-Origin', APP, ...vary]).end();
    });
    expect(all(await send(gate.url, '/', { headers }), 'vary')).toEqual(['Origin']);
    expect(all(await send(gate.url, '/origin', { headers }), 'vary')).toEqual(['origin']);
  });

  test('of a route for all origins varies by nothing', async () => {
    const { gate } = await start('cors: {origins: ["*"]}', (_n, response, { target }) =>
      response.writeHead(200, target === '/own' ? ['Access-Control-Allow-Origin', '*'] : []).end(),
    );
    for (const target of ['/', '/own']) {
      expect(all(await send(gate.url, target, { headers: ['Origin', APP] }), 'vary')).toEqual([]);
    }
  });

  test('is unchanged where the upstream handles CORS', async () => {
    const { gate } = await start('', (_n, response) => response.writeHead(200, ['Vary', 'Accept']).end());
    const answer = await send(gate.url, '/', { headers: ['Origin', APP] });
    expect(all(answer, 'vary')).toEqual(['Accept']);
    expect(answer.headers.filter((name) => /^access-control-/i.test(name))).toEqual([]);
  });
});

describe('a preflight that the upstream handles', () => {
  test('is forwarded without a limit, and is not counted', async () => {
    const { gate, upstream } = await start('', undefined, ONE);
    expect((await send(gate.url, '/')).status).toBe(200);
    const answers = await Promise.all(Array.from({ length: 30 }, () => preflight(gate.url)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(upstream.hits.filter(({ method }) => method === 'OPTIONS')).toHaveLength(30);
    expect(upstream.hits.at(-1)?.headers).toContain('Access-Control-Request-Method');
    expect(await gate.metric(decisions('passed'))).toBe(1);
    expect(await gate.metric(decisions('refused'))).toBe(0);
    expect((await send(gate.url, '/')).status).toBe(429);
  });

  test.each([429, 503])('changes no rate and holds no client after a %i', async (status) => {
    const { gate, upstream } = await start('', (_n, response, { method }) =>
      method === 'OPTIONS' ? response.writeHead(status, ['Retry-After', '100']).end() : response.end('served'),
    );
    const answers = await Promise.all(Array.from({ length: 20 }, () => preflight(gate.url)));
    expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => status));
    expect(upstream.hits).toHaveLength(20); // nor is it retried
    expect(gate.view().limits).toMatchObject([{ state: 'open', rate: Infinity }]);
    expect((await send(gate.url, '/')).body.toString()).toBe('served');
    expect(await gate.metric('tidegate_clients_tracked')).toBe(1);
    expect(await gate.metric('tidegate_upstream_throttled_total{upstream="api",reason="unspecified"}')).toBe(0);
  });

  test('gets a Retry-After where its rejection has none', async () => {
    const { gate } = await start('', (_n, response) => response.writeHead(429).end());
    expect((await preflight(gate.url)).header('retry-after')).toBe('1');
  });

  test('ejects no endpoint, whatever the response', async () => {
    const upstream = await startHttpUpstream((_n, response, { method }) =>
      method === 'OPTIONS' ? response.writeHead(503).end() : response.end('served'),
    );
    const gate = await startTidegate(
      `upstreams: {api: {urls: ["${upstream.url}", "http://localhost:${new URL(upstream.url).port}"]}}`,
    );
    await Promise.all(Array.from({ length: 40 }, () => preflight(gate.url)));
    const exposition = await (await fetch(`${gate.adminUrl}/metrics`)).text();
    expect(exposition).not.toMatch(/^tidegate_endpoint_ejections_total\{.*\} [1-9]/m);
    expect((await send(gate.url, '/')).status).toBe(200);
  });

  test('finds its route by the requested method and path', async () => {
    const { gate, upstream } = await start('methods: [POST]');
    expect((await preflight(gate.url)).status).toBe(200);
    expect(upstream.hits).toHaveLength(1);
    expect((await send(gate.url, '/', { method: 'OPTIONS' })).status).toBe(404);
  });

  test('gets no permission of another route', async () => {
    const upstream = await startHttpUpstream((_, response) => response.writeHead(403).end());
    const routesOf = (methods: string) =>
      `upstreams: {api: {url: "${upstream.url}"}}\nroutes: [{path: /, upstream: api, ${RULES}}, {path: /m, upstream: api, methods: [${methods}]}]\n`;
    for (const methods of ['POST', 'POST, OPTIONS']) {
      const gate = await startTidegate(routesOf(methods));
      const answer = await preflight(gate.url, PREFLIGHT, '/m/1');
      expect([answer.status, all(answer, 'access-control-allow-origin')]).toEqual([403, []]);
      expect((await preflight(gate.url, PREFLIGHT, '/x')).status).toBe(204);
    }
  });

  test('is admitted as a check, and needs no token', async () => {
    const { gate } = await start('', undefined, ONE, 'check: {}\nclients: {trustedProxies: [127.0.0.0/8]}');
    const check = () => send(gate.url, '/check/', { method: 'OPTIONS', headers: PREFLIGHT });
    const answers = await Promise.all(Array.from({ length: 10 }, check));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(answers[0]?.header('tidegate-preflight')).toBe('true');
    expect(await gate.metric(decisions('passed'))).toBe(0);
    expect((await send(gate.url, '/check/')).status).toBe(200);
  });
});

test.each([
  ['without an origin', ['Access-Control-Request-Method', 'POST']],
  ['without a requested method', ['Origin', APP]],
])('treats an OPTIONS %s as an ordinary request', async (_, headers) => {
  const { gate, upstream } = await start(RULES, undefined, ONE);
  expect((await preflight(gate.url, headers)).status).toBe(200);
  expect((await preflight(gate.url, headers)).status).toBe(429);
  expect(upstream.hits).toHaveLength(1);
});

test('applies changed origins after a reload', async () => {
  const { gate, yaml } = await start('');
  expect((await preflight(gate.url)).status).toBe(200);
  expect((await gate.rewrite(yaml(RULES))).kind).toBe('applied');
  expect((await preflight(gate.url)).header('access-control-allow-origin')).toBe(APP);
  expect((await gate.rewrite(yaml('cors: {origins: ["https://other.example"]}'))).kind).toBe('applied');
  expect((await preflight(gate.url)).header('access-control-allow-origin')).toBeUndefined();
  expect((await gate.rewrite(yaml('cors: pass-through'))).kind).toBe('applied');
  expect((await preflight(gate.url)).status).toBe(200);
});

test('leaves connections to other requests while the upstream answers preflights of one address slowly', async () => {
  const upstream = await startHttpUpstream((_n, response, { target }) => {
    setTimeout(() => response.end('x'), target === '/slow' ? 300 : 0);
    return response;
  });
  const gate = await startTidegate(`
clients: {trustedProxies: [127.0.0.1], key: [ip]}
upstreams: {api: {url: "${upstream.url}", connections: 4, retry: {attempts: 1}, queue: {maxWait: 5s}}}
`);
  const from = (address: string) => ['X-Forwarded-For', address];
  const flood = Array.from({ length: 100 }, () =>
    preflight(gate.url, [...PREFLIGHT, ...from('203.0.113.66')], '/slow').then(({ status }) => status),
  );
  const statuses: number[] = [];
  for (let i = 0; i < 4; i += 1) {
    statuses.push((await send(gate.url, '/fine', { headers: from('198.51.100.1') })).status);
  }
  expect(statuses).toEqual([200, 200, 200, 200]);
  const answered = await Promise.all(flood);
  expect(new Set(answered)).toEqual(new Set([200, 503]));
});
