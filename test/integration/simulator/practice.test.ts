import { createHash, randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { PracticeOptions } from '../../../src/simulator/practice/practice-server.ts';
import { startPracticeServer } from '../../../src/simulator/practice/practice-server.ts';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';

const agent = new Agent({ allowH2: false });
const running: { close(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((practice) => practice.close()));
});
afterAll(() => agent.destroy());

async function start(options: Partial<PracticeOptions> = {}) {
  const practice = await startPracticeServer({ limit: { kind: 'unlimited' }, ...options });
  running.push(practice);
  return practice;
}

interface Sent {
  readonly method?: 'GET' | 'POST' | 'HEAD';
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

async function send(url: string, { method = 'GET', headers = {}, body }: Sent = {}) {
  const answer = await request(url, { method, headers, body: body ?? null, dispatcher: agent });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  return {
    status: answer.statusCode,
    headers: answer.headers,
    bytes,
    json: () => JSON.parse(bytes.toString('utf8')) as Record<string, unknown>,
  };
}

async function statuses(url: string, times: number, sent: Sent = {}): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < times; i += 1) all.push((await send(url, sent)).status);
  return all;
}

function charge(url: string, headers: Record<string, string> = {}, body = 'amount=100&currency=eur') {
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  return send(`${url}/charges`, { method: 'POST', headers: { ...type, ...headers }, body });
}

async function failure(promise: Promise<unknown>): Promise<string | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

const twoAMinute = { kind: 'fixed-window', limit: 2, window: 60_000 } as const;

describe('the limit', () => {
  test('applies, and is counted by client', async () => {
    const practice = await start({ limit: twoAMinute });
    const { url } = practice;
    expect(await statuses(url, 2, { headers: { 'x-api-key': 'ann' } })).toEqual([200, 200]);
    const refused = await send(`${url}/x?y=1`, { headers: { 'x-api-key': 'bob' } });
    expect(refused.status).toBe(429);
    expect(refused.json()).toMatchObject({ error: { type: 'rate_limit_error', code: 'rate_limit' } });
    expect(practice.stats()).toMatchObject({
      limit: 2,
      received: 3,
      accepted: 2,
      rejected: 1,
      errors: 0,
      inFlight: 0,
      answered: { 200: 2, 429: 1 },
      byClient: { ann: { received: 2, accepted: 2 }, bob: { received: 1, rejected: 1 } },
    });
  });

  test('in flight holds a slot while the work lasts, even after the client disconnects', async () => {
    const practice = await start({
      limit: { kind: 'concurrency', limit: 2 },
      latency: { kind: 'constant', mean: 500 },
    });
    const left = new AbortController();
    const leaving = failure(request(practice.url, { signal: left.signal, dispatcher: agent }));
    const staying = send(practice.url);
    await expect.poll(() => practice.stats().inFlight).toBe(2);
    left.abort();
    await leaving;
    expect((await send(practice.url)).status).toBe(429);
    expect((await staying).status).toBe(200);
    await expect.poll(() => practice.stats().answered).toEqual({ 200: 1, 429: 1, gone: 1 });
    expect((await send(practice.url)).status).toBe(200);
  });

  test('does not apply to the server’s own pages', async () => {
    const { url } = await start({ limit: { kind: 'fixed-window', limit: 1, window: 60_000 } });
    expect(await statuses(`${url}/practice/stats`, 3)).toEqual([200, 200, 200]);
    expect((await send(url)).status).toBe(200);
  });

  test('changes in steps over time', async () => {
    const practice = await start({ limit: twoAMinute });
    expect(await statuses(practice.url, 3)).toEqual([200, 200, 429]);
    practice.configure({ steps: [{ at: practice.stats().elapsed + 100, limit: 4 }] });
    expect(practice.stats().limit).toBe(2);
    await expect.poll(() => practice.stats().limit).toBe(4);
    expect(await statuses(practice.url, 3)).toEqual([200, 200, 429]);
  });
});

