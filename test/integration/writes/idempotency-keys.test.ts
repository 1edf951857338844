/** Keys in headers and bodies, generated, in use, expired: over sockets, and as the upstream receives them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import type { Hit } from '../../support/upstreams/http-upstream.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { sendHttp2, openHttp2 } from '../../support/clients/http2-client.ts';
import { send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const FAST = 'backOff: {strategy: fixed, baseInterval: 1ms}';
const keys = (event: string) => `tidegate_idempotency_keys_total{upstream="api",event="${event}"}`;

function keyOf({ headers }: Hit, name = 'idempotency-key'): string[] {
  return headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === name);
}

/** Breaks the first connection after reading the request, and answers all others. */
function breaksFirst() {
  return startHttpUpstream((n, response) => (n === 1 ? response.destroy() : response.end('paid')));
}

function post(url: string, { headers = [], body = 'x', ...rest }: Parameters<typeof send>[2] = {}) {
  return send(url, '/charges', { method: 'POST', headers, body, ...rest });
}

const JSON_TYPE = ['Content-Type', 'application/json'];

describe('a key in the body', () => {
  const config = (url: string, more = '') => `
upstreams: {api: {url: "${url}", retry: {${FAST}}, idempotency: {header: false, jsonField: idempotency_key${more}}}}
`;

  test('makes a write safe to repeat, and is forwarded byte for byte', async () => {
    const upstream = await breaksFirst();
    const gate = await startTidegate(config(upstream.url));
    const body = '{ "amount" : 1.0, "idempotency_key":"k\\u002d1" }\n';
    const answer = await post(gate.url, { headers: JSON_TYPE, body });
    expect([answer.status, answer.header('tidegate-attempts')]).toEqual([200, '2']);
    expect(upstream.hits.map((hit) => hit.body.toString())).toEqual([body, body]);
  });

  test.each([
    ['its type is not JSON', ['Content-Type', 'text/plain'], '{"idempotency_key":"k"}'],
    ['it has no type', [], '{"idempotency_key":"k"}'],
    ['it is declared as compressed', [...JSON_TYPE, 'Content-Encoding', 'gzip'], '{"idempotency_key":"k"}'],
    ['it is declared as not UTF-8', ['Content-Type', 'application/json; charset=utf-16'], '{"idempotency_key":"k"}'],
    ['it has two types', [...JSON_TYPE, 'Content-Type', 'text/plain'], '{"idempotency_key":"k"}'],
    ['it has the key twice', JSON_TYPE, '{"idempotency_key":"k","idempotency_key":"l"}'],
    ['it breaks off', JSON_TYPE, '{"idempotency_key":"k"'],
    ['the key is in a header that the upstream does not know', ['Idempotency-Key', 'k'], '{}'],
  ])('is not found where %s: sent once, and unknown', async (_, headers, body) => {
    const upstream = await breaksFirst();
    const gate = await startTidegate(config(upstream.url));
    const answer = await post(gate.url, { headers, body });
    expect([answer.status, answer.header('tidegate-outcome')]).toEqual([504, 'unknown']);
    expect(upstream.hits).toHaveLength(1);
  });

  test.each([
    ['in chunks', { chunked: true }, 'application/json'],
    ['in another JSON type', {}, 'application/vnd.api+json; charset="UTF-8"'],
  ])('is found %s', async (_, how, type) => {
    const upstream = await breaksFirst();
    const gate = await startTidegate(config(upstream.url));
    const headers = ['Content-Type', type];
    const answer = await post(gate.url, { headers, body: '{"idempotency_key":"k"}', ...how });
    expect(answer.status).toBe(200);
    expect(upstream.hits).toHaveLength(2);
  });

  test('beyond the retained part is not found', async () => {
    const upstream = await breaksFirst();
    const gate = await startTidegate(config(upstream.url).replace('retry: {', 'retry: {replayLimit: 1KiB, '));
    const body = `{"idempotency_key":"k","filler":"${'x'.repeat(1024)}"}`;
    for (const how of [{}, { chunked: true }]) {
      await post(gate.url, { headers: JSON_TYPE, body, ...how });
    }
    expect(upstream.hits).toHaveLength(2);
  });

  test('is read before any decision, even if the client waits for a 100', async () => {
    const upstream = await breaksFirst();
    const gate = await startTidegate(config(upstream.url));
    const headers = [...JSON_TYPE, 'Expect', '100-continue'];
    const answer = await post(gate.url, { headers, body: '{"idempotency_key":"k"}' });
    expect([answer.status, upstream.hits.length]).toEqual([200, 2]);
  });

  test('takes precedence over a header where only the field is configured', async () => {
    const upstream = await breaksFirst();
    const gate = await startTidegate(config(upstream.url).replace('header: false, ', ''));
    const answer = await post(gate.url, { headers: [...JSON_TYPE, 'Idempotency-Key', 'k'], body: '{"amount":1}' });
    expect([answer.status, answer.header('tidegate-outcome')]).toEqual([504, 'unknown']);
    expect(upstream.hits).toHaveLength(1);
  });

  test.each([
    ['the field has a key', '{"idempotency_key":"k"}', [], 1],
    ['the field has a key, and the client waits for a 100', '{"idempotency_key":"k"}', ['Expect', '100-continue'], 1],
    ['the field has none', '{"amount":1}', [], 2],
  ])('where a header is configured too, and %s', async (_, body, more, atOnce) => {
    const open: (() => void)[] = [];
    const upstream = await startHttpUpstream((_n, response) => open.push(() => response.end('paid')));
    const gate = await startTidegate(config(upstream.url, ', concurrent: refuse').replace('false', 'X-Key'));
    const first = post(gate.url, { headers: [...JSON_TYPE, ...more, 'X-Key', 'a'], body });
    await eventually(
      () => open.length,
      (count) => count === 1,
    );
    const second = post(gate.url, { headers: [...JSON_TYPE, ...more, 'X-Key', 'b'], body });
    if (atOnce === 1) expect((await second).json()).toMatchObject({ reason: 'key_in_use' });
    await eventually(
      () => open.length,
      (count) => count === atOnce,
    );
    for (const answer of open) answer();
    expect((await first).status).toBe(200);
    expect((await second).status).toBe(atOnce === 1 ? 409 : 200);
  });

  test('over HTTP/2', async () => {
    const upstream = await breaksFirst();
    const { issue, read, path, remove } = makeCertificates();
    onTestFinished(remove);
    issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
    const listen = `listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}`;
    const gate = await startTidegate(`${listen}\n${config(upstream.url)}`);
    const session = await openHttp2(gate.url, read('ca.crt'));
    const headers = { ':method': 'POST', 'content-type': 'application/json' };
    const answer = await sendHttp2(session, '/charges', headers, '{"idempotency_key":"k"}');
    expect([answer.status, upstream.hits.length]).toEqual([200, 2]);
  });
});

