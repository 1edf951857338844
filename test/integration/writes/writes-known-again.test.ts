/** Recognition of a write: at which endpoint, by which token, after which response, over a reload and in a long upload. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { HttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { listen, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import type { Received } from '../../support/clients/send.ts';
import { begin, send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const KEY = ['Idempotency-Key', 'order-1'];
const as = (token: string): string[] => [...KEY, 'Authorization', `Bearer ${token}`];

function one(url: string, idempotency: string, retry = 'attempts: 1', more = ''): string {
  const backOff = 'backOff: {strategy: fixed, baseInterval: 1ms}';
  return `upstreams: {api: {url: "${url}", retry: {${retry}, ${backOff}}, idempotency: {${idempotency}}${more}}}\n`;
}

function two(a: HttpUpstream, b: HttpUpstream, idempotency = 'ttl: 24h'): string {
  return one(a.url, idempotency).replace(`url: "${a.url}"`, `urls: ["${a.url}", "${b.url}"]`);
}

function post(url: string, headers: readonly string[] = KEY, body = 'x', target = '/charges'): Promise<Received> {
  return send(url, target, { method: 'POST', headers, body });
}

async function openServer(server: Server, port: number): Promise<AddressInfo> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return server.address() as AddressInfo;
}

async function closeServer(server: Server): Promise<void> {
  server.close().closeAllConnections();
  if (server.listening) await once(server, 'close');
}

const outcomeOf = (answer: Received) => [answer.status, answer.header('tidegate-outcome')];
const UNKNOWN = [504, 'unknown'];

/** Answers requests in order; the last response repeats. */
function startAnswering(
  ...answers: readonly ('reset' | number | readonly [number, Record<string, string>])[]
): Promise<HttpUpstream> {
  return startHttpUpstream((n, response) => {
    const answer = answers[Math.min(n, answers.length) - 1] ?? 200;
    if (answer === 'reset') return response.destroy();
    const [status, headers] = typeof answer === 'number' ? [answer, {}] : answer;
    return response.writeHead(status, headers).end('said');
  });
}