describe('hints', () => {
  const inWindow = (at: number) => {
    // The window starts with the server, so its rest is a little shorter than its length.
    expect(at).toBeGreaterThan(50);
    expect(at).toBeLessThanOrEqual(60);
  };
  const refused = async (hints: NonNullable<PracticeOptions['hints']>) => {
    const { url } = await start({ limit: twoAMinute, hints });
    const first = await send(url);
    await send(url);
    return { first: first.headers, refusal: (await send(url)).headers };
  };

  test('none', async () => {
    const { first, refusal } = await refused('none');
    for (const name of ['retry-after', 'ratelimit', 'x-ratelimit-remaining']) {
      expect(first[name]).toBeUndefined();
      expect(refusal[name]).toBeUndefined();
    }
  });

  test('Retry-After in seconds, on a rejection only', async () => {
    const { first, refusal } = await refused('retry-after');
    expect(first['retry-after']).toBeUndefined();
    inWindow(Number(refusal['retry-after']));
  });

  test('Retry-After as a date relative to Date', async () => {
    const { refusal } = await refused('retry-after-date');
    expect(refusal['retry-after']).toMatch(/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
    // Both were truncated to the second: up to one more.
    inWindow((Date.parse(String(refusal['retry-after'])) - Date.parse(String(refusal['date']))) / 1000 - 1);
  });

  test('RateLimit and RateLimit-Policy, on every response', async () => {
    const { first, refusal } = await refused('ratelimit');
    expect(first['ratelimit-policy']).toBe('"practice";q=2;w=60');
    expect(first['ratelimit']).toMatch(/^"practice";r=1;t=\d+$/);
    expect(refusal['ratelimit']).toMatch(/^"practice";r=0;t=\d+$/);
    inWindow(Number(/t=(\d+)/.exec(String(refusal['ratelimit']))?.[1]));
  });

  test('X-RateLimit-*, with the reset in seconds since 1970', async () => {
    const { first, refusal } = await refused('x-ratelimit');
    expect(first['x-ratelimit-limit']).toBe('2');
    expect(first['x-ratelimit-remaining']).toBe('1');
    expect(refusal['x-ratelimit-remaining']).toBe('0');
    inWindow(Number(refusal['x-ratelimit-reset']) - Date.parse(String(refusal['date'])) / 1000 - 1);
  });

  test('report slots in flight as such', async () => {
    const { url } = await start({ limit: { kind: 'concurrency', limit: 5 }, hints: 'ratelimit' });
    const { headers } = await send(url);
    expect(headers['ratelimit-policy']).toBe('"practice";q=5;qu="concurrent-requests"');
    expect(headers['ratelimit']).toBe('"practice";r=4');
  });
});

describe('the echo', () => {
  test('returns what arrived, byte for byte', async () => {
    const { url } = await start();
    const body = randomBytes(300_000);
    const answer = await send(`${url}/echo?a=%20b`, { method: 'POST', headers: { 'X-Mixed-Case': 'Yes' }, body });
    const echo = answer.json();
    expect(echo).toMatchObject({
      method: 'POST',
      path: '/echo?a=%20b',
      httpVersion: '1.1',
      body: { length: 300_000, sha256: createHash('sha256').update(body).digest('hex') },
    });
    const headers = echo['headers'] as string[];
    expect(headers[headers.indexOf('X-Mixed-Case') + 1]).toBe('Yes');
  });

  test('answers HEAD without a body', async () => {
    const { url } = await start();
    const answer = await send(`${url}/echo`, { method: 'HEAD' });
    expect(answer.status).toBe(200);
    expect(answer.bytes.length).toBe(0);
    expect(Number(answer.headers['content-length'])).toBeGreaterThan(0);
  });
});

describe('the ledger', () => {
  test('charges every unkeyed request; one intent charged twice is a double charge', async () => {
    const practice = await start();
    const ids = [
      (await charge(practice.url, { 'x-intent': 'order-1' })).json()['id'],
      (await charge(practice.url, { 'x-intent': 'order-1' })).json()['id'],
      (await charge(practice.url, { 'x-intent': 'order-2' })).json()['id'],
      (await charge(practice.url)).json()['id'],
      (await charge(practice.url)).json()['id'],
    ];
    expect(new Set(ids).size).toBe(5);
    expect(practice.ledger.charges).toBe(5);
    expect(practice.ledger.doubleCharges).toBe(1);
    expect(practice.ledger.summary().doubled).toEqual({ 'order-1': [ids[0], ids[1]] });
  });

  test('reads the intent from the metadata of a form and of JSON', async () => {
    const practice = await start();
    const form = await charge(practice.url, {}, 'amount=250&currency=usd&metadata[intent]=order-9&metadata[a]=b');
    expect(form.json()).toMatchObject({ object: 'charge', amount: 250, metadata: { intent: 'order-9', a: 'b' } });
    const json = await send(`${practice.url}/v1/payment_intents`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ amount: 250, currency: 'usd', metadata: { intent: 'order-9' } }),
    });
    expect(json.json()).toMatchObject({ object: 'payment_intent', amount: 250, currency: 'usd', status: 'succeeded' });
    expect(practice.ledger.doubleCharges).toBe(1);
  });

  test('replays the charge for the same key, byte for byte', async () => {
    const practice = await start();
    const first = await charge(practice.url, { 'idempotency-key': 'k1', 'x-intent': 'order-1' });
    const again = await charge(practice.url, { 'idempotency-key': 'k1', 'x-intent': 'order-1' });
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.bytes).toEqual(first.bytes);
    expect(practice.ledger.summary()).toMatchObject({ charges: 1, doubleCharges: 0, replays: 1 });
  });

  test('rejects the same key with another body', async () => {
    const practice = await start();
    await charge(practice.url, { 'idempotency-key': 'k1' });
    const other = await charge(practice.url, { 'idempotency-key': 'k1' }, 'amount=999');
    expect(other.status).toBe(400);
    expect(other.json()).toMatchObject({ error: { type: 'idempotency_error' } });
    expect(practice.ledger.summary()).toMatchObject({ charges: 1, mismatches: 1 });
  });

  test('rejects the same key with 409 while the first request is in progress', async () => {
    const practice = await start({ latency: { kind: 'constant', mean: 300 } });
    const both = await Promise.all([1, 2].map(() => charge(practice.url, { 'idempotency-key': 'k1' })));
    expect(both.map((answer) => answer.status).toSorted((a, b) => a - b)).toEqual([200, 409]);
    expect(both.find((answer) => answer.status === 409)?.json()).toMatchObject({
      error: { code: 'idempotency_key_in_use' },
    });
    expect(practice.ledger.summary()).toMatchObject({ charges: 1, busy: 1 });
    expect((await charge(practice.url, { 'idempotency-key': 'k1' })).headers['idempotent-replayed']).toBe('true');
  });

  test('charges nothing for a body that is neither form nor JSON, or that breaks off', async () => {
    const practice = await start();
    const malformed = await charge(practice.url, { 'content-type': 'application/json' }, '{"amount":');
    expect(malformed.status).toBe(400);
    const socket = connect(practice.port, '127.0.0.1').on('error', () => undefined);
    socket.write('POST /charges HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\namount=1');
    await expect.poll(() => practice.stats().inFlight).toBe(1);
    socket.destroy();
    await expect.poll(() => practice.stats().answered['gone']).toBe(1);
    expect(practice.ledger.charges).toBe(0);
  });

  test('charges nothing for a rejected or failing request', async () => {
    const practice = await start({ limit: twoAMinute, errors: [{ probability: 1, status: 502 }] });
    const answers = [await charge(practice.url), await charge(practice.url), await charge(practice.url)];
    expect(answers.map((answer) => answer.status)).toEqual([502, 502, 429]);
    expect(practice.stats()).toMatchObject({ accepted: 0, errors: 2, rejected: 1 });
    expect(practice.ledger.charges).toBe(0);
  });

  test('charges even when the client has disconnected', async () => {
    const practice = await start({ latency: { kind: 'constant', mean: 100 } });
    const left = new AbortController();
    const leaving = failure(
      request(`${practice.url}/charges`, { method: 'POST', body: 'amount=1', signal: left.signal, dispatcher: agent }),
    );
    await expect.poll(() => practice.stats().inFlight).toBe(1);
    left.abort();
    await leaving;
    await expect.poll(() => practice.ledger.charges).toBe(1);
  });

  test('can break connections after a charge at random, so that an unkeyed retry charges twice', async () => {
    const practice = await start({ afterCharge: { reset: 1 } });
    for (let i = 0; i < 2; i += 1) {
      expect(await failure(charge(practice.url, { 'x-intent': 'order-1' }))).toBe('ECONNRESET');
    }
    expect(practice.ledger.summary()).toMatchObject({ charges: 2, doubleCharges: 1 });
    practice.configure({ afterCharge: { error: 1 } });
    expect((await charge(practice.url, { 'x-intent': 'order-2', 'idempotency-key': 'k' })).status).toBe(500);
    practice.configure({ afterCharge: {} });
    const replay = await charge(practice.url, { 'x-intent': 'order-2', 'idempotency-key': 'k' });
    expect(replay.headers['idempotent-replayed']).toBe('true');
    expect(practice.ledger.summary()).toMatchObject({ charges: 3, doubleCharges: 1 });
    expect((await send(practice.url)).status).toBe(200);
  });
});