describe('a generated key', () => {
  const config = (url: string, more = '') =>
    `upstreams: {api: {url: "${url}", retry: {${FAST}}, idempotency: {generate: true${more}}}}`;

  test('is the same for all attempts, differs per request, and is sent to client, log and explanation', async () => {
    const upstream = await breaksFirst();
    const gate = await startTidegate(config(upstream.url));
    const [first, second] = [await post(gate.url), await post(gate.url)];
    const [minted, again, other] = upstream.hits.map((hit) => keyOf(hit));
    expect(minted).toEqual([expect.stringMatching(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)]);
    expect(again).toEqual(minted);
    expect(other).not.toEqual(minted);
    expect([first.header('tidegate-idempotency-key'), second.header('tidegate-idempotency-key')]).toEqual([
      minted?.[0],
      other?.[0],
    ]);
    expect(first.status).toBe(200);
    expect(gate.requests().map(({ mintedKey }) => mintedKey)).toEqual([minted?.[0], other?.[0]]);
    const explanation = gate.explanations?.find(first.header('tidegate-request-id') ?? '');
    expect(explanation?.steps[0]?.text).toContain(`; idempotency key: minted here: ${minted?.[0]}`);
    expect(await gate.metric(keys('minted'))).toBe(2);
  });

  test('is sent with proxy errors too, so that an unknown write can be repeated with it', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.destroy());
    const gate = await startTidegate(config(upstream.url));
    const answer = await post(gate.url);
    expect([answer.status, answer.header('tidegate-outcome')]).toEqual([504, 'unknown']);
    expect(upstream.hits.flatMap((hit) => keyOf(hit))).toEqual(
      Array.from({ length: 4 }, () => answer.header('tidegate-idempotency-key')),
    );
  });

  test.each([
    ['POST', ['Idempotency-Key', 'own'], ['own']],
    ['POST', ['idempotency_key', 'own'], []],
    ['PUT', [], []],
    ['DELETE', [], []],
    ['GET', [], []],
  ])('is not generated for %s with %j', async (method, headers, sent) => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(config(upstream.url));
    const answer = await send(gate.url, '/', { method, headers });
    expect(upstream.hits.map((hit) => keyOf(hit))).toEqual([sent]);
    expect(answer.header('tidegate-idempotency-key')).toBeUndefined();
    expect(gate.requests()).not.toMatchObject([{ mintedKey: expect.anything() as unknown }]);
  });

  test.each([
    ['empty', ['Idempotency-Key', '']],
    ['hop-by-hop', ['Idempotency-Key', 'mine', 'Connection', 'Idempotency-Key']],
  ])('replaces one that is %s', async (_, headers) => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(config(upstream.url));
    const answer = await post(gate.url, { headers });
    expect(upstream.hits.flatMap((hit) => keyOf(hit))).toEqual([answer.header('tidegate-idempotency-key')]);
  });

  test('uses the header that the upstream knows, and not in observe mode', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const named = config(upstream.url, ', header: X-Payout-Idempotency');
    const gate = await startTidegate(named);
    await post(gate.url);
    expect(upstream.hits[0]?.headers).toContain('X-Payout-Idempotency');
    await gate.rewrite(`mode: observe\n${named}`);
    await post(gate.url);
    expect(upstream.hits[1]?.headers).not.toContain('X-Payout-Idempotency');
  });
});