describe('of several endpoints, the one that may know the key gets its repeat', () => {
  /** Charges each key that it does not know, after a delay. */
  function startBank(charges: string[], name: string): Promise<HttpUpstream> {
    const known = new Set<string>();
    return startHttpUpstream((_, response, { headers }) => {
      const key = headers[headers.findIndex((each) => each.toLowerCase() === 'idempotency-key') + 1] ?? '';
      if (known.has(key)) return response.writeHead(201, { 'Idempotent-Replayed': 'true' }).end('paid');
      known.add(key);
      charges.push(name);
      return setTimeout(() => response.writeHead(201).end('paid'), 200);
    });
  }

  test('after its client disconnected', async () => {
    const charges: string[] = [];
    const gate = await startTidegate(two(await startBank(charges, 'a'), await startBank(charges, 'b')));
    await sendAndLeave(gate.url, '/charges', { method: 'POST', headers: KEY, body: 'x' }, () => charges.length === 1);
    for (let i = 0; i < 3; i += 1) expect((await post(gate.url)).status).toBe(201);
    expect(charges).toHaveLength(1);
  });

  test('while it is in progress, with concurrent: pass', async () => {
    const charges: string[] = [];
    const [a, b] = [await startBank(charges, 'a'), await startBank(charges, 'b')];
    const gate = await startTidegate(two(a, b, 'ttl: 24h, concurrent: pass'));
    const first = post(gate.url);
    await eventually(() => charges.length, Boolean);
    expect((await post(gate.url)).status).toBe(201);
    expect((await first).status).toBe(201);
    expect(charges).toHaveLength(1);
  });

  test('by its own last attempt, after another write with its key ended without effect', async () => {
    const charges: string[] = [];
    let sends = 0;
    const startBank413 = (name: string) =>
      startHttpUpstream((_, response, { headers }) => {
        if (headers.includes('first')) return setTimeout(() => response.writeHead(413).end(), 300);
        sends += 1;
        if (sends === 1) return response.writeHead(503).end();
        if (!charges.includes(name)) charges.push(name);
        return sends === 2 ? response.destroy() : response.writeHead(201).end('paid');
      });
    const [a, b] = [await startBank413('a'), await startBank413('b')];
    const pass = two(a, b, 'ttl: 24h, concurrent: pass').replace('attempts: 1', 'attempts: 4').replace('1ms', '500ms');
    const gate = await startTidegate(pass);
    const first = post(gate.url, [...KEY, 'X-Who', 'first']);
    await eventually(() => a.hits.length + b.hits.length, Boolean);
    expect((await post(gate.url)).status).toBe(201);
    await first;
    expect([sends, charges.length]).toEqual([3, 1]);
    for (let i = 0; i < 3; i += 1) expect((await post(gate.url)).status).toBe(201);
    expect(charges).toHaveLength(1);
  });

  /** Banks that answer in order, whichever is asked, then charge each key that they do not know. */
  async function startBanks(...first: readonly ('reset' | number)[]) {
    const charges: string[] = [];
    const sentTo: string[] = [];
    const open = (name: string): Promise<HttpUpstream> => {
      const known = new Set<string>();
      return startHttpUpstream((_, response, { headers }) => {
        const key = headers[headers.indexOf('Idempotency-Key') + 1] ?? '';
        const answer = first[sentTo.length] ?? 201;
        sentTo.push(name);
        if (typeof answer === 'number' && answer !== 201) {
          return response.writeHead(answer, { 'Stripe-Should-Retry': 'true', 'X-Again': 'true' }).end('not yet');
        }
        if (!known.has(key)) charges.push(name);
        known.add(key);
        return answer === 'reset' ? response.destroy() : response.writeHead(201).end('paid');
      });
    };
    return { a: await open('a'), b: await open('b'), charges, sentTo };
  }

  const declineRetries: [string, string, string][] = [
    ['its status is listed', '', 'retryOn: ["402", 5xx, reset]'],
    ['the upstream says so', ', throttle: {verdictHeader: X-Again}', ''],
    ['Stripe says so', ', provider: stripe', ''],
  ];
  const retrying = (a: HttpUpstream, b: HttpUpstream, retry = '', more = '', pause = '1ms') =>
    one(a.url, 'ttl: 24h', `attempts: 4${retry === '' ? '' : `, ${retry}`}`, more)
      .replace(`url: "${a.url}"`, `urls: ["${a.url}", "${b.url}"]`)
      .replace('1ms', pause);

  describe.each(declineRetries)('after a decline that is retried because %s', (_why, more, retry) => {
    test.each([
      ['which succeeds', [402]],
      ['whose response is lost', [402, 'reset']],
      ['after the other endpoint did nothing', [503, 402]],
      ['after others that did nothing, and whose response is lost', [503, 402, 503, 'reset']],
    ] as const)('%s', async (_what, first) => {
      const { a, b, charges, sentTo } = await startBanks(...first);
      const gate = await startTidegate(retrying(a, b, retry, more));
      for (let i = 0; i < 4; i += 1) {
        const answer = await post(gate.url);
        // Four attempts may end with the response that is lost.
        expect(outcomeOf(answer)).toEqual(i === 0 && first.length === 4 ? UNKNOWN : [201, undefined]);
      }
      expect(charges).toHaveLength(1);
      const declinedBy = sentTo[first.indexOf(402)];
      expect(new Set(sentTo.slice(first.indexOf(402)))).toEqual(new Set([declinedBy]));
    });
  });

  test('after a decline whose client disconnected before its retry', async () => {
    const { a, b, sentTo } = await startBanks(402);
    const gate = await startTidegate(retrying(a, b, 'retryOn: ["402"]', '', '2s'));
    await sendAndLeave(gate.url, '/charges', { method: 'POST', headers: KEY, body: 'x' }, () => sentTo.length === 1);
    await eventually(
      () => gate.requests(),
      ({ length }) => length === 1,
    );
    for (let i = 0; i < 4; i += 1) expect((await post(gate.url)).status).toBe(201);
    expect(new Set(sentTo).size).toBe(1);
  });

  test('after a reload that adds a second endpoint', async () => {
    const a = await startAnswering('reset');
    const b = await startAnswering(200);
    const gate = await startTidegate(one(a.url, 'ttl: 24h'));
    expect(outcomeOf(await post(gate.url))).toEqual(UNKNOWN);
    await gate.rewrite(two(a, b));
    for (let i = 0; i < 3; i += 1) expect(outcomeOf(await post(gate.url))).toEqual(UNKNOWN);
    expect(b.hits).toHaveLength(0);
  });

  test.each(['', 'ttl: 24h'])('after a reload that adds another, for a write answered before: {%s}', async (key) => {
    const charges: string[] = [];
    const [a, b] = [await startBank(charges, 'a'), await startBank(charges, 'b')];
    const gate = await startTidegate(one(a.url, key));
    expect((await post(gate.url)).status).toBe(201);
    await gate.rewrite(two(a, b, key));
    for (let i = 0; i < 4; i += 1) expect((await post(gate.url)).status).toBe(201);
    expect(charges).toEqual(['a']);
  });

  test('after a reload that adds another, for a write in progress', async () => {
    const charges: string[] = [];
    const [a, b] = [await startBank(charges, 'a'), await startBank(charges, 'b')];
    const gate = await startTidegate(one(a.url, ''));
    const keys = ['k0', 'k1', 'k2', 'k3'].map((key) => ['Idempotency-Key', key]);
    const first = keys.map((headers) => post(gate.url, headers));
    await eventually(
      () => charges.length,
      (count) => count === 4,
    );
    await gate.rewrite(two(a, b, ''));
    const again = keys.map((headers) => post(gate.url, headers));
    for (const answer of await Promise.all([...first, ...again])) expect(answer.status).toBe(201);
    expect(charges).toEqual(['a', 'a', 'a', 'a']);
  });

  test('and no other gets it, after a reload that replaces the endpoint', async () => {
    const charges: string[] = [];
    const [a, b] = [await startBank(charges, 'a'), await startBank(charges, 'b')];
    const gate = await startTidegate(one(a.url, ''));
    expect((await post(gate.url)).status).toBe(201);
    await gate.rewrite(one(b.url, ''));
    expect(outcomeOf(await post(gate.url))).toEqual([502, undefined]);
    await gate.rewrite(one(b.url, 'sharesKeys: true'));
    expect((await post(gate.url)).status).toBe(201);
    expect(charges).toEqual(['a', 'b']);
  });

  test('after a reload from wait to pass during its backoff', async () => {
    const charges: string[] = [];
    const bank = await startBank(charges, 'b');
    const a = await startHttpUpstream((n, response) => {
      if (n === 1) return response.writeHead(503).end();
      charges.push('a');
      return response.writeHead(201).end('paid');
    });
    const pausing = (yaml: string) => yaml.replace('attempts: 1, ', 'attempts: 2, ').replace('1ms', '1s');
    const gate = await startTidegate(pausing(two(a, bank)));
    const first = post(gate.url);
    await eventually(() => a.hits.length + bank.hits.length, Boolean);
    await gate.rewrite(pausing(two(a, bank, 'ttl: 24h, concurrent: pass')));
    expect((await post(gate.url)).status).toBe(201);
    expect((await first).status).toBe(201);
    expect(new Set(charges).size).toBe(1);
  });

  test('after a reload from pass to wait while it is in progress', async () => {
    const charges: string[] = [];
    const [a, b] = [await startBank(charges, 'a'), await startBank(charges, 'b')];
    const gate = await startTidegate(two(a, b, 'concurrent: pass'));
    const first = post(gate.url);
    await eventually(() => charges.length, Boolean);
    await gate.rewrite(two(a, b, 'concurrent: wait'));
    expect((await post(gate.url)).status).toBe(201);
    expect((await first).status).toBe(201);
    expect(charges).toHaveLength(1);
  });
});