describe('a script', () => {
  const script = (words: string, id?: string) => ({
    'x-practice-script': words,
    ...(id === undefined ? {} : { 'x-practice-id': id }),
  });

  test('answers attempt by attempt and repeats its last step, whatever the limit', async () => {
    const practice = await start({ limit: { kind: 'fixed-window', limit: 1, window: 60_000 } });
    expect(await statuses(practice.url, 4, { headers: script('503,429,200', 'a') })).toEqual([503, 429, 200, 200]);
    expect(await statuses(practice.url, 1, { headers: script('503,429,200', 'b') })).toEqual([503]);
    expect(practice.attempts('a')).toBe(4);
    expect(practice.stats()).toMatchObject({ received: 5, scripted: 5, accepted: 0 });
  });

  test('defers to the limit where it says so', async () => {
    const practice = await start({ limit: { kind: 'fixed-window', limit: 1, window: 60_000 } });
    expect(await statuses(practice.url, 3, { headers: script('pass') })).toEqual([200, 429, 429]);
  });

  test('sets headers and bodies', async () => {
    const { url } = await start();
    const throttled = await send(url, { headers: script('429;retry-after=2;header=stripe-should-retry:true') });
    expect(throttled.status).toBe(429);
    expect(throttled.headers['retry-after']).toBe('2');
    expect(throttled.headers['stripe-should-retry']).toBe('true');
    const large = await send(url, { headers: script('503;body=300000') });
    expect(large.status).toBe(503);
    expect(large.bytes.length).toBe(300_000);
    const empty = await send(url, { headers: script('204') });
    expect([empty.status, empty.bytes.length]).toEqual([204, 0]);
  });

  test('delays', async () => {
    const { url } = await start();
    const begun = performance.now();
    expect((await send(url, { headers: script('delay=200;201') })).status).toBe(201);
    expect(performance.now() - begun).toBeGreaterThan(190);
  });

  test('resets before any response', async () => {
    const { url } = await start();
    expect(await failure(send(url, { headers: script('reset') }))).toBe('ECONNRESET');
    expect(await failure(send(`${url}/charges`, { method: 'POST', headers: script('reset'), body: 'amount=1' }))).toBe(
      'ECONNRESET',
    );
  });

  test.each([0, 100, 70_000])('truncates a response after %i bytes', async (bytes) => {
    const { url } = await start();
    const answer = await request(url, { headers: script(`200;cut=${bytes}`), dispatcher: agent });
    expect(answer.statusCode).toBe(200);
    expect(Number(answer.headers['content-length'])).toBeGreaterThan(bytes);
    let received = 0;
    const reading = (async () => {
      for await (const chunk of answer.body) received += (chunk as Buffer).length;
    })();
    expect(await failure(reading)).toBe('UND_ERR_SOCKET');
    expect(received).toBe(bytes);
  });

  test('hangs until the client disconnects', async () => {
    const practice = await start();
    const client = new AbortController();
    const result = failure(
      request(practice.url, { headers: script('hang'), signal: client.signal, dispatcher: agent }),
    );
    await expect.poll(() => practice.stats().inFlight).toBe(1);
    client.abort();
    expect(await result).toBe(String(DOMException.ABORT_ERR));
    await expect.poll(() => practice.stats().answered).toEqual({ hang: 1 });
    expect(practice.stats().inFlight).toBe(0);
  });

  test('charges, then breaks: a keyed retry replays, an unkeyed one charges twice', async () => {
    const practice = await start();
    const words = 'reset-after-charge, 500-after-charge, 200';
    const keyed = { ...script(words, 'keyed'), 'idempotency-key': 'k1', 'x-intent': 'order-1' };
    expect(await failure(charge(practice.url, keyed))).toBe('ECONNRESET');
    expect((await charge(practice.url, keyed)).status).toBe(500);
    expect((await charge(practice.url, keyed)).headers['idempotent-replayed']).toBe('true');
    expect(practice.ledger.summary()).toMatchObject({ charges: 1, doubleCharges: 0 });

    const bare = { ...script(words, 'bare'), 'x-intent': 'order-2' };
    expect(await failure(charge(practice.url, bare))).toBe('ECONNRESET');
    expect((await charge(practice.url, bare)).status).toBe(500);
    expect((await charge(practice.url, bare)).status).toBe(200);
    expect(practice.ledger.summary()).toMatchObject({ charges: 4, doubleCharges: 2 });
  });

  test('that forces success still gets an error for an invalid request', async () => {
    const { url } = await start();
    const malformed = await charge(url, { ...script('201'), 'content-type': 'application/json' }, '{');
    expect(malformed.status).toBe(400);
  });

  test('that fails without a charge leaves the key unused', async () => {
    const practice = await start();
    const headers = { ...script('503, reset, 201', 'x'), 'idempotency-key': 'k1' };
    expect((await charge(practice.url, headers)).status).toBe(503);
    expect(await failure(charge(practice.url, headers))).toBe('ECONNRESET');
    const third = await charge(practice.url, headers);
    expect(third.status).toBe(201);
    expect(third.headers['idempotent-replayed']).toBeUndefined();
    expect(practice.ledger.charges).toBe(1);
  });

  test('with an error is answered with the grammar, and not counted', async () => {
    const practice = await start();
    const wrong = await send(practice.url, { headers: script('503,explode', 'a') });
    expect(wrong.status).toBe(400);
    expect(wrong.bytes.toString()).toContain('step 2: unknown word');
    expect(wrong.bytes.toString()).toContain('reset-after-charge');
    const unnamed = await send(practice.url, { headers: script('503,200') });
    expect(unnamed.bytes.toString()).toContain('several steps need an x-practice-id');
    expect(practice.stats().received).toBe(0);
  });
});

