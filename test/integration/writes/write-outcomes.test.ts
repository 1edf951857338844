/** What a client learns about its write, over sockets: a response about its own attempt does not cover earlier ones. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { begin, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const FAST = 'backOff: {strategy: fixed, baseInterval: 1ms}';
const KEY = ['Idempotency-Key', 'order-1'];

/** Of the tests that wait for the end of a lifetime. */
const SHORT = 'ttl: 1s';

function config(url: string, idempotency = 'ttl: 1m', more = '') {
  return `upstreams: {api: {url: "${url}", retry: {attempts: 2, ${FAST}}, idempotency: {${idempotency}}${more}}}\n`;
}

function post(url: string, headers: readonly string[] = KEY, body = 'x') {
  return send(url, '/charges', { method: 'POST', headers, body });
}

const outcomeOf = (answer: Awaited<ReturnType<typeof send>>) => [answer.status, answer.header('tidegate-outcome')];
const UNKNOWN = [504, 'unknown'];

const REJECTIONS = [303, 307, 400, 401, 403, 404, 405, 407, 408, 413, 415, 421, 422, 425, 431];

describe('a rejection after an attempt that may have taken effect', () => {
  // All wait for the end of a lifetime together. Each has an upstream, a route and a limit of its own.
  test(`${REJECTIONS.join(', ')}: is unknown, and the key stays unresolved`, async () => {
    const upstreams = await Promise.all(
      REJECTIONS.map((status) =>
        startHttpUpstream((n, response) => {
          if (n === 1) response.destroy();
          else response.writeHead(status).end('no');
        }),
      ),
    );
    const more = `retry: {attempts: 2, ${FAST}}, idempotency: {ttl: 5s}`;
    const named = upstreams.map(({ url }, i) => `s${REJECTIONS[i]}: {url: "${url}", ${more}}`);
    const routes = REJECTIONS.map((status) => `{path: /${status}, upstream: s${status}}`);
    const gate = await startTidegate(`upstreams: {${named.join(', ')}}\nroutes: [${routes.join(', ')}]\n`);
    const postAll = async () => {
      const answers = [];
      for (const status of REJECTIONS) {
        answers.push(await send(gate.url, `/${status}/charges`, { method: 'POST', headers: KEY, body: 'x' }));
      }
      return answers;
    };
    const expectEach = (seen: readonly unknown[], expected: unknown) =>
      expect(REJECTIONS.map((status, i) => [status, seen[i]])).toEqual(REJECTIONS.map((status) => [status, expected]));
    const answers = await postAll();
    expectEach(answers.map(outcomeOf), UNKNOWN);
    expectEach(
      answers.map((answer) => answer.json()),
      expect.objectContaining({ outcome: 'unknown', reason: 'rejected' }),
    );
    // In a later request too; and once the upstream has forgotten the key, nothing is sent.
    expectEach((await postAll()).map(outcomeOf), UNKNOWN);
    await sleep(5100);
    const lengths = upstreams.map(({ hits }) => hits.length);
    const late = await postAll();
    expectEach(
      late.map((answer) => [...outcomeOf(answer), answer.json().reason]),
      [409, 'unknown', 'key_expired'],
    );
    expect(upstreams.map(({ hits }) => hits.length)).toEqual(lengths);
  });

  test.each([200, 201, 402])('%i resolves the write', async (status) => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 1) response.destroy();
      else response.writeHead(status).end('said');
    });
    const gate = await startTidegate(config(upstream.url));
    expect(outcomeOf(await post(gate.url))).toEqual([status, undefined]);
    expect(await gate.metric('tidegate_bound_used_ratio{bound="unsettled_keys"}')).toBe(0);
  });

  test.each([
    ['', [400, undefined]],
    [', replayedHeader: false', UNKNOWN],
    [', replayedHeader: X-Replay', UNKNOWN],
  ])('resolves the write if it is marked as replayed, whatever its status (ttl: 1m%s)', async (more, expected) => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 1) response.destroy();
      else response.writeHead(400, { 'Idempotent-Replayed': 'true' }).end('declined before');
    });
    const gate = await startTidegate(config(upstream.url, `ttl: 1m${more}`));
    expect(outcomeOf(await post(gate.url))).toEqual(expected);
  });

  test('leaves nothing unresolved after attempts that had no effect', async () => {
    const upstream = await startHttpUpstream((n, response) => response.writeHead(n === 1 ? 503 : 422).end());
    const gate = await startTidegate(config(upstream.url));
    expect(outcomeOf(await post(gate.url))).toEqual([422, undefined]);
    const again = await post(gate.url);
    expect(outcomeOf(again)).toEqual([422, undefined]);
  });

  test('does not apply to a POST on a path marked safe', async () => {
    const upstream = await startHttpUpstream((_, response) => response.writeHead(500, { 'X-A': 'a' }).end());
    const yaml = `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1, safePaths: [/search]}}}`;
    const gate = await startTidegate(yaml);
    expect(outcomeOf(await send(gate.url, '/search', { method: 'POST', body: 'x' }))).toEqual([500, undefined]);
  });
});