describe('a write is recognized', () => {
  test.each([
    ['none', 'header:X-Account'],
    ['header:X-Account', 'none'],
  ])('after a reload of its account from %s to %s, which it does not name', async (before, after) => {
    const upstream = await startAnswering('reset', 200);
    const gate = await startTidegate(one(upstream.url, `ttl: 1s, account: ${before}`));
    expect(outcomeOf(await post(gate.url))).toEqual(UNKNOWN);
    await gate.rewrite(one(upstream.url, `ttl: 1s, account: ${after}`));
    await sleep(1100);
    expect(outcomeOf(await post(gate.url))).toEqual([409, 'unknown']);
    expect(upstream.hits).toHaveLength(1);
  });

  test('by each token that repeated it, whatever body that sends', async () => {
    const upstream = await startAnswering('reset');
    const gate = await startTidegate(one(upstream.url, 'ttl: 1s'));
    await post(gate.url, as('a'), 'X');
    await post(gate.url, as('b'), 'X');
    await sleep(1100);
    expect((await post(gate.url, as('b'), 'Y')).status).toBe(409);
    expect(upstream.hits).toHaveLength(2);
  });

  test('in any encoding of its path', async () => {
    const upstream = await startAnswering(200);
    const gate = await startTidegate(one(upstream.url, 'ttl: 1s'));
    await post(gate.url);
    await sleep(1100);
    expect((await post(gate.url, KEY, 'x', '/charge%73')).status).toBe(409);
  });

  test('whatever account it names in a hop-by-hop header', async () => {
    const upstream = await startAnswering(200);
    const gate = await startTidegate(one(upstream.url, 'ttl: 1s, account: header:Stripe-Account'));
    await post(gate.url);
    await sleep(1100);
    const hopByHop = ['Stripe-Account', 'a', 'Connection', 'Stripe-Account'];
    expect((await post(gate.url, [...KEY, ...hopByHop])).status).toBe(409);
    expect((await post(gate.url, [...KEY, 'Stripe-Account', 'a'])).status).toBe(200);
  });

  test('but not for another account, however many use the same key', async () => {
    const upstream = await startAnswering(200);
    const gate = await startTidegate(one(upstream.url, 'ttl: 1s'));
    for (let i = 0; i < 40; i += 1) await post(gate.url, as(`t${i}`), `body ${i}`);
    await sleep(1100);
    expect((await post(gate.url, as('last'), 'body of the last')).status).toBe(200);
  });
});