describe('an outage', () => {
  test('refuses connections, then listens again on its port', async () => {
    const practice = await start();
    expect((await send(practice.url)).status).toBe(200);
    const { elapsed } = practice.stats();
    practice.configure({ outages: [{ from: elapsed, to: elapsed + 700, how: 'refuse' }] });
    expect(await failure(send(practice.url))).toMatch(/ECONNREFUSED|UND_ERR_SOCKET|ECONNRESET/); // the open connection
    expect(await failure(send(practice.url))).toBe('ECONNREFUSED');
    await expect.poll(() => failure(send(practice.url)), { timeout: 5000 }).toBeUndefined();
    expect(practice.stats().elapsed).toBeGreaterThan(elapsed + 699);
  });

  test('breaks what is in flight when it begins', async () => {
    const practice = await start({ latency: { kind: 'constant', mean: 60_000 } });
    const waiting = failure(send(practice.url));
    await expect.poll(() => practice.stats().inFlight).toBe(1);
    practice.configure({ outages: [{ from: 0, to: 1e6, how: 'refuse' }] });
    expect(await waiting).toMatch(/ECONNRESET|UND_ERR_SOCKET/);
  });

  test('may be present from the start', async () => {
    const practice = await start({ outages: [{ from: 0, to: 600, how: 'refuse' }] });
    expect(await failure(send(practice.url))).toBe('ECONNREFUSED');
    await expect.poll(() => failure(send(practice.url)), { timeout: 5000 }).toBeUndefined();
  });

  test('resets or answers 503, and uses none of the limit', async () => {
    const practice = await start({
      limit: { kind: 'fixed-window', limit: 1, window: 60_000 },
      outages: [{ from: 0, to: 1e6, how: 'reset' }],
    });
    expect(await failure(send(practice.url))).toBe('ECONNRESET');
    practice.configure({ outages: [{ from: 0, to: 1e6, how: '503' }] });
    expect((await send(practice.url)).status).toBe(503);
    practice.configure({ outages: [] });
    expect(await statuses(practice.url, 2)).toEqual([200, 429]);
    expect(practice.stats()).toMatchObject({ errors: 2, accepted: 1, rejected: 1 });
  });

  test('ends when the server closes', async () => {
    // Its port cannot be tested, because another test may use it by then.
    const servers = () => process.getActiveResourcesInfo().filter((each) => each === 'TCPServerWrap').length;
    await expect.poll(servers).toBe(0);
    const practice = await startPracticeServer({
      limit: { kind: 'unlimited' },
      outages: [{ from: 0, to: 100, how: 'refuse' }],
    });
    await practice.close();
    await sleep(200);
    expect(servers()).toBe(0);
  });
});