describe('a write that has been answered', () => {
  test.each([201, 402])('by %i: gets a plain 429 from the proxy, and a 409 at once', async (status) => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 1) response.writeHead(status).end('said');
      else if (n === 2) response.writeHead(409).end('in use');
      else response.writeHead(429, { 'Retry-After': '60' }).end();
    });
    const gate = await startTidegate(config(upstream.url, 'ttl: 24h', ', timeout: 2s'));
    expect(outcomeOf(await post(gate.url))).toEqual([status, undefined]);
    expect(outcomeOf(await post(gate.url))).toEqual([409, undefined]);
    expect(upstream.hits).toHaveLength(2);
    expect(outcomeOf(await post(gate.url))).toEqual([429, undefined]);
    const held = await post(gate.url);
    expect([held.status, held.header('tidegate-outcome'), held.json().reason]).toEqual([429, undefined, 'held']);
    expect(upstream.hits).toHaveLength(3);
  });
});

describe('the lifetime of a key', () => {
  test('ends before a late body is sent: it is not sent', async () => {
    const upstream = await startHttpUpstream((_, response) => response.end('paid'));
    const gate = await startTidegate(config(upstream.url, SHORT));
    expect((await post(gate.url)).status).toBe(200);
    let continued = false;
    const answered = new Promise<number>((resolve) => {
      const headers = [...KEY, 'Expect', '100-continue', 'Content-Length', '1'];
      const late = begin(gate.url, '/charges', { method: 'POST', headers }, (incoming) => {
        incoming.resume();
        resolve(incoming.statusCode ?? 0);
      });
      late.on('continue', () => {
        continued = true;
        setTimeout(() => late.end('x'), 1100);
      });
      late.flushHeaders();
    });
    expect([await answered, continued]).toEqual([409, true]);
    expect(upstream.hits).toHaveLength(1);
  });

  test('does not bind PUT and DELETE, which are idempotent', async () => {
    const upstream = await startHttpUpstream((_, response) => response.end('done'));
    const gate = await startTidegate(config(upstream.url, SHORT));
    const ask = (method: string) => send(gate.url, '/charges/1', { method, headers: KEY, body: 'x' });
    for (const method of ['PUT', 'DELETE']) expect((await ask(method)).status).toBe(200);
    await sleep(1100);
    for (const method of ['PUT', 'DELETE']) expect((await ask(method)).status).toBe(200);
    expect(upstream.hits).toHaveLength(4);
  });
});

