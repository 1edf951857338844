import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import Stripe from 'stripe';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { PracticeOptions } from '../../../src/simulator/practice/practice-server.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

interface Client {
  readonly stripe: Stripe;
  /** Requests that the SDK has sent, including its own retries. */
  readonly sent: () => number;
}

/** Opens an SDK whose host, port and protocol are the proxy's. */
function openClient(url: string, config: Stripe.StripeConfig = {}): Client {
  const { hostname, port } = new URL(url);
  const httpAgent = new Agent({ keepAlive: true });
  onTestFinished(() => httpAgent.destroy());
  const stripe = new Stripe('sk_test_tidegate', { host: hostname, port, protocol: 'http', httpAgent, ...config });
  let sent = 0;
  // stripe 23.1.0 does not type `on`.
  const { on } = stripe as { on: (event: 'request', listener: () => void) => void };
  on('request', () => {
    sent += 1;
  });
  return { stripe, sent: () => sent };
}

const QUICK = 'retry: {backOff: {strategy: fixed, baseInterval: 10ms}}';

async function start(settings = QUICK, options: Partial<PracticeOptions> = {}) {
  const upstream = await startUpstream(options);
  const tidegate = await startTidegate(`
upstreams:
  stripe:
    url: ${upstream.url}
    perTryTimeout: 500ms
    ${settings}
`);
  return { upstream, tidegate };
}

const charge = { amount: 2000, currency: 'eur', source: 'tok_visa', metadata: { intent: 'order-1' } };

/** Scripts the practice upstream's response to each attempt. */
function script(steps: string, id = 'charge'): Stripe.RequestOptions {
  return { headers: { 'X-Practice-Script': steps, 'X-Practice-Id': id } };
}

async function failureOf(promise: Promise<unknown>): Promise<InstanceType<typeof Stripe.errors.StripeError>> {
  const settled: unknown = await promise.catch((error: unknown) => error);
  if (settled instanceof Stripe.errors.StripeError) return settled;
  throw new Error(`expected an error of Stripe, got ${JSON.stringify(settled)}`);
}

/** The SDK without its own retries, and with its defaults. */
const RETRIES = [{ maxNetworkRetries: 0 }, {}] as const;

describe.each(RETRIES)('an SDK with %o', (config) => {
  test.each([
    'reset-after-charge, 200',
    '500-after-charge, 200',
    '503, reset-after-charge, 500-after-charge, 200',
    'hang-after-charge, 200',
    'reset, 502, 200',
    '429, 200',
  ])('sees one attempt of a charge that meets %s, and it is charged once', async (steps) => {
    const { upstream, tidegate } = await start();
    const { stripe, sent } = openClient(tidegate.url, config);
    const { id, amount, lastResponse } = await stripe.charges.create(charge, script(steps));
    const attempts = steps.split(',').length;
    expect([id, amount, lastResponse.statusCode]).toEqual(['ch_000001', 2000, 200]);
    expect(lastResponse.headers['tidegate-attempts']).toBe(String(attempts));
    expect([sent(), upstream.attempts('charge')]).toEqual([1, attempts]);
    expect(upstream.ledger.summary()).toMatchObject({ charges: 1, doubleCharges: 0, mismatches: 0 });
    const [line] = await eventually(
      () => tidegate.requests(),
      ({ length }) => length > 0,
    );
    expect(line).toMatchObject({ status: 200, attempts, outcome: 'recovered' });
  });
});

test('a payment intent is confirmed once, although its responses are lost or fail', async () => {
  const { upstream, tidegate } = await start(
    'retry: {attempts: 20, budget: {burst: 100}, backOff: {strategy: fixed, baseInterval: 5ms}}',
    { afterCharge: { reset: 0.1, error: 0.4 }, seed: 7 },
  );
  const { stripe } = openClient(tidegate.url, { maxNetworkRetries: 0 });
  const intents = Array.from({ length: 12 }, (_, i) => `order-${i}`);
  const made = await Promise.all(
    intents.map((intent) => stripe.paymentIntents.create({ amount: 100, currency: 'eur', metadata: { intent } })),
  );
  expect(made.map(({ metadata }) => metadata['intent'])).toEqual(intents);
  expect(upstream.ledger.summary()).toMatchObject({ charges: 12, doubleCharges: 0 });
  expect(upstream.ledger.summary().replays).toBeGreaterThan(0);
});