describe('by hand', () => {
  const configure = (url: string, patch: unknown) =>
    send(`${url}/practice/configure`, { method: 'POST', body: JSON.stringify(patch) });

  test('changes the limit and keeps what was charged to it, unless its kind changes', async () => {
    const { url } = await start({ limit: twoAMinute });
    await statuses(url, 2);
    expect((await configure(url, { limit: { ...twoAMinute, limit: 3 } })).status).toBe(200);
    expect(await statuses(url, 2)).toEqual([200, 429]);
    const other = await configure(url, { limit: { kind: 'gcra', rate: 0.01, burst: 1 }, hints: 'retry-after' });
    expect(other.json()).toEqual({ limit: { kind: 'gcra', rate: 0.01, burst: 1 }, hints: 'retry-after' });
    expect(await statuses(url, 2)).toEqual([200, 429]);
  });

  test('keeps a completed step through another change', async () => {
    const practice = await start({ limit: twoAMinute, steps: [{ at: 1, limit: 50 }] });
    await sleep(5);
    practice.configure({ hints: 'retry-after' });
    expect(practice.stats().limit).toBe(50);
    practice.configure({ limit: { ...twoAMinute, limit: 7 } });
    expect(practice.stats().limit).toBe(7);
  });

  test('explains an error, and changes nothing', async () => {
    const { url } = await start({ limit: twoAMinute });
    for (const patch of [{ limit: { kind: 'token-bucket', rate: -1, burst: 1 } }, { colour: 'red' }, 'x']) {
      expect((await configure(url, patch)).status).toBe(400);
    }
    expect((await configure(url, { colour: 'red' })).bytes.toString()).toContain('colour');
    expect((await send(`${url}/practice/configure`, { method: 'POST', body: '{' })).status).toBe(400);
    expect((await send(`${url}/practice/configure`)).status).toBe(405);
    expect((await send(`${url}/practice/nonsense`)).status).toBe(404);
    expect(await statuses(url, 3)).toEqual([200, 200, 429]);
  });

  test('shows stats and ledger, and resets them', async () => {
    const { url } = await start({ limit: twoAMinute });
    await charge(url, { 'x-intent': 'a' });
    await charge(url, { 'x-intent': 'a' });
    expect((await send(`${url}/practice/ledger`)).json()).toMatchObject({ charges: 2, doubleCharges: 1 });
    expect((await send(`${url}/practice/stats`)).json()).toMatchObject({ received: 2, accepted: 2 });
    expect((await send(`${url}/practice/reset`, { method: 'POST' })).json()).toMatchObject({ received: 0 });
    expect((await send(`${url}/practice/ledger`)).json()).toMatchObject({ charges: 0, doubleCharges: 0 });
    expect(await statuses(url, 3)).toEqual([200, 200, 429]);
  });

  test('describes the server on the front page', async () => {
    const { url } = await start();
    expect((await send(url)).bytes.toString()).toContain('/practice/configure');
    expect((await send(`${url}/practice/script`)).bytes.toString()).toContain('reset-after-charge');
  });
});

