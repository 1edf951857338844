/** One address, with any number of keys, and one stale response hold or block no other client. */
import { expect, test } from 'vitest';
import type { HttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import type { Received } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

const EVIL = '203.0.113.66';

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

function startUpstreamOf(answer: (key: string, path: string) => Answer): Promise<HttpUpstream> {
  return startHttpUpstream((_n, response, { headers, target }) => {
    const key = headers[headers.findIndex((name) => name.toLowerCase() === 'x-api-key') + 1] ?? '';
    const { status = 200, headers: more = {}, body = 'served' } = answer(key, target);
    response.writeHead(status, more).end(body);
  });
}

function configFor(url: string, more = ''): string {
  return `clients: {trustedProxies: [127.0.0.1], key: ["header:x-api-key", ip]}
upstreams: {api: {url: "${url}", retry: {attempts: 1}${more}}}
`;
}

function asking(url: string) {
  return (key: string, address: string, path = '/'): Promise<Received> =>
    send(url, path, { headers: ['X-Api-Key', key, 'X-Forwarded-For', address] });
}

async function start(answer: (key: string, path: string) => Answer, more = '') {
  const upstream = await startUpstreamOf(answer);
  const gate = await startTidegate(configFor(upstream.url, more));
  return { upstream, gate, ask: asking(gate.url) };
}

/** Each key has its own quota of 5000 an hour; some have spent it. */
function quotasByKey(): (key: string) => Answer {
  const left = new Map<string, number>();
  return (key) => {
    const remaining = key.startsWith('spent') ? 0 : (left.get(key) ?? 5000) - 1;
    left.set(key, remaining);
    const quota = {
      'X-RateLimit-Limit': '5000',
      'X-RateLimit-Remaining': String(remaining),
      'X-RateLimit-Reset': '250',
    };
    return { headers: quota };
  };
}

test.each([1, 2, 20])('holds no other key when %i keys of one address have spent their quota', async (keys) => {
  const { ask } = await start(quotasByKey());
  for (let i = 0; i < 3; i += 1) for (const n of [1, 2]) await ask(`good${n}`, `198.51.100.${n}`);
  for (let i = 0; i < keys; i += 1) await ask(`spent${i}`, EVIL);
  for (const n of [1, 2]) expect((await ask(`good${n}`, `198.51.100.${n}`)).status).toBe(200);
});

/** Each address has a number of requests per window, reported in each response. */
function quotasByAddress(limit: number, seconds: number) {
  const began = Date.now();
  const used = new Map<string, number>();
  return (address: string): Answer => {
    const now = (Date.now() - began) / 1000;
    const window = Math.floor(now / seconds);
    const count = (used.get(`${address} ${window}`) ?? 0) + 1;
    used.set(`${address} ${window}`, count);
    const headers = {
      'X-RateLimit-Limit': String(limit),
      'X-RateLimit-Remaining': String(Math.max(0, limit - count)),
      'X-RateLimit-Reset': String(Math.ceil((window + 1) * seconds - now)),
    };
    return count > limit ? { status: 429, headers } : { headers };
  };
}

test.each([
  [5, 60],
  [10, 60],
  [50, 8],
  [50, 4],
])('holds no other address when one has spent its %i requests per %i s', async (limit, seconds) => {
  const quotaOf = quotasByAddress(limit, seconds);
  const upstream = await startHttpUpstream((_, response, { headers }) => {
    const by = headers[headers.findIndex((name) => name.toLowerCase() === 'x-forwarded-for') + 1] ?? '';
    const { status = 200, headers: more = {} } = quotaOf(by.split(',')[0] ?? '');
    return response.writeHead(status, more).end('served');
  });
  const gate = await startTidegate(configFor(upstream.url));
  const ask = asking(gate.url);
  const good = async () => {
    const answers = await Promise.all([1, 2, 3].map((n) => ask(`good${n}`, `198.51.100.${n}`)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  };
  expect((await ask('good1', '198.51.100.1')).status).toBe(200);
  for (let i = 0; i < limit; i += 1) {
    await ask('evil', EVIL);
    if (i % 13 === 12) await good();
  }
  await good();
});

const odd = (_key: string, path: string): Answer => {
  const spent = { 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '120' };
  return path === '/odd' ? { headers: spent } : {};
};

test('limits a quota that one path reports to several addresses to that path', async () => {
  const { ask } = await start(odd);
  for (const n of [1, 2, 3]) await ask(`good${n}`, `198.51.100.${n}`, '/ok');
  await ask('a', '203.0.113.1', '/odd');
  await ask('b', '203.0.113.2', '/odd');
  for (const n of [1, 2, 3, 4]) expect((await ask(`good${n}`, `198.51.100.${n}`, '/ok')).status).toBe(200);
  expect((await ask('a', '203.0.113.1', '/ok')).status).toBe(429);
});

test.each(['workers', 'replicas'])('limits such a quota to its path across %s too', async (topology) => {
  const upstream = await startUpstreamOf(odd);
  const redis = topology === 'replicas' ? await startRedis() : undefined;
  const shared = redis === undefined ? 'workers: 2' : `state: {store: redis, url: "${redis.url}", timeout: 240ms}`;
  const yaml = `${shared}\n${configFor(upstream.url)}`;
  const gates =
    redis === undefined ? [await startWorkers(yaml)] : [await startTidegate(yaml), await startTidegate(yaml)];
  let turn = 0;
  const ask = async (key: string, address: string, path: string): Promise<Received> => {
    const answer = await asking(gates[(turn += 1) % gates.length]?.url ?? '')(key, address, path);
    await pause(100); // the others receive the update
    return answer;
  };
  for (let i = 0; i < 4; i += 1) for (const n of [1, 2, 3]) await ask(`good${n}`, `198.51.100.${n}`, '/ok');
  for (const n of [1, 2]) await ask(`odd${n}`, `203.0.113.${n}`, '/odd');
  await pause(500);
  for (const n of [1, 2, 3, 4, 5, 6]) expect((await ask(`good${n}`, `198.51.100.${n}`, '/ok')).status).toBe(200);
});

test('holds no others where none of them had a quota reported before', async () => {
  const { ask } = await start(quotasByKey(), ', limits: [{name: endpoint, match: {path: ["/v1/{r}"]}}]');
  for (const n of [1, 2]) await ask(`spent${n}`, EVIL, '/v1/refunds');
  for (const path of ['/', '/v1/refunds']) expect((await ask('good', '198.51.100.1', path)).status).toBe(200);
});

test('does not let two spent keys hold keys that just had more quota reported', async () => {
  const { ask } = await start(quotasByKey());
  for (const n of [1, 2]) await ask(`good${n}`, `198.51.100.${n}`);
  for (const n of [1, 2]) await ask(`spent${n}`, `203.0.113.${n}`);
  expect((await ask('good1', '198.51.100.1')).status).toBe(200);
});

test('holds no others across workers', async () => {
  const upstream = await startUpstreamOf(quotasByKey());
  const gate = await startWorkers(`workers: 2\n${configFor(upstream.url)}`);
  const ask = asking(gate.url);
  for (let i = 0; i < 3; i += 1) for (const n of [1, 2]) await ask(`good${n}`, `198.51.100.${n}`);
  for (const n of [1, 2]) await ask(`spent${n}`, EVIL);
  for (const n of [1, 2, 3]) expect((await ask(`good${n}`, `198.51.100.${n}`)).status).toBe(200);
});

test('holds no others across replicas that share their limits', async () => {
  const upstream = await startUpstreamOf(quotasByKey());
  const redis = await startRedis();
  const yaml = `state: {store: redis, url: "${redis.url}", timeout: 240ms}\n${configFor(upstream.url)}`;
  const gates = [await startTidegate(yaml), await startTidegate(yaml)];
  let turn = 0;
  const ask = async (key: string, address: string): Promise<Received> => {
    const answer = await asking(gates[(turn += 1) % 2]?.url ?? '')(key, address);
    await pause(300); // the other receives the update
    return answer;
  };
  for (let i = 0; i < 2; i += 1) for (const n of [1, 2]) await ask(`good${n}`, `198.51.100.${n}`);
  for (const n of [1, 2, 3]) await ask(`spent${n}`, EVIL);
  for (const n of [1, 2, 3, 4]) expect((await ask(`good${n}`, `198.51.100.${n}`)).status).toBe(200);
});

test('blocks a path for one address only after rejections of that address', async () => {
  const spent = { status: 429, headers: { 'Retry-After': '300' } };
  const { ask } = await start((key) => (key.startsWith('spent') ? spent : {}), ', rateLimit: {initialRate: 1000/s}');
  for (let i = 0; i < 6; i += 1) {
    await ask(`spent${i}`, EVIL, '/charges');
    if (i < 5) await Promise.all([0, 1, 2].map((n) => ask(`own${i}${n}`, EVIL, '/other')));
  }
  for (let i = 0; i < 6; i += 1) await ask(`fresh${i}`, EVIL, '/charges');
  expect((await ask('good', '198.51.100.2', '/charges')).status).toBe(200);
});

test('blocks a path for one address only after failures of that address', async () => {
  const broken = { status: 503, headers: { 'Retry-After': '300' } };
  const { ask } = await start((key) => (key.startsWith('bad') ? broken : {}));
  for (let i = 0; i < 10; i += 1) {
    const paths = ['/v1/refunds', '/v1/charges'] as const;
    await Promise.all([...paths.map((path, n) => ask(`bad${i}${n}`, EVIL, path)), ask(`own${i}`, EVIL, '/v1/other')]);
  }
  for (let i = 0; i < 4; i += 1) await ask(`badp${i}`, EVIL, '/v1/charges');
  expect((await ask('good', '198.51.100.1', '/v1/charges')).status).toBe(200);
});

test.each(['github', 'anthropic', 'openai'])(
  'holds nobody for a cached rejection with the preset of %s',
  async (provider) => {
    const refused = {
      status: 429,
      headers: { Age: '3000', Date: new Date(Date.now() - 3_000_000).toUTCString(), 'Retry-After': '3300' },
      body: JSON.stringify({ error: { type: 'rate_limit_error' } }),
    };
    const cached = { ...refused, headers: { ...refused.headers, 'Content-Type': 'application/json' } };
    const { ask, gate } = await start((_key, path) => (path === '/cached' ? cached : {}), `, provider: ${provider}`);
    await ask('first', '198.51.100.1', '/now');
    const rates = () => gate.view().limits.map(({ rate, state }) => [rate, state]);
    const before = rates();
    await ask('reader', '198.51.100.1', '/cached');
    for (const n of [2, 3, 4]) expect((await ask(`key${n}`, `198.51.100.${n}`, '/now')).status).toBe(200);
    expect(rates()).toEqual(before);
  },
);

test('does not treat a github message that quotes the request as a rejection of all anonymous clients', async () => {
  const quoting = {
    headers: { 'Content-Type': 'application/json', 'X-RateLimit-Limit': '5000', 'X-RateLimit-Remaining': '4990' },
    body: JSON.stringify({
      data: { user: null },
      errors: [{ type: 'NOT_FOUND', message: "Could not resolve to a User with the login of 'secondary rate limit'." }],
    }),
  };
  const { gate } = await start(() => quoting, ', provider: github');
  const ask = (address: string) =>
    send(gate.url, '/graphql', {
      method: 'POST',
      headers: ['Authorization', 'Bearer shared', 'X-Forwarded-For', address, 'Content-Type', 'application/json'],
      body: '{}',
    });
  for (const address of [EVIL, '198.51.100.1']) expect((await ask(address)).status).toBe(200);
});