describe('retries of the SDK and of the proxy', () => {
  test('multiply by default, and still charge once because the key is the same', async () => {
    const { upstream, tidegate } = await start('retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 10ms}}');
    const { stripe, sent } = openClient(tidegate.url);
    const error = await failureOf(stripe.charges.create(charge, script('500-after-charge')));
    expect([error.type, error.statusCode]).toEqual(['StripeAPIError', 500]);
    expect(error.headers?.['tidegate-outcome']).toBe('unknown');
    expect([sent(), upstream.attempts('charge')]).toEqual([3, 6]);
    expect(upstream.ledger.summary()).toMatchObject({ charges: 1, doubleCharges: 0, replays: 5 });
  });

  test('are limited by the retry budget that all requests share', async () => {
    const { upstream, tidegate } = await start(
      'retry: {attempts: 4, budget: {ratio: 0, burst: 2}, backOff: {strategy: fixed, baseInterval: 10ms}}',
    );
    const { stripe, sent } = openClient(tidegate.url, { maxNetworkRetries: 1 });
    await failureOf(stripe.charges.create(charge, script('500-after-charge')));
    expect([sent(), upstream.attempts('charge')]).toEqual([2, 2 + 2]);
    expect(upstream.ledger.summary()).toMatchObject({ charges: 1, doubleCharges: 0 });
  });

  test('charge once when the SDK times out and repeats the request with its key', async () => {
    const { upstream, tidegate } = await start(
      'retry: {onClientGone: finish, backOff: {strategy: fixed, baseInterval: 10ms}}',
    );
    const { stripe, sent } = openClient(tidegate.url, { timeout: 200 });
    const { id } = await stripe.charges.create(charge, script('delay=350; 200, 200'));
    expect([id, sent(), upstream.attempts('charge')]).toEqual(['ch_000001', 2, 2]);
    expect(upstream.ledger.summary()).toMatchObject({ charges: 1, doubleCharges: 0, replays: 1 });
  });
});

describe('Stripe-Should-Retry', () => {
  test.each(RETRIES)('false stops retries of a 500, by the proxy and by an SDK with %o', async (config) => {
    const { upstream, tidegate } = await start();
    const { stripe, sent } = openClient(tidegate.url, config);
    const steps = '500-after-charge; header=Stripe-Should-Retry:false, 200';
    const error = await failureOf(stripe.charges.create(charge, script(steps)));
    expect([error.statusCode, error.headers?.['stripe-should-retry']]).toEqual([500, 'false']);
    expect([sent(), upstream.attempts('charge')]).toEqual([1, 1]);
    expect(await tidegate.metric('tidegate_retry_outcomes_total{upstream="stripe",outcome="upstream_veto"}')).toBe(1);
  });

  test.each(RETRIES)('true makes the proxy retry a 409, so that an SDK with %o does not have to', async (config) => {
    const { upstream, tidegate } = await start();
    const { stripe, sent } = openClient(tidegate.url, config);
    const steps = '409; header=Stripe-Should-Retry:true, 409; header=Stripe-Should-Retry:true, 200';
    const { id } = await stripe.charges.create(charge, script(steps));
    expect([id, sent(), upstream.attempts('charge')]).toEqual(['ch_000001', 1, 3]);
    expect(await tidegate.metric('tidegate_retries_total{upstream="stripe",reason="lock"}')).toBe(2);
  });

  test('true does not make the proxy retry a write without a key', async () => {
    const { upstream, tidegate } = await start();
    const { headers } = script('409; header=Stripe-Should-Retry:true, 200');
    const answer = await fetch(`${tidegate.url}/v1/charges`, { method: 'POST', headers: { ...headers }, body: '' });
    expect([answer.status, upstream.attempts('charge')]).toEqual([409, 1]);
  });
});

test('a second request with a key in progress waits for the first, and both get the same charge', async () => {
  const { upstream, tidegate } = await start(
    'retry: {retryOn: [5xx, lock], attempts: 20, backOff: {strategy: fixed, baseInterval: 50ms}, budget: {burst: 100}}',
  );
  const { stripe, sent } = openClient(tidegate.url, { maxNetworkRetries: 0 });
  const idempotencyKey = 'double-click';
  const first = stripe.charges.create(charge, { ...script('delay=300; 200'), idempotencyKey });
  const second = stripe.charges.create(charge, { idempotencyKey });
  const ids = (await Promise.all([first, second])).map(({ id }) => id);
  expect([ids, sent()]).toEqual([['ch_000001', 'ch_000001'], 2]);
  // The upstream never sees two at a time: the second gets the stored response.
  expect(upstream.ledger.summary()).toMatchObject({ charges: 1, doubleCharges: 0, busy: 0 });
});