describe('a response', () => {
  test('of 402 does not resolve later attempts', async () => {
    const upstream = await startAnswering(402, 'reset', 404);
    const gate = await startTidegate(one(upstream.url, 'ttl: 1s'));
    expect(outcomeOf(await post(gate.url))).toEqual([402, undefined]);
    expect(outcomeOf(await post(gate.url))).toEqual(UNKNOWN);
    expect(outcomeOf(await post(gate.url))).toEqual(UNKNOWN);
    await sleep(1100);
    expect(outcomeOf(await post(gate.url))).toEqual([409, 'unknown']);
  });

  test('to one token does not resolve another token’s own attempt', async () => {
    const upstream = await startAnswering(201, 'reset', 401);
    const gate = await startTidegate(one(upstream.url, 'ttl: 1s'));
    expect(outcomeOf(await post(gate.url, as('a')))).toEqual([201, undefined]);
    expect(outcomeOf(await post(gate.url, as('b')))).toEqual(UNKNOWN);
    expect(outcomeOf(await post(gate.url, as('b')))).toEqual(UNKNOWN);
    expect(outcomeOf(await post(gate.url, as('a')))).toEqual([401, undefined]);
    await sleep(1100);
    expect(outcomeOf(await post(gate.url, as('b')))).toEqual([409, 'unknown']);
    expect(outcomeOf(await post(gate.url, as('a')))).toEqual([409, undefined]);
  });

  test.each([2, 9])('to one token does not resolve any of %i other tokens’ attempts', async (others) => {
    const tokens = Array.from({ length: others }, (_, i) => `other-${i}`);
    const upstream = await startAnswering(201, ...tokens.map(() => 'reset' as const), 401);
    const gate = await startTidegate(one(upstream.url, 'ttl: 24h'));
    expect(outcomeOf(await post(gate.url, as('a')))).toEqual([201, undefined]);
    for (const token of [...tokens, ...tokens]) expect(outcomeOf(await post(gate.url, as(token)))).toEqual(UNKNOWN);
  });

  test.each([429, 409, 401])('resolves a write for good: a %i after a reset is plain', async (status) => {
    const upstream = await startAnswering(201, 'reset', status);
    const gate = await startTidegate(one(upstream.url, 'ttl: 1m', 'attempts: 2'));
    expect(outcomeOf(await post(gate.url))).toEqual([201, undefined]);
    expect(outcomeOf(await post(gate.url))).toEqual([status, undefined]);
  });

  test('that reached one client in full stays valid when another client’s is truncated', async () => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 1) response.writeHead(201, { 'Content-Length': '10' }).write('paid');
      else if (n === 2) response.writeHead(201, { 'Idempotent-Replayed': 'true' }).end('paid');
      else response.writeHead(429, { 'Retry-After': '60' }).end();
    });
    const gate = await startTidegate(one(upstream.url, 'ttl: 24h'));
    let hasBegun = false;
    const first = begin(gate.url, '/charges', { method: 'POST', headers: KEY, body: 'x' }, (incoming) => {
      hasBegun = true;
      incoming.on('error', () => undefined).resume();
    });
    first.on('error', () => undefined).end('x');
    await eventually(() => hasBegun, Boolean);
    expect((await post(gate.url)).status).toBe(201);
    first.destroy();
    await eventually(
      () => gate.requests().length,
      (lines) => lines === 2,
    );
    expect(outcomeOf(await post(gate.url))).toEqual([429, undefined]);
  });

  test.each(['the upstream', 'the client'])(
    'that reached a client in full stays valid when %s cuts the next one',
    async (side) => {
      const upstream = await startHttpUpstream((n, response) => {
        if (n === 1) response.writeHead(201).end('paid');
        else if (n > 2) response.writeHead(401).end('no');
        else {
          response.writeHead(201, { 'Content-Length': '10' }).write('paid');
          if (side === 'the upstream') setTimeout(() => response.destroy(), 20);
        }
      });
      const gate = await startTidegate(one(upstream.url, 'ttl: 24h'));
      expect(outcomeOf(await post(gate.url))).toEqual([201, undefined]);
      const again = begin(gate.url, '/charges', { method: 'POST', headers: KEY, body: 'x' }, (incoming) => {
        incoming.on('error', () => undefined).resume();
        if (side === 'the client') again.destroy();
      });
      again.end('x');
      await eventually(
        () => gate.requests(),
        ([, second]) => second?.['cut'] === true,
      );
      for (let i = 0; i < 2; i += 1) expect(outcomeOf(await post(gate.url))).toEqual([401, undefined]);
    },
  );

  test('of 402 that reached its client does not resolve a later attempt with a truncated response', async () => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 1) response.writeHead(402).end('declined');
      else if (n === 2) response.writeHead(201, { 'Content-Length': '10' }).write('paid');
      else response.writeHead(401).end('no');
    });
    const gate = await startTidegate(one(upstream.url, 'ttl: 1s'));
    expect(outcomeOf(await post(gate.url))).toEqual([402, undefined]);
    let hasBegun = false;
    const sent = { method: 'POST', headers: KEY, body: 'x' };
    const second = begin(gate.url, '/charges', sent, (incoming) => {
      hasBegun = true;
      incoming.on('error', () => undefined).resume();
    }).end('x');
    await eventually(() => hasBegun, Boolean);
    second.destroy();
    await eventually(
      () => gate.requests().length,
      (lines) => lines === 2,
    );
    expect(outcomeOf(await post(gate.url))).toEqual(UNKNOWN);
    await sleep(1100);
    expect(outcomeOf(await post(gate.url))).toEqual([409, 'unknown']);
  });

  test.each([409, 500])('of %i that is marked as replayed is final: no retry, nothing unknown', async (status) => {
    const upstream = await startAnswering('reset', [status, { 'Idempotent-Replayed': 'true' }]);
    const gate = await startTidegate(one(upstream.url, 'ttl: 1m', 'attempts: 4'));
    expect(outcomeOf(await post(gate.url))).toEqual([status, undefined]);
    expect(upstream.hits).toHaveLength(2);
  });

  test('of another Tidegate with an unknown outcome leaves the write unresolved', async () => {
    const upstream = await startAnswering([409, { 'Tidegate-Outcome': 'unknown' }], 401);
    const gate = await startTidegate(one(upstream.url, 'ttl: 24h'));
    const answer = await post(gate.url);
    expect(outcomeOf(answer)).toEqual([409, 'unknown']);
    expect(answer.headers.filter((name) => name.toLowerCase() === 'tidegate-outcome')).toHaveLength(1);
    expect(outcomeOf(await post(gate.url))).toEqual(UNKNOWN);
  });
});

