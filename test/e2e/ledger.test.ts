/** What clients are told of their money, held against what the ledger says was charged. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Practice, PracticeOptions } from '../../src/simulator/practice/practice-server.ts';
import type { Tidegate } from '../support/tidegate.ts';
import { eventually, startTidegate, startUpstream } from '../support/tidegate.ts';

/** What one intent to charge was answered. */
interface Told {
  readonly intent: string;
  readonly status: number;
  readonly id: string | undefined;
  /** `Tidegate-Outcome: unknown`: it may have been charged. */
  readonly unknown: boolean;
  /** An answer of the proxy itself. */
  readonly own: boolean;
  readonly retryAfter: number | undefined;
}

interface Order {
  readonly intent: string;
  readonly key: string | undefined;
}

async function charge(dispatcher: Agent, url: string, { intent, key }: Order): Promise<Told> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded', 'x-intent': intent, 'x-api-key': intent };
  const {
    statusCode,
    headers: told,
    body,
  } = await request(`${url}/v1/charges`, {
    method: 'POST',
    headers: key === undefined ? headers : { ...headers, 'idempotency-key': key },
    body: `amount=100&currency=eur&metadata[intent]=${intent}`,
    dispatcher,
  });
  const answer = (await body.json()) as { id?: string; outcome?: string };
  const unknown = told['tidegate-outcome'] === 'unknown';
  const own = told['content-type'] === 'application/problem+json';
  if (own) expect(answer.outcome === 'unknown').toBe(unknown);
  const wait = told['retry-after'];
  return {
    intent,
    status: statusCode,
    id: answer.id,
    unknown,
    own,
    retryAfter: wait === undefined ? wait : Number(wait),
  };
}

/** Ten clients at once, each of which asks for one charge after the other on a connection of its own. */
async function chargeAll(url: string, orders: readonly Order[]): Promise<Told[]> {
  const clients = Array.from({ length: 10 }, (_, client) => orders.filter((_order, i) => i % 10 === client));
  const answers = await Promise.all(
    clients.map(async (own) => {
      const dispatcher = openAgent();
      const told: Told[] = [];
      for (const order of own) {
        const answer = await charge(dispatcher, url, order);
        told.push(answer);
        if (answer.retryAfter !== undefined) await sleep(20);
      }
      return told;
    }),
  );
  return answers.flat();
}

function openAgent(): Agent {
  const agent = new Agent({ connections: 1, pipelining: 1, allowH2: false });
  onTestFinished(() => agent.close());
  return agent;
}

function ordersOf(count: number, keyed: boolean): Order[] {
  return Array.from({ length: count }, (_, i) => ({ intent: `order-${i}`, key: keyed ? `key-${i}` : undefined }));
}

/**
 * Which intents had been charged. Asked of the upstream itself, healed: charging an intent once more, without its key,
 * is a double charge if it had been charged, and none if it had not.
 */
async function findCharged(upstream: Practice, orders: readonly Order[]): Promise<ReadonlySet<string>> {
  await sleep(100); // whatever was begun has ended
  upstream.configure({ limit: { kind: 'unlimited' }, errors: [], afterCharge: {}, outages: [] });
  const dispatcher = openAgent();
  const charged = new Set<string>();
  for (const { intent } of orders) {
    const before = upstream.ledger.doubleCharges;
    await charge(dispatcher, upstream.url, { intent, key: undefined });
    if (upstream.ledger.doubleCharges > before) charged.add(intent);
  }
  return charged;
}

/** Everything that goes wrong with charges, by chance. */
const FAULTY = {
  limit: { kind: 'token-bucket', rate: 400, burst: 4 },
  latency: { kind: 'lognormal', mean: 5, sigma: 0.5 },
  errors: [
    { probability: 0.08, status: 500 },
    { probability: 0.08, status: 503 },
  ],
  afterCharge: { reset: 0.08, hang: 0.06, error: 0.08 },
  seed: 20261121,
} satisfies PracticeOptions;

