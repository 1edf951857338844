/** One address, with as many keys as it likes, and one stale answer stop nobody else. */
import { expect, test } from 'vitest';
import type { HttpUpstream } from '../support/http-upstream.ts';
import { startHttpUpstream } from '../support/http-upstream.ts';
import type { Received } from '../support/send.ts';
import { send } from '../support/send.ts';
import { startTidegate } from '../support/tidegate.ts';

const EVIL = '203.0.113.66';

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function start(answer: (key: string, path: string) => Answer, more = '', top = '') {
  const upstream: HttpUpstream = await startHttpUpstream((_n, response, { headers, target }) => {
    const key = headers[headers.findIndex((name) => name.toLowerCase() === 'x-api-key') + 1] ?? '';
    const { status = 200, headers: more = {}, body = 'served' } = answer(key, target);
    response.writeHead(status, more).end(body);
  });
  const gate = await startTidegate(`
clients: {trustedProxies: [127.0.0.1], key: ["header:x-api-key", ip]}
${top}upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}${more}}}
`);
  const ask = (key: string, address: string, path = '/'): Promise<Received> =>
    send(gate.url, path, { headers: ['X-Api-Key', key, 'X-Forwarded-For', address] });
  return { upstream, gate, ask };
}

test.each([1, 2, 20])('%i spent keys of one address stop no other', async (keys) => {
  const left = new Map<string, number>();
  const { ask } = await start((key) => {
    const remaining = key.startsWith('spent') ? 0 : (left.get(key) ?? 5000) - 1;
    left.set(key, remaining);
    const quota = {
      'X-RateLimit-Limit': '5000',
      'X-RateLimit-Remaining': String(remaining),
      'X-RateLimit-Reset': '250',
    };
    return { headers: quota };
  });
  for (let i = 0; i < 3; i += 1) for (const n of [1, 2]) await ask(`good${n}`, `198.51.100.${n}`);
  for (let i = 0; i < keys; i += 1) await ask(`spent${i}`, EVIL);
  expect((await ask('good1', '198.51.100.1')).status).toBe(200);
  expect((await ask('good2', '198.51.100.2')).status).toBe(200);
});

test('rejections of one address on a path block that path for no other', async () => {
  const spent = { status: 429, headers: { 'Retry-After': '300' } };
  const { ask } = await start((key) => (key.startsWith('spent') ? spent : {}), ', rateLimit: {initialRate: 1000/s}');
  for (let i = 0; i < 6; i += 1) {
    await ask(`spent${i}`, EVIL, '/charges');
    if (i < 5) await Promise.all([0, 1, 2].map((n) => ask(`own${i}${n}`, EVIL, '/other')));
  }
  for (let i = 0; i < 6; i += 1) await ask(`fresh${i}`, EVIL, '/charges');
  expect((await ask('good', '198.51.100.2', '/charges')).status).toBe(200);
});

test('failures of one address on a path block that path for no other', async () => {
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
  'a cached refusal stops nobody with the preset of %s',
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