describe('without a credential', () => {
  test.each([
    ['[ip]', 'X-Other', 'from another address is the same write', [409, undefined]],
    ['["header:x-client"]', 'X-Client', 'of another client that a header names is another', [201, undefined]],
  ])('clients.key %s: a request with %s and another body %s', async (key, header, _, expected) => {
    const upstream = await startAnswering(201, 201);
    const clients = `clients: {trustedProxies: [127.0.0.1], key: ${key}}\n`;
    const gate = await startTidegate(`${clients}${one(upstream.url, 'ttl: 1s')}`);
    const from = (n: number) => [...KEY, 'X-Forwarded-For', `10.0.0.${n}`, header, String(n)];
    expect(outcomeOf(await post(gate.url, from(1), 'one'))).toEqual([201, undefined]);
    await sleep(1100);
    expect(outcomeOf(await post(gate.url, from(2), 'two'))).toEqual(expected);
  });
});

describe('an upload', () => {
  test('still running when its key expires is cut, and reported as unknown', async () => {
    const upstream = await startAnswering(200);
    const gate = await startTidegate(one(upstream.url, 'ttl: 4s')); // in which the upload has to begin on a busy machine
    const body = 'x'.repeat(100_000);
    expect((await post(gate.url, KEY, body)).status).toBe(200);
    const outcome = new Promise((resolve) => {
      const headers = [...KEY, 'Content-Length', String(body.length)];
      const upload = begin(gate.url, '/charges', { method: 'POST', headers }, (incoming) => {
        incoming.resume();
        resolve([incoming.statusCode, incoming.headers['tidegate-outcome']]);
      });
      upload.on('error', () => undefined).write(body.slice(0, 90_000));
    });
    expect(await outcome).toEqual(UNKNOWN);
    expect(upstream.hits).toHaveLength(1);
  });

  test('that stalls is unknown: the upstream may act on a part of it', async () => {
    const upstream = await listen((request) => {
      request.on('error', () => undefined).resume();
    });
    const gate = await startTidegate(`limits: {bodyIdle: 300ms}\n${one(upstream.url, 'ttl: 1s')}`);
    const outcome = new Promise((resolve) => {
      const headers = [...KEY, 'Content-Length', '200000'];
      const upload = begin(gate.url, '/charges', { method: 'POST', headers }, (incoming) => {
        incoming.resume();
        resolve([incoming.statusCode, incoming.headers['tidegate-outcome']]);
      });
      upload.on('error', () => undefined).write(Buffer.alloc(150_000));
    });
    expect(await outcome).toEqual(UNKNOWN);
    expect(await gate.metric('tidegate_bound_used_ratio{bound="unsettled_keys"}')).toBeGreaterThan(0);
  });
});