describe('the identity of a write', () => {
  /** Answers when the test does so. */
  async function slow() {
    const open: (() => void)[] = [];
    const upstream = await startHttpUpstream((_n, response) => open.push(() => response.end('paid')));
    return { upstream, open };
  }

  test.each([
    ['a refreshed token', ['Authorization', 'Bearer one'], ['Authorization', 'Bearer two']],
    [
      'a signature of its own',
      ['Authorization', 'AWS4-HMAC-SHA256 Credential=A/20260101, Signature=1'],
      ['Authorization', 'AWS4-HMAC-SHA256 Credential=A/20260101, Signature=2'],
    ],
  ])('%s: the same', async (_, first, second) => {
    const { upstream, open } = await slow();
    const gate = await startTidegate(config(upstream.url, 'concurrent: refuse'));
    const one = post(gate.url, [...KEY, ...first]);
    await eventually(
      () => open.length,
      (count) => count === 1,
    );
    expect((await post(gate.url, [...KEY, ...second])).json()).toMatchObject({ reason: 'key_in_use' });
    open[0]?.();
    expect((await one).status).toBe(200);
  });

  const assertion = (payer: string, iss: string) =>
    `e30.${Buffer.from(JSON.stringify({ iss, payer_id: payer })).toString('base64url')}.`;

  test.concurrent.each([
    ['another Stripe-Account', ['Stripe-Account', 'acct_1'], ['Stripe-Account', 'acct_2'], 'x'],
    ['another X-Razorpay-Account', ['X-Razorpay-Account', 'acc_1'], ['X-Razorpay-Account', 'acc_2'], 'x'],
    ['no account and one', [], ['Stripe-Account', 'acct_2'], 'x'],
    [
      'another payer in PayPal-Auth-Assertion',
      ['PayPal-Auth-Assertion', assertion('A', 'c')],
      ['PayPal-Auth-Assertion', assertion('B', 'c')],
      'x',
    ],
    ['another credential with another body', ['Authorization', 'Bearer a'], ['Authorization', 'Bearer b'], 'y'],
  ])('%s: another', async (_, first, second, body) => {
    const upstream = await startHttpUpstream((_n, response) => response.end('paid'));
    const gate = await startTidegate(config(upstream.url, SHORT));
    const credential = first[0] === 'Authorization' ? [] : ['Authorization', 'Bearer platform'];
    expect((await post(gate.url, [...KEY, ...credential, ...first])).status).toBe(200);
    await sleep(1100);
    expect((await post(gate.url, [...KEY, ...credential, ...second], body)).status).toBe(200);
    expect(upstream.hits).toHaveLength(2);
  });

  test.concurrent('includes the account in a claim of the bearer token, where configured', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end('paid'));
    const gate = await startTidegate(config(upstream.url, `${SHORT}, account: jwt:sub`));
    const token = (sub: string, jti: number) => {
      const claims = Buffer.from(JSON.stringify({ sub, jti })).toString('base64url');
      return ['Authorization', `Bearer e30.${claims}.sig`];
    };
    expect((await post(gate.url, [...KEY, ...token('a', 1)])).status).toBe(200);
    await sleep(1100);
    expect((await post(gate.url, [...KEY, ...token('b', 2)])).status).toBe(200);
    expect((await post(gate.url, [...KEY, ...token('a', 3)])).status).toBe(409);
  });

  test.each([
    ['two empty lines', ['Idempotency-Key', '', 'Idempotency-Key', '']],
    ['an empty line and a key', ['Idempotency-Key', '', 'Idempotency-Key', 'k']],
    ['a key and an empty line', ['Idempotency-Key', 'k', 'Idempotency-Key', '']],
    ['the same key twice', ['Idempotency-Key', 'k', 'idempotency-key', 'k']],
    ['two keys', ['Idempotency-Key', 'k', 'Idempotency-Key', 'l']],
    ['a key, and one with an underscore', ['Idempotency-Key', 'k', 'Idempotency_Key', 'l']],
    ['one line of blanks', ['Idempotency-Key', '  ']],
  ])('%s: no key, and sent once', async (_, headers) => {
    const upstream = await startHttpUpstream((_n, response) => response.destroy());
    const gate = await startTidegate(config(upstream.url));
    expect(outcomeOf(await post(gate.url, headers))).toEqual(UNKNOWN);
    expect(upstream.hits).toHaveLength(1);
  });

  test('a key is generated only where no line has one', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(config(upstream.url, 'generate: true'));
    const minted = async (headers: readonly string[]) =>
      (await post(gate.url, headers)).header('tidegate-idempotency-key') !== undefined;
    expect(await minted(['Idempotency-Key', '', 'Idempotency-Key', ''])).toBe(true);
    expect(await minted(['Idempotency-Key', '', 'Idempotency-Key', 'k'])).toBe(false);
    expect(await minted(['Idempotency_Key', 'k'])).toBe(false);
    const lines = upstream.hits[0]?.headers.filter((name) => name.toLowerCase() === 'idempotency-key');
    expect(lines).toHaveLength(1);
  });
});