test('a response cut off after its head is an error, and a repeat with the key returns the charge', async () => {
  const { upstream, tidegate } = await start();
  const { stripe } = openClient(tidegate.url, { maxNetworkRetries: 0 });
  const options = { ...script('200; cut=20, 200'), idempotencyKey: 'cut' };
  const error = await failureOf(stripe.charges.create(charge, options));
  expect([error.type, upstream.attempts('charge'), upstream.ledger.charges]).toEqual(['StripeConnectionError', 1, 1]);
  expect((await stripe.charges.create(charge, options)).id).toBe('ch_000001');
  expect(upstream.ledger.summary()).toMatchObject({ charges: 1, doubleCharges: 0, replays: 1 });
});

describe('a 429', () => {
  test('is retried after its Retry-After, which the SDK would not wait for', async () => {
    const { upstream, tidegate } = await start();
    const { stripe, sent } = openClient(tidegate.url);
    const started = performance.now();
    const steps = '429; retry-after=1; header=Stripe-Rate-Limited-Reason:global-rate, 200';
    const { id } = await stripe.charges.create(charge, script(steps));
    expect([id, sent(), upstream.attempts('charge')]).toEqual(['ch_000001', 1, 2]);
    expect(performance.now() - started).toBeGreaterThanOrEqual(1000);
    expect(await tidegate.metric('tidegate_upstream_throttled_total{upstream="stripe",reason="global-rate"}')).toBe(1);
  });

  test('is forwarded at once when its Retry-After exceeds the remaining time', async () => {
    const { upstream, tidegate } = await start();
    const { stripe, sent } = openClient(tidegate.url);
    const steps = '429; retry-after=120; header=Stripe-Rate-Limited-Reason:global-rate, 200';
    const error = await failureOf(stripe.charges.create(charge, script(steps)));
    expect([error.type, error.headers?.['retry-after'], error.headers?.['stripe-rate-limited-reason']]).toEqual([
      'StripeRateLimitError',
      '120',
      'global-rate',
    ]);
    expect([sent(), upstream.attempts('charge')]).toEqual([1, 1]);
  });
});

// stripe 23.1.0 rejects a response only for its member `error`, never for its status.
describe('a response generated by the proxy is an error in the SDK', () => {
  test('when the upstream asked the client to wait', async () => {
    const { upstream, tidegate } = await start();
    const { stripe, sent } = openClient(tidegate.url);
    await failureOf(stripe.charges.create(charge, script('429; retry-after=120')));
    const error = await failureOf(stripe.charges.create(charge));
    expect([error.type, error.statusCode]).toEqual(['StripeRateLimitError', 429]);
    expect(Number(error.headers?.['retry-after'])).toBeGreaterThan(100);
    expect([sent(), upstream.ledger.charges]).toEqual([2, 0]);
  });

  test('when the outcome of a charge is unknown', async () => {
    const { upstream, tidegate } = await start();
    const { stripe } = openClient(tidegate.url, { maxNetworkRetries: 0 });
    const error = await failureOf(stripe.charges.create(charge, script('reset-after-charge')));
    expect([error.type, error.statusCode, error.headers?.['tidegate-outcome']]).toEqual([
      'StripeAPIError',
      504,
      'unknown',
    ]);
    expect([upstream.attempts('charge'), upstream.ledger.charges]).toEqual([4, 1]);
  });

  test('when the upstream cannot be reached', async () => {
    const { upstream, tidegate } = await start();
    await upstream.close();
    const { stripe } = openClient(tidegate.url, { maxNetworkRetries: 0 });
    const error = await failureOf(stripe.charges.create(charge));
    expect([error.type, error.statusCode, error.headers?.['tidegate-outcome']]).toEqual([
      'StripeAPIError',
      502,
      undefined,
    ]);
  });

  test('when requests exceed the limit, and only admitted ones are charged', async () => {
    const limit = { kind: 'token-bucket', rate: 10, burst: 5 } as const;
    const { upstream, tidegate } = await start(`queue: {maxWait: 500ms}\n    ${QUICK}`, {
      limit,
      hints: 'retry-after',
    });
    const { stripe } = openClient(tidegate.url);
    const settled = await Promise.allSettled(
      Array.from({ length: 40 }, (_, i) => stripe.charges.create({ ...charge, metadata: { intent: `order-${i}` } })),
    );
    const errors = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
    expect(errors.length).toBeGreaterThan(0);
    for (const error of errors) expect(error).toBeInstanceOf(Stripe.errors.StripeRateLimitError);
    const charged = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value.object] : []));
    expect(charged).toEqual(Array.from({ length: 40 - errors.length }, () => 'charge'));
    expect(upstream.ledger.summary()).toMatchObject({ charges: charged.length, doubleCharges: 0 });
  });
});