describe('a key in use by another request', () => {
  /** Answers when the test does so. */
  async function slow() {
    const open: (() => void)[] = [];
    let most = 0;
    let under = 0;
    const upstream = await startHttpUpstream((n, response) => {
      under += 1;
      most = Math.max(most, under);
      open.push(() => {
        under -= 1;
        response.end(`answer ${n}`);
      });
    });
    return { upstream, open, most: () => most };
  }
  const config = (url: string, concurrent: string, more = '') =>
    `upstreams: {api: {url: "${url}", timeout: 2s, perTryTimeout: 2s, retry: {${FAST}}, idempotency: {concurrent: ${concurrent}}${more}}}`;
  const KEY = ['Idempotency-Key', 'order-1', 'Authorization', 'Bearer a'];

  test('waits for it, and is sent afterwards, in order', async () => {
    const { upstream, open, most } = await slow();
    const gate = await startTidegate(config(upstream.url, 'wait'));
    const first = post(gate.url, { headers: KEY });
    await eventually(
      () => open.length,
      (count) => count === 1,
    );
    const second = post(gate.url, { headers: KEY });
    await sleep(50);
    const third = post(gate.url, { headers: KEY });
    await sleep(50);
    expect([upstream.hits.length, await gate.metric('tidegate_bound_used_ratio{bound="key_waits"}')]).toEqual([
      1, 0.002,
    ]);
    const answers: string[] = [];
    for (const [i, answer] of [first, second, third].entries()) {
      await eventually(
        () => open.length,
        (count) => count === i + 1,
      );
      open[i]?.();
      answers.push((await answer).body.toString());
    }
    expect(answers).toEqual(['answer 1', 'answer 2', 'answer 3']);
    expect([most(), await gate.metric(keys('awaited'))]).toEqual([1, 2]);
    const explanation = gate.explanations?.find((await second).header('tidegate-request-id') ?? '');
    expect(explanation?.steps.find(({ what }) => what === 'claimed')?.text).toMatch(
      /^waited .+ for another request with its idempotency key$/,
    );
  });

  test('is rejected with 409 by refuse, and not sent', async () => {
    const { upstream, open } = await slow();
    const gate = await startTidegate(config(upstream.url, 'refuse'));
    const first = post(gate.url, { headers: KEY });
    await eventually(
      () => open.length,
      (count) => count === 1,
    );
    const second = await post(gate.url, { headers: KEY });
    expect(second.status).toBe(409);
    expect(second.json()).toMatchObject({ reason: 'key_in_use', error: { type: 'idempotency_error' } });
    expect(second.header('tidegate-outcome')).toBeUndefined();
    expect(Number(second.header('retry-after'))).toBeGreaterThanOrEqual(1);
    open[0]?.();
    expect((await first).status).toBe(200);
    const third = post(gate.url, { headers: KEY });
    await eventually(
      () => open.length,
      (count) => count === 2,
    );
    open[1]?.();
    expect((await third).status).toBe(200);
    expect([upstream.hits.length, await gate.metric(keys('key_in_use'))]).toEqual([2, 1]);
    expect(gate.requests()).toMatchObject([{ outcome: 'refused', reason: 'key_in_use', status: 409 }, {}, {}]);
  });

  test('is sent concurrently by pass', async () => {
    const { upstream, open } = await slow();
    const gate = await startTidegate(config(upstream.url, 'pass'));
    const both = [post(gate.url, { headers: KEY }), post(gate.url, { headers: KEY })];
    await eventually(
      () => open.length,
      (count) => count === 2,
    );
    for (const answer of open) answer();
    expect((await Promise.all(both)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test('waits for no other account, path or method, and for no unkeyed request', async () => {
    const { upstream, open } = await slow();
    const gate = await startTidegate(config(upstream.url, 'refuse'));
    const body = 'x';
    const all = [
      post(gate.url, { headers: KEY }),
      // With the same body it could be the same write, with a refreshed token.
      post(gate.url, { headers: ['Idempotency-Key', 'order-1', 'Authorization', 'Bearer b'], body: 'y' }),
      post(gate.url, { headers: ['Idempotency-Key', 'order-2', 'Authorization', 'Bearer a'] }),
      send(gate.url, '/refunds', { method: 'POST', headers: KEY, body }),
      send(gate.url, '/charges', { method: 'PATCH', headers: KEY, body }),
      send(gate.url, '/charges', { headers: KEY }),
      send(gate.url, '/charges', { headers: KEY }),
      post(gate.url),
      post(gate.url),
    ];
    await eventually(
      () => open.length,
      (count) => count === all.length,
    );
    for (const answer of open) answer();
    expect(new Set((await Promise.all(all)).map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('waits at most for the request’s deadline, then gets 409', async () => {
    const { upstream, open } = await slow();
    const routes = `
routes:
  - {path: /, upstream: api}
  - {path: /, host: hasty.test, upstream: api, timeout: 200ms, perTryTimeout: 200ms}
`;
    const gate = await startTidegate(`${config(upstream.url, 'wait')}${routes}`);
    const first = post(gate.url, { headers: KEY });
    await eventually(
      () => open.length,
      (count) => count === 1,
    );
    const second = await post(gate.url, { headers: ['Host', 'hasty.test', ...KEY] });
    expect(second.status).toBe(409);
    expect(second.json()).toMatchObject({ reason: 'key_in_use' });
    open[0]?.();
    await first;
    expect(await gate.metric('tidegate_bound_used_ratio{bound="key_waits"}')).toBe(0);
  });

  test('is removed from the wait when its client disconnects, and others keep waiting', async () => {
    const { upstream, open } = await slow();
    const gate = await startTidegate(config(upstream.url, 'wait'));
    const first = post(gate.url, { headers: KEY });
    await eventually(
      () => open.length,
      (count) => count === 1,
    );
    const waits = async () => (await gate.metric('tidegate_bound_used_ratio{bound="key_waits"}')) > 0;
    await sendAndLeave(gate.url, '/charges', { method: 'POST', headers: KEY, body: 'x' }, waits);
    const third = post(gate.url, { headers: KEY });
    await eventually(
      () => gate.requests().length,
      (count) => count === 1,
    );
    expect(gate.requests()).toMatchObject([{ outcome: 'client_gone', attempts: 0 }]);
    open[0]?.();
    await first;
    await eventually(
      () => open.length,
      (count) => count === 2,
    );
    open[1]?.();
    expect((await third).body.toString()).toBe('answer 2');
  });

  test('uses none of the limit while it waits, and stays in use during a retry’s backoff', async () => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 1) response.writeHead(503, ['Retry-After', '1']).end();
      else response.end(`answer ${n}`);
    });
    const gate = await startTidegate(config(upstream.url, 'wait', ', connections: 1, rateLimit: {initialRate: 100/s}'));
    const first = post(gate.url, { headers: KEY });
    await eventually(
      () => upstream.hits.length,
      (count) => count === 1,
    );
    const second = post(gate.url, { headers: KEY });
    await sleep(50);
    expect((await post(gate.url, { headers: ['Idempotency-Key', 'other'] })).body.toString()).toBe('answer 2');
    expect([(await first).body.toString(), (await second).body.toString()]).toEqual(['answer 3', 'answer 4']);
  });

  test('gets an error when the proxy drains while it waits', async () => {
    const { upstream, open } = await slow();
    const gate = await startTidegate(`drain: {delay: 0, timeout: 300ms}\n${config(upstream.url, 'wait')}`);
    const first = post(gate.url, { headers: KEY }).catch(() => undefined);
    await eventually(
      () => open.length,
      (count) => count === 1,
    );
    const second = post(gate.url, { headers: KEY });
    await sleep(50);
    await gate.drain();
    // Its write is in progress: it may have taken effect.
    expect((await second).json()).toMatchObject({ status: 504, reason: 'draining', outcome: 'unknown' });
    await first;
    expect(upstream.hits).toHaveLength(1);
  });

  test('waits for its own write that is completed after a disconnect', async () => {
    const { upstream, open } = await slow();
    const gate = await startTidegate(
      config(upstream.url, 'wait').replace('retry: {', 'retry: {onClientGone: finish, '),
    );
    await sendAndLeave(gate.url, '/charges', { method: 'POST', headers: KEY, body: 'x' }, () => open.length === 1);
    const again = post(gate.url, { headers: KEY });
    await sleep(100);
    expect(upstream.hits).toHaveLength(1);
    open[0]?.();
    await eventually(
      () => open.length,
      (count) => count === 2,
    );
    open[1]?.();
    expect((await again).body.toString()).toBe('answer 2');
  });
});

describe('a key with an unresolved write', () => {
  const KEY = ['Idempotency-Key', 'order-1'];
  const config = (url: string, more = '') => `upstreams: {api: {url: "${url}", retry: {attempts: 1, ${FAST}}${more}}}`;

  test.each(['', ', idempotency: {ttl: 24h}', ', idempotency: {concurrent: pass}'])(
    'is reported as unknown at each repeat, until it is answered%s',
    async (more) => {
      const upstream = await startHttpUpstream((n, response) => {
        if (n === 1) response.destroy();
        else if (n === 2) response.writeHead(429).end();
        else if (n === 3) response.writeHead(429, ['Retry-After', '1']).end();
        else response.end('paid');
      });
      const gate = await startTidegate(config(upstream.url, more));
      const repeats = [];
      for (let i = 0; i < 3; i += 1) repeats.push(await post(gate.url, { headers: KEY }));
      expect(repeats.map(({ status, header }) => [status, header('tidegate-outcome')])).toEqual(
        Array.from({ length: 3 }, () => [504, 'unknown']),
      );
      const paid = await eventually(
        () => post(gate.url, { headers: KEY }),
        ({ status, header }) => status === 200 || header('tidegate-outcome') !== 'unknown',
      );
      expect([paid.status, paid.header('tidegate-outcome')]).toEqual([200, undefined]);
    },
  );

  test('is retried until the upstream finishes it after its client disconnected', async () => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 2) response.writeHead(409).end();
      else if (n > 2) response.end('paid');
    });
    const gate = await startTidegate(config(upstream.url).replace('attempts: 1', 'attempts: 3'));
    const isThere = () => upstream.hits.length === 1;
    await sendAndLeave(gate.url, '/charges', { method: 'POST', headers: KEY, body: 'x' }, isThere);
    const again = await post(gate.url, { headers: KEY });
    expect([again.status, again.header('tidegate-attempts')]).toEqual([200, '2']);
  });
});