describe('a proxy rejection while its write may be in progress', () => {
  async function underWay(yaml: (url: string) => string) {
    const open: (() => void)[] = [];
    const upstream = await startHttpUpstream((_n, response) => open.push(() => response.end('paid')));
    const gate = await startTidegate(yaml(upstream.url));
    const first = post(gate.url).catch(() => undefined);
    await eventually(
      () => open.length,
      (count) => count === 1,
    );
    return { gate, open, first };
  }

  test('for too many requests at a time: is unknown; with another key, a plain 503', async () => {
    const { gate, open, first } = await underWay((url) => `limits: {requests: 1}\n${config(url)}`);
    const same = await post(gate.url);
    expect([...outcomeOf(same), same.json().reason]).toEqual([504, 'unknown', 'too_many_requests']);
    expect(gate.requests().at(-1)).toMatchObject({ outcome: 'unknown', status: 504 });
    expect(outcomeOf(await post(gate.url, ['Idempotency-Key', 'order-2']))).toEqual([503, undefined]);
    expect(outcomeOf(await post(gate.url, []))).toEqual([503, undefined]);
    open[0]?.();
    await first;
  });

  test.each(['wait', 'pass'])('for a body that does not arrive (concurrent: %s): is unknown', async (concurrent) => {
    const { gate, open, first } = await underWay(
      (url) => `limits: {bodyIdle: 200ms}\n${config(url, `concurrent: ${concurrent}`)}`,
    );
    const stalled = await new Promise<[number, string]>((resolve) => {
      const headers = [...KEY, 'Content-Length', '5'];
      const outgoing = begin(gate.url, '/charges', { method: 'POST', headers }, (incoming) => {
        incoming.resume();
        resolve([incoming.statusCode ?? 0, String(incoming.headers['tidegate-outcome'])]);
      });
      outgoing.write('x');
    });
    expect(stalled).toEqual(UNKNOWN);
    open[0]?.();
    await first;
  });

  test('does not resolve a concurrent write with the same key by the other’s rejection', async () => {
    const open: (() => void)[] = [];
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 1) open.push(() => response.end('paid'));
      else response.writeHead(404).end();
    });
    const gate = await startTidegate(config(upstream.url, 'concurrent: pass'));
    const first = post(gate.url);
    await eventually(
      () => open.length,
      (count) => count === 1,
    );
    expect(outcomeOf(await post(gate.url))).toEqual(UNKNOWN);
    open[0]?.();
    expect((await first).status).toBe(200);
    expect(outcomeOf(await post(gate.url))).toEqual([404, undefined]);
  });
});

describe('several endpoints', () => {
  async function two(more: string) {
    const broken = await startHttpUpstream((_n, response) => response.destroy());
    const sound = await startHttpUpstream((_n, response) => response.end('paid'));
    const urls = `urls: ["${broken.url}", "${sound.url}"]`;
    const yaml = `upstreams: {api: {${urls}, retry: {attempts: 3, ${FAST}}, idempotency: {${more}}}}\n`;
    return { broken, sound, gate: await startTidegate(yaml) };
  }

  test('repeat a possibly executed write only at its own endpoint, as each has its own keys', async () => {
    const { broken, sound, gate } = await two('ttl: 24h');
    const outcomes = [];
    for (let i = 0; i < 6; i += 1) {
      const answer = await post(gate.url, ['Idempotency-Key', `order-${i}`]);
      outcomes.push(outcomeOf(answer));
    }
    // Each was sent to one endpoint, whatever happened there.
    const keysAt = (hits: typeof broken.hits) =>
      new Set(hits.map(({ headers }) => headers[headers.indexOf('Idempotency-Key') + 1]));
    const both = [...keysAt(broken.hits)].filter((key) => keysAt(sound.hits).has(key));
    expect(both).toEqual([]);
    expect(keysAt(broken.hits).size).toBeGreaterThan(0);
    expect(outcomes).toContainEqual(UNKNOWN);
  });

  test('repeat it at another endpoint where they share their keys', async () => {
    const { gate } = await two('ttl: 24h, sharesKeys: true');
    for (let i = 0; i < 4; i += 1) {
      expect((await post(gate.url, ['Idempotency-Key', `order-${i}`])).status).toBe(200);
    }
  });
});

describe('a body that may contain the key, without memory to read it', () => {
  test('is not sent', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end('paid'));
    const yaml = `limits: {replayMemory: 1KiB}\n${config(upstream.url, 'header: false, jsonField: key')}`;
    const gate = await startTidegate(yaml);
    const body = JSON.stringify({ key: 'k', filler: 'x'.repeat(2000) });
    const answer = await send(gate.url, '/charges', {
      method: 'POST',
      headers: ['Content-Type', 'application/json'],
      body,
    });
    expect([answer.status, answer.json().reason]).toEqual([503, 'replay_memory']);
    expect(upstream.hits).toEqual([]);
  });
});

test('does not start a write without the time it needs, so that a certain 503 stays certain', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(503, { 'Retry-After': '1' }).end());
  const retry = `retry: {attempts: 4, minAttemptTime: 600ms, ${FAST}}`;
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", timeout: 1500ms, ${retry}}}`);
  const answer = await post(gate.url);
  expect(outcomeOf(answer)).toEqual([503, undefined]);
  expect(upstream.hits).toHaveLength(1);
  const explained = await (await fetch(`${gate.adminUrl}/explain/${answer.header('tidegate-request-id')}`)).text();
  expect(explained).toContain('a write is not sent less than 600 ms before its deadline');
});