test('reads the key in a short body before a rejection, and in no other body', async () => {
  const open: (() => void)[] = [];
  const upstream = await startHttpUpstream((_, response) => open.push(() => response.end('paid')));
  const gate = await startTidegate(`limits: {requests: 1}\n${one(upstream.url, 'jsonField: key')}`);
  const json = (body: unknown) => post(gate.url, ['Content-Type', 'application/json'], JSON.stringify(body));
  const first = json({ key: 'a' });
  await eventually(() => open.length, Boolean);
  const other = await json({ key: 'b' });
  expect([...outcomeOf(other), other.header('retry-after') === undefined]).toEqual([503, undefined, false]);
  expect(outcomeOf(await json({ amount: 1 }))).toEqual([503, undefined]);
  expect(outcomeOf(await json({ key: 'a' }))).toEqual(UNKNOWN);
  open[0]?.();
  expect((await first).status).toBe(200);
});

test('starts no second attempt of a write that cannot be answered in time', async () => {
  const upstream = await startHttpUpstream((n, response) => {
    if (n <= 10) setTimeout(() => response.end('paid'), 1500);
    else if (n === 11) setTimeout(() => response.writeHead(503).end(), 2000);
    else response.end('late');
  });
  const gate = await startTidegate(one(upstream.url, 'ttl: 24h', 'attempts: 2', ', timeout: 3s'));
  const known = Array.from({ length: 10 }, (_, i) => post(gate.url, ['Idempotency-Key', `known-${i}`]));
  for (const answer of await Promise.all(known)) expect(answer.status).toBe(200);
  expect(outcomeOf(await post(gate.url))).toEqual([503, undefined]);
  expect(upstream.hits).toHaveLength(11);
});

