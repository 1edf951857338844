import { expect, test } from 'vitest';
import { keepAlive, send } from '../support/send.ts';
import { eventually, startTidegate, startUpstream } from '../support/tidegate.ts';

/** What the preset says of one of Stripe's endpoints. */
const RATE = 25;
/** Room for what a busy machine is late with. */
const BURST = 8;
/** More than two seconds of it, at once. */
const REQUESTS = 60;

async function overload(provider: string) {
  const upstream = await startUpstream({
    limit: { kind: 'gcra', rate: RATE, burst: BURST },
    latency: { kind: 'constant', mean: 30 },
  });
  const gate = await startTidegate(
    `upstreams: {pay: {url: "${upstream.url}", timeout: 50s, queue: {maxWait: 50s}${provider}}}`,
  );
  const agent = keepAlive();
  const asked = Array.from({ length: REQUESTS }, () => send(gate.url, '/v1/charges', { agent }));
  const rates = await eventually(
    () => gate.view().limits.map(({ rate }) => rate),
    ({ length }) => length > 0,
  );
  const answers = await Promise.all(asked);
  const { accepted, rejected } = upstream.stats();
  return { rates, served: answers.filter(({ status }) => status === 200).length, waste: rejected / accepted };
}

test('the rate of a provider is used at once: nothing is wasted on finding it', async () => {
  const [known, unknown] = await Promise.all([overload(', provider: stripe'), overload('')]);
  const [, ofEndpoint] = known.rates;
  expect(ofEndpoint).toBeGreaterThan(0.7 * RATE);
  expect(ofEndpoint).toBeLessThanOrEqual(RATE);
  expect(known.served).toBe(REQUESTS);
  expect(known.waste).toBeLessThanOrEqual(0.01);
  expect(unknown.waste).toBeGreaterThan(0.04);
});

test('where the provider knows no key in a header, one that is sent makes no write safe to repeat', async () => {
  const upstream = await startUpstream();
  const fast = 'retry: {backOff: {strategy: fixed, baseInterval: 5ms}}';
  const sent = async (provider: string, id: string, method = 'POST') => {
    const gate = await startTidegate(`upstreams: {pay: {url: "${upstream.url}", provider: ${provider}, ${fast}}}`);
    const headers = ['X-Practice-Id', id, 'X-Practice-Script', '503, 200', 'Idempotency-Key', id];
    const { status } = await send(gate.url, '/', { method, headers, body: 'amount=1' });
    return { status, attempts: upstream.attempts(id) };
  };
  expect(await sent('stripe', 'a')).toEqual({ status: 200, attempts: 2 });
  expect(await sent('square', 'b')).toEqual({ status: 503, attempts: 1 });
  expect(await sent('square', 'c', 'PUT')).toEqual({ status: 200, attempts: 2 });
});