test('fails the same requests for the same seed', async () => {
  const run = async (seed: number) => {
    const { url } = await start({ errors: [{ probability: 0.5 }], seed });
    return statuses(url, 40);
  };
  const first = await run(3);
  expect(new Set(first)).toEqual(new Set([200, 503]));
  expect(await run(3)).toEqual(first);
  expect(await run(4)).not.toEqual(first);
});

test('keeps idle connections, and answers requests on one in order', async () => {
  const { port } = await start({ latency: { kind: 'exponential', mean: 20 } });
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  let transcript = '';
  socket.on('data', (chunk: Buffer) => (transcript += chunk.toString('latin1')));
  const words = ['503', '429', 'delay=50;418', '200'];
  socket.write(words.map((word) => `GET / HTTP/1.1\r\nHost: x\r\nx-practice-script: ${word}\r\n\r\n`).join(''));
  await expect
    .poll(() => transcript.match(/HTTP\/1\.1 \d+/g))
    .toEqual(['HTTP/1.1 503', 'HTTP/1.1 429', 'HTTP/1.1 418', 'HTTP/1.1 200']);
  expect(transcript).not.toMatch(/^(connection: close|keep-alive:)/im);
  socket.destroy();
});

describe('traffic', () => {
  test('arrives at its rates, by client, and is counted by status', async () => {
    const practice = await start({ limit: { kind: 'token-bucket', rate: 50, burst: 5 } });
    const traffic = startTraffic({
      target: practice.url,
      clients: [
        { name: 'fast', rate: 200 },
        { name: 'slow', rate: 20, request: (n) => ({ method: 'POST', path: '/charges', body: `amount=${n}` }) },
      ],
    });
    await sleep(1000);
    await traffic.stop();
    const { fast, slow } = traffic.stats();
    // Poisson: five standard deviations around 200 and 20.
    expect(fast?.sent).toBeGreaterThan(200 - 71);
    expect(fast?.sent).toBeLessThan(200 + 100);
    expect(slow?.sent).toBeGreaterThan(0);
    const { byClient } = practice.stats();
    expect(byClient['fast']).toMatchObject({ accepted: fast?.answered[200], rejected: fast?.answered[429] });
    expect(byClient['slow']?.received).toBe(slow?.sent);
    expect(practice.ledger.charges).toBe(slow?.answered[200] ?? 0);
  });

  test('waits for a Retry-After if its client is configured to', async () => {
    const practice = await start({ limit: twoAMinute, hints: 'retry-after' });
    const traffic = startTraffic({
      target: practice.url,
      clients: [
        { name: 'polite', rate: 100, honoursRetryAfter: true },
        { name: 'deaf', rate: 100 },
      ],
    });
    await sleep(500);
    await traffic.stop();
    const { polite, deaf } = traffic.stats();
    expect(polite?.heldBack).toBeGreaterThan(polite?.sent ?? 0);
    expect(deaf?.heldBack).toBe(0);
    expect(deaf?.sent).toBeGreaterThan(polite?.sent ?? 0);
  });

  test('is bounded in flight, does not wait for responses, and stops', async () => {
    const practice = await start({ latency: { kind: 'constant', mean: 60_000 } });
    const traffic = startTraffic({ target: practice.url, clients: [{ name: 'a', rate: 500 }], maxInFlight: 5 });
    await expect.poll(() => traffic.stats()['a']?.dropped).toBeGreaterThan(5);
    expect(practice.stats().inFlight).toBeLessThanOrEqual(5);
    await traffic.stop(0);
    expect(traffic.stats()['a']).toMatchObject({ sent: 5, failed: 5, answered: {} });
  });

  test('changes its rate', async () => {
    const practice = await start();
    const traffic = startTraffic({ target: practice.url, clients: [{ name: 'a', rate: 0 }] });
    expect(() => traffic.setRate('b', 1)).toThrow(RangeError);
    traffic.setRate('a', 500);
    await expect.poll(() => practice.stats().received).toBeGreaterThan(5);
    traffic.setRate('a', 0);
    const sent = traffic.stats()['a']?.sent;
    await expect.poll(() => practice.stats().received, { timeout: 20_000 }).toBe(sent);
    await traffic.stop();
    expect(traffic.stats()['a']?.sent).toBe(sent);
  });
});