describe('the age of a key', () => {
  test('counts against the shortest lifetime of a path with doubled slashes', async () => {
    const upstream = await startAnswering(201);
    const gate = await startTidegate(one(upstream.url, 'ttl: [{path: /v1/charges, ttl: 1s}]'));
    expect((await post(gate.url, KEY, 'x', '/v1//charges')).status).toBe(201);
    await sleep(1100);
    expect((await post(gate.url, KEY, 'x', '/v1//charges')).status).toBe(409);
  });

  test('counts from the first attempt that was sent', async () => {
    const server = createServer((_, response) => response.writeHead(201).end());
    const { port } = await openServer(server, 0);
    await closeServer(server);
    const api = one(
      `http://127.0.0.1:${port}`,
      'ttl: 3s',
      'attempts: 40, budget: {burst: 100}',
      ', timeout: 10s',
    ).replace('1ms', '100ms');
    const gate = await startTidegate(api);
    const first = post(gate.url);
    await sleep(1500);
    await openServer(server, port);
    onTestFinished(() => closeServer(server));
    expect((await first).status).toBe(201);
    await sleep(2000);
    expect((await post(gate.url)).status).toBe(201);
  });
});

test('forwards a lock at once in response to a repeat of an answered write', async () => {
  const upstream = await startAnswering(201, 409);
  const gate = await startTidegate(one(upstream.url, 'ttl: 24h', 'attempts: 4, retryOn: [lock]'));
  expect(outcomeOf(await post(gate.url))).toEqual([201, undefined]);
  expect(outcomeOf(await post(gate.url))).toEqual([409, undefined]);
  expect(upstream.hits).toHaveLength(2);
});

test('resolves earlier attempts by a 402, for later requests too', async () => {
  const declined = [402, { 'Stripe-Should-Retry': 'true' }] as const;
  const upstream = await startAnswering('reset', declined, 503, 401);
  const gate = await startTidegate(
    one(upstream.url, 'ttl: 24h', 'attempts: 3').replace('{url', '{provider: stripe, url'),
  );
  expect(outcomeOf(await post(gate.url))).toEqual([503, undefined]);
  expect(outcomeOf(await post(gate.url))).toEqual([401, undefined]);
});

test('does not reduce the retries of other writes by the time of a slow upload', async () => {
  const upstream = await startHttpUpstream((n, response) => {
    if (n === 4) response.destroy();
    else response.writeHead(201).end();
  });
  const retry = 'attempts: 2, minAttemptTime: 100ms, replayLimit: 8B';
  const gate = await startTidegate(one(upstream.url, 'ttl: 24h', retry, ', timeout: 2s'));
  const uploads = ['a', 'b', 'c'].map((key) => {
    const headers = ['Idempotency-Key', key];
    return begin(
      gate.url,
      '/charges',
      { method: 'POST', headers, chunked: true },
      (incoming) => void incoming.resume(),
    );
  });
  for (let i = 0; i < 24; i += 1) {
    for (const upload of uploads) upload.write('a piece of it');
    await sleep(100);
  }
  for (const upload of uploads) upload.end();
  await eventually(
    () => upstream.hits.length,
    (hits) => hits === 3,
  );
  expect((await post(gate.url)).status).toBe(201);
});

test('sets no timer that is too long for the upload of a key that is remembered for 30 days', async () => {
  const upstream = await startAnswering('reset', 201);
  const gate = await startTidegate(one(upstream.url, 'ttl: 30d', 'attempts: 1, replayLimit: 8B'));
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const body = 'longer than 8 bytes';
  expect(outcomeOf(await post(gate.url, KEY, body))).toEqual(UNKNOWN);
  expect(outcomeOf(await post(gate.url, KEY, body))).toEqual([201, undefined]);
  expect(warnings).toEqual([]);
});
