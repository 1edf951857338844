import { expect, test } from 'vitest';
import { keepAlive, send } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

/** The preset's rate of one of Stripe's endpoints. */
const RATE = 25;
/** Tolerance for a slow machine. */
const BURST = 8;
/** More than two seconds' worth, at once. */
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

test('uses a provider’s known rate at once, without probing for it', async () => {
  const [known, unknown] = await Promise.all([overload(', provider: stripe'), overload('')]);
  const [, ofEndpoint] = known.rates;
  expect(ofEndpoint).toBeGreaterThan(0.7 * RATE);
  expect(ofEndpoint).toBeLessThanOrEqual(RATE);
  expect(known.served).toBe(REQUESTS);
  expect(known.waste).toBeLessThanOrEqual(0.01);
  expect(unknown.waste).toBeGreaterThan(known.waste); // on a slow machine by little, because its requests come apart
});

test('does not treat a write as safe to repeat where the provider ignores the header’s key', async () => {
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