describe('the lifetime of a key', () => {
  const KEY = ['Idempotency-Key', 'order-1'];
  const config = (url: string, ttl: string, retry: string) =>
    `upstreams: {api: {url: "${url}", retry: {${retry}}, idempotency: {ttl: ${ttl}}}}`;

  test('prevents a retry that would start after it', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.writeHead(503, ['Retry-After', '2']).end());
    const gate = await startTidegate(config(upstream.url, '1s', FAST));
    const answer = await post(gate.url, { headers: KEY });
    expect([answer.status, upstream.hits.length]).toEqual([503, 1]);
    expect(await gate.metric('tidegate_retry_outcomes_total{upstream="api",outcome="key_expired"}')).toBe(1);
    const explanation = gate.explanations?.find(answer.header('tidegate-request-id') ?? '');
    expect(explanation?.verdict).toContain('the upstream would have forgotten its idempotency key by then');
  });

  test('rejects a later repeat of an unknown write, which may take effect a second time', async () => {
    const upstream = await startHttpUpstream((n, response) => (n <= 2 ? response.destroy() : response.end('anew')));
    const gate = await startTidegate(config(upstream.url, '[{path: /charges, ttl: 1s}]', `attempts: 1, ${FAST}`));
    const first = await post(gate.url, { headers: KEY });
    expect([first.status, first.header('tidegate-outcome')]).toEqual([504, 'unknown']);
    // Within its lifetime a repeat is safe, and is sent.
    expect((await post(gate.url, { headers: KEY })).status).toBe(504);
    expect(upstream.hits).toHaveLength(2);
    await sleep(1100);
    const late = await post(gate.url, { headers: KEY });
    expect([late.status, late.header('tidegate-outcome'), late.header('retry-after')]).toEqual([
      409,
      'unknown',
      undefined,
    ]);
    expect(late.json()).toMatchObject({ reason: 'key_expired', outcome: 'unknown' });
    expect(upstream.hits).toHaveLength(2);
    expect(await gate.metric(keys('key_expired'))).toBe(1);
    expect(gate.requests().at(-1)).toMatchObject({ outcome: 'unknown', reason: 'key_expired', attempts: 0 });
    // Another key, another path, another account: other writes.
    expect((await post(gate.url, { headers: ['Idempotency-Key', 'order-2'] })).status).toBe(200);
    expect((await send(gate.url, '/refunds', { method: 'POST', headers: KEY, body: 'x' })).status).toBe(200);
    expect((await post(gate.url, { headers: [...KEY, 'Authorization', 'Bearer b'] })).status).toBe(200);
  });

  test('resolves what the upstream has answered', async () => {
    const upstream = await startHttpUpstream((n, response) => (n === 1 ? response.destroy() : response.end('paid')));
    const gate = await startTidegate(config(upstream.url, '1s', `attempts: 1, ${FAST}`));
    expect((await post(gate.url, { headers: KEY })).status).toBe(504);
    expect(await gate.metric('tidegate_bound_used_ratio{bound="unsettled_keys"}')).toBeGreaterThan(0);
    expect((await post(gate.url, { headers: KEY })).body.toString()).toBe('paid');
    expect(await gate.metric('tidegate_bound_used_ratio{bound="unsettled_keys"}')).toBe(0);
    await sleep(1100);
    const late = await post(gate.url, { headers: KEY });
    expect([late.status, late.header('tidegate-outcome')]).toEqual([409, undefined]);
  });

  test('rejects a later repeat of an answered write, which would take effect a second time', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end('paid'));
    const gate = await startTidegate(config(upstream.url, '1s', FAST));
    expect((await post(gate.url, { headers: KEY })).status).toBe(200);
    expect((await post(gate.url, { headers: KEY })).status).toBe(200);
    await sleep(1100);
    const late = await post(gate.url, { headers: KEY });
    expect([late.status, late.header('tidegate-outcome'), late.header('retry-after')]).toEqual([
      409,
      undefined,
      undefined,
    ]);
    expect(late.json()).toMatchObject({ reason: 'key_expired' });
    expect([upstream.hits.length, await gate.metric(keys('key_expired'))]).toEqual([2, 1]);
    expect(gate.requests().at(-1)).toMatchObject({ outcome: 'refused', reason: 'key_expired', attempts: 0 });
  });

  test.each([400, 401, 404, 422, 429])(
    'allows a repeat at any time after a %i, which had no effect',
    async (status) => {
      const upstream = await startHttpUpstream((n, response) => response.writeHead(n === 1 ? status : 200).end());
      const gate = await startTidegate(config(upstream.url, '50ms', `attempts: 1, ${FAST}`));
      expect((await post(gate.url, { headers: KEY })).status).toBe(status);
      await sleep(100);
      expect((await post(gate.url, { headers: KEY })).status).toBe(200);
    },
  );

  test.each(['a 429', 'a 409'])('leaves an unresolved write unresolved after %s', async (what) => {
    const status = what === 'a 429' ? 429 : 409;
    const upstream = await startHttpUpstream((n, response) =>
      n === 1 ? response.destroy() : response.writeHead(status).end(),
    );
    const gate = await startTidegate(config(upstream.url, '1s', `attempts: 1, ${FAST}`));
    await post(gate.url, { headers: KEY });
    await sleep(20);
    await post(gate.url, { headers: KEY });
    expect(await gate.metric('tidegate_bound_used_ratio{bound="unsettled_keys"}')).toBeGreaterThan(0);
  });

  test('keeps a write unresolved if its client did not wait for the response, or did not get it in full', async () => {
    const upstream = await startHttpUpstream((_n, response, { headers }) => {
      if (!headers.includes('cut')) return;
      response.writeHead(200, ['Content-Length', '10']).write('half', () => response.destroy());
    });
    const gate = await startTidegate(config(upstream.url, '24h', FAST));
    const used = () => gate.metric('tidegate_bound_used_ratio{bound="unsettled_keys"}');
    const isThere = () => upstream.hits.length === 1;
    await sendAndLeave(gate.url, '/charges', { method: 'POST', headers: KEY, body: 'x' }, isThere);
    await eventually(used, (share) => Math.round(20_000 * share) === 1);
    await expect(post(gate.url, { headers: ['Idempotency-Key', 'cut'] })).rejects.toThrow();
    await eventually(used, (share) => Math.round(20_000 * share) === 2);
  });

  test('survives a reload', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.destroy());
    const gate = await startTidegate(config(upstream.url, '24h', `attempts: 1, ${FAST}`));
    await post(gate.url, { headers: KEY });
    await sleep(30);
    const result = await gate.rewrite(config(upstream.url, '20ms', `attempts: 1, ${FAST}`));
    expect(result.kind).toBe('applied');
    expect((await post(gate.url, { headers: KEY })).json()).toMatchObject({ reason: 'key_expired' });
  });
});