async function start(retry: string) {
  const upstream = await startUpstream(FAULTY);
  const tidegate = await startTidegate(`
upstreams:
  pay:
    url: ${upstream.url}
    timeout: 4s
    perTryTimeout: 150ms
    rateLimit: {minRate: 350/s}
    retry: ${retry}
`);
  return { upstream, tidegate };
}

/** No client is told that nothing happened, or that all is well, when the ledger says otherwise. */
function expectHonesty(answers: readonly Told[], charged: ReadonlySet<string>): void {
  for (const told of answers) {
    const said = { ...told, charged: charged.has(told.intent) };
    if (told.status < 300) expect(said).toMatchObject({ charged: true, unknown: false });
    else if (!told.unknown) expect(said).toMatchObject({ charged: false });
    if (told.own && told.status === 429) expect(told.retryAfter).toBeGreaterThanOrEqual(1);
  }
}

async function expectCounted(tidegate: Tidegate, upstream: Practice, answers: readonly Told[]): Promise<void> {
  const lines = await eventually(
    () => tidegate.requests(),
    ({ length }) => length >= answers.length,
  );
  expect(lines.map(({ status }) => Number(status)).toSorted(ascending)).toEqual(
    answers.map(({ status }) => status).toSorted(ascending),
  );
  const unknown = answers.filter((told) => told.unknown).length;
  expect(lines.filter(({ outcome }) => outcome === 'unknown')).toHaveLength(unknown);
  const sends = lines.reduce((sum, { attempts }) => sum + Number(attempts), 0);
  expect(upstream.stats().received).toBeLessThanOrEqual(sends);
  let counted = 0;
  for (const status of new Set(answers.map(({ status: code }) => code))) {
    counted += await tidegate.metric(
      `tidegate_requests_total{route="/",method="POST",code="${status}",outcome="unknown"}`,
    );
  }
  expect(counted).toBe(unknown);
}

