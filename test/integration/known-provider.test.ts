import { expect, test } from 'vitest';
import { startTraffic } from '../../src/practice/traffic.ts';
import { pause } from '../support/pause.ts';
import { send } from '../support/send.ts';
import { startTidegate, startUpstream } from '../support/tidegate.ts';

/** What the preset says of Stripe. */
const RATE = 25;
const SECONDS = 4;
/** Room for what a busy machine is late with. */
const BURST = 8;

/** A load of twice the limit, from the first moment on. */
async function overload(provider: string) {
  const upstream = await startUpstream({
    limit: { kind: 'gcra', rate: RATE, burst: BURST },
    latency: { kind: 'constant', mean: 30 },
  });
  const gate = await startTidegate(`upstreams: {pay: {url: "${upstream.url}", ${provider}}}`);
  const traffic = startTraffic({ target: gate.url, clients: [{ name: 'shop', rate: 2 * RATE }], seed: 7 });
  await pause(SECONDS * 1000);
  await traffic.stop();
  const { accepted, rejected } = upstream.stats();
  return { accepted, waste: rejected / accepted };
}

test('the rate of a provider is used at once: nothing is wasted on finding it', async () => {
  const [known, unknown] = await Promise.all([overload('provider: stripe'), overload('')]);
  expect(known.waste).toBeLessThanOrEqual(0.01);
  expect(known.accepted).toBeGreaterThan(0.7 * RATE * SECONDS);
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