describe('a request of the SDK arrives', () => {
  test('with identical credentials, version, key, telemetry and body', async () => {
    const origin = await startRecordingUpstream((_, response) => {
      response.writeHead(200, { 'Request-Id': 'req_1', 'Content-Type': 'application/json' }).end('{"object":"charge"}');
    });
    const tidegate = await startTidegate(`upstreams: {stripe: {url: '${origin.url}'}}`);
    const straight = openClient(origin.url).stripe;
    const { stripe } = openClient(tidegate.url);
    const options = { idempotencyKey: 'key-1', stripeAccount: 'acct_1' };
    for (const client of [straight, stripe]) {
      await client.charges.create(charge, options);
      await client.charges.create(charge, options);
    }
    const [direct, forwarded] = [origin.received[1], origin.received[3]];
    expect(forwarded?.headers['x-stripe-client-telemetry']).toMatch(/"request_id":"req_1"/);
    const names = [
      'authorization',
      'stripe-version',
      'stripe-account',
      'idempotency-key',
      'x-stripe-client-user-agent',
    ];
    for (const name of [...names, 'user-agent', 'content-type', 'content-length', 'accept']) {
      expect([name, forwarded?.headers[name]]).toEqual([name, direct?.headers[name]]);
      expect(direct?.headers[name]).toBeDefined();
    }
    expect(forwarded?.body.equals(direct?.body ?? Buffer.alloc(0))).toBe(true);
    expect(String(forwarded?.body)).toContain('metadata[intent]=order-1');
    expect(forwarded?.headers.host).toBe(new URL(origin.url).host);
  });

  test('with its file as multipart, including the boundary', async () => {
    const origin = await startRecordingUpstream((_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"object":"file"}');
    });
    const tidegate = await startTidegate(`upstreams: {stripe: {url: '${origin.url}'}}`);
    const data = Buffer.from('%PDF-1.7\r\n\0\xff evidence', 'latin1');
    const { stripe } = openClient(tidegate.url);
    await stripe.files.create({ purpose: 'dispute_evidence', file: { data, name: 'a.pdf', type: 'application/pdf' } });
    const [{ target, headers, body } = { target: '', headers: {}, body: Buffer.alloc(0) }] = origin.received;
    expect(target).toBe('/v1/files');
    const form = await new Response(body, { headers: { 'Content-Type': headers['content-type'] ?? '' } }).formData();
    const file = form.get('file');
    if (!(file instanceof File)) throw new Error('no file arrived');
    expect(Buffer.from(await file.arrayBuffer()).equals(data)).toBe(true);
    expect([file.name, form.get('purpose')]).toEqual(['a.pdf', 'dispute_evidence']);
  });
});

test('all of 61 PaymentIntents at once succeed at 20/s through the sidecar, with the retries of the SDK turned off', async () => {
  const upstream = await startUpstream({ limit: { kind: 'token-bucket', rate: 20, burst: 10 } });
  const sidecar = readFileSync(new URL('../../../config/examples/stripe-sidecar.yaml', import.meta.url), 'utf8');
  const settings = sidecar
    .slice(sidecar.indexOf('upstreams:'))
    .replace('provider: stripe', `$&\n    url: ${upstream.url}`);
  const tidegate = await startTidegate(settings);
  const { stripe } = openClient(tidegate.url, { maxNetworkRetries: 0 });
  const made = await Promise.allSettled(
    Array.from({ length: 61 }, () => stripe.paymentIntents.create({ amount: 2000, currency: 'eur' })),
  );
  expect(made.filter(({ status }) => status === 'rejected')).toEqual([]);
});