describe('charges with keys, from ten clients, of an upstream that fails in every way', () => {
  test.each([
    ['patient', 200, '{attempts: 6, budget: {ratio: 1, burst: 100}, backOff: {baseInterval: 20ms}}', 160],
    ['poor', 150, '{attempts: 2, budget: {ratio: 0, burst: 50}, backOff: {baseInterval: 5ms}}', 60],
  ])('a %s proxy charges each at most once, and tells the truth of every one', async (_, count, retry, least) => {
    const { upstream, tidegate } = await start(retry);
    const orders = ordersOf(count, true);
    const answers = await chargeAll(tidegate.url, orders);

    const { answered } = upstream.stats();
    for (const fault of ['reset', 'hang', 500, 503, 429]) expect([fault, answered[fault] ?? 0]).not.toEqual([fault, 0]);
    await expectCounted(tidegate, upstream, answers);
    const { charges, doubleCharges, mismatches } = upstream.ledger.summary();
    expect([doubleCharges, mismatches]).toEqual([0, 0]);
    const charged = await findCharged(upstream, orders);
    expect(charges).toBe(charged.size);
    expectHonesty(answers, charged);

    const ids = answers.flatMap(({ status, id }) => (status < 300 ? [id] : []));
    expect(ids.length).toBeGreaterThanOrEqual(least);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('and asked for again until they succeed, all are charged exactly once', async () => {
    const { upstream, tidegate } = await start('{attempts: 3, budget: {ratio: 0.2}, backOff: {baseInterval: 10ms}}');
    const orders = ordersOf(200, true);
    let open: readonly Order[] = orders;
    for (let round = 0; open.length > 0 && round < 40; round += 1) {
      const answers = await chargeAll(tidegate.url, open);
      const done = new Set(answers.filter(({ status }) => status < 300).map(({ intent }) => intent));
      open = open.filter(({ intent }) => !done.has(intent));
      if (open.length > 0) await sleep(100);
    }
    expect(open).toEqual([]);
    expect(upstream.ledger.summary()).toMatchObject({ charges: 200, doubleCharges: 0, mismatches: 0 });
  });
});

describe('charges without a key', () => {
  test.each(['never', 'on429'])('are never sent twice once sent, with unkeyedWrites: %s', async (unkeyedWrites) => {
    const { upstream, tidegate } = await start(
      `{attempts: 4, budget: {ratio: 1, burst: 100}, backOff: {baseInterval: 20ms}, unkeyedWrites: ${unkeyedWrites}}`,
    );
    const from = upstream.stats().elapsed + 100;
    upstream.configure({ outages: [{ from, to: from + 60, how: 'refuse' }] });
    const orders = ordersOf(120, false);
    const answers = await chargeAll(tidegate.url, orders);

    const { byClient, answered } = upstream.stats();
    for (const { intent } of orders) {
      const { received = 0, rejected = 0 } = byClient[intent] ?? {};
      // A 429 of an upstream that rejects before it acts is as good as not sent.
      expect([intent, unkeyedWrites === 'on429' ? received - rejected : received]).toEqual([
        intent,
        expect.toSatisfy(atMostOne),
      ]);
    }
    for (const fault of ['reset', 500, 503]) expect([fault, answered[fault] ?? 0]).not.toEqual([fault, 0]);
    expect(upstream.ledger.doubleCharges).toBe(0);
    await expectCounted(tidegate, upstream, answers);
    expectHonesty(answers, await findCharged(upstream, orders));
  });
});

test('a charge without a key is tried again after a refused connection, over which nothing was sent', async () => {
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`
upstreams: {pay: {url: '${upstream.url}', retry: {attempts: 10, backOff: {strategy: fixed, baseInterval: 60ms}}}}
`);
  upstream.configure({ outages: [{ from: 0, to: upstream.stats().elapsed + 150, how: 'refuse' }] });
  const told = await charge(openAgent(), tidegate.url, { intent: 'order', key: undefined });
  expect(told).toMatchObject({ status: 200, unknown: false });
  expect(upstream.stats().received).toBe(1);
  expect(upstream.ledger.summary()).toMatchObject({ charges: 1, doubleCharges: 0 });
  expect(await tidegate.metric('tidegate_retries_total{upstream="pay",reason="connect"}')).toBeGreaterThan(0);
});

test.each([
  'reset-after-charge, 503',
  'reset-after-charge, 429',
  'hang-after-charge, 503',
  '500-after-charge, 429',
  '502-after-charge, reset',
])('a keyed charge that was made and met %s is never told as not made', async (steps) => {
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`
upstreams:
  pay:
    url: ${upstream.url}
    perTryTimeout: 150ms
    retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 5ms}}
`);
  const { statusCode, headers, body } = await request(`${tidegate.url}/v1/charges`, {
    method: 'POST',
    headers: { 'idempotency-key': 'made', 'x-practice-script': steps, 'x-practice-id': 'made' },
    body: 'amount=100',
    dispatcher: openAgent(),
  });
  expect([statusCode, headers['tidegate-outcome']]).toEqual([504, 'unknown']);
  expect(await body.json()).toMatchObject({ status: 504, outcome: 'unknown' });
  expect([upstream.attempts('made'), upstream.ledger.charges]).toEqual([2, 1]);
});

test('a keyed charge that is still at work when its attempt times out ends as its charge, or as unknown', async () => {
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`
upstreams:
  pay:
    url: ${upstream.url}
    timeout: 2s
    perTryTimeout: 150ms
    retry: {attempts: 3, backOff: {strategy: fixed, baseInterval: 10ms}}
`);
  const { statusCode, headers, body } = await request(`${tidegate.url}/v1/charges`, {
    method: 'POST',
    headers: { 'idempotency-key': 'slow', 'x-practice-script': 'delay=400; 200, 200', 'x-practice-id': 'slow' },
    body: 'amount=100',
    dispatcher: openAgent(),
  });
  await body.dump();
  expect([statusCode < 300, headers['tidegate-outcome']]).not.toEqual([false, undefined]);
  await sleep(400);
  expect(upstream.ledger.summary()).toMatchObject({ charges: 1, doubleCharges: 0 });
});

function ascending(a: number, b: number): number {
  return a - b;
}

function atMostOne(times: number): boolean {
  return times <= 1;
}
