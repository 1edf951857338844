import { expect, test } from 'vitest';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { pause } from '../../support/pause.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const CLIENTS = 20;
const DURATION = 3000;

test('charges every order at most once, and accounts for every request, under random faults', async () => {
  const upstream = await startUpstream({
    limit: { kind: 'token-bucket', rate: 300, burst: 60 },
    latency: { kind: 'exponential', mean: 10 },
    errors: [{ probability: 0.1, status: 500 }],
    afterCharge: { reset: 0.1, hang: 0.03, error: 0.1 },
    outages: [{ from: 700, to: 1000, how: 'refuse' }],
    seed: 7,
  });
  const gate = await startTidegate(`
upstreams:
  api:
    url: "${upstream.url}"
    timeout: 2s
    perTryTimeout: 250ms
    retry: {backOff: {strategy: full-jitter, baseInterval: 20ms, maxInterval: 200ms}, budget: {ratio: 1, burst: 50}}
clients: {key: ["header:x-api-key"]}
`);
  const random = seededRandom(11);
  const agent = keepAlive();
  let sent = 0;
  let left = 0;
  let paid = 0;

  const pay = async (client: string, order: string, keyed: boolean): Promise<'paid' | 'again' | 'over'> => {
    sent += 1;
    const leaving = new AbortController();
    const leavesAfter = random() < 0.1 ? setTimeout(() => leaving.abort(), random() * 100) : undefined;
    try {
      const answer = await send(gate.url, '/charges', {
        method: 'POST',
        headers: ['X-Api-Key', client, 'X-Intent', order, ...(keyed ? ['Idempotency-Key', order] : [])],
        body: 'amount=100&currency=eur',
        signal: leaving.signal,
        agent,
      });
      if (answer.status === 200) return 'paid';
      // With a key a repeat is safe; without one only where nothing can have happened.
      const unknown = answer.header('tidegate-outcome') === 'unknown';
      if (!keyed && unknown) return 'over';
      await pause(Math.min(300, 1000 * Number(answer.header('retry-after') ?? 0.05)));
      return 'again';
    } catch {
      if (leaving.signal.aborted) left += 1;
      return keyed ? 'again' : 'over';
    } finally {
      clearTimeout(leavesAfter);
    }
  };
  const until = performance.now() + DURATION;
  const shop = async (client: string, keyed: boolean): Promise<void> => {
    for (let order = 1; performance.now() < until; order += 1) {
      let result = await pay(client, `${client}-${order}`, keyed);
      while (result === 'again' && performance.now() < until) result = await pay(client, `${client}-${order}`, keyed);
      if (result === 'paid') paid += 1;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, i) => shop(`client-${i}`, i % 4 !== 0)));

  expect(upstream.ledger.doubleCharges).toBe(0);
  expect(upstream.ledger.charges).toBeGreaterThanOrEqual(paid);
  expect(paid).toBeGreaterThan(0);

  await eventually(
    () => gate.metric('tidegate_requests_in_flight{route="/"}'),
    (count) => count === 0,
  );
  const lines = gate.requests();
  expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
  expect(lines.length).toBeLessThanOrEqual(sent);
  expect(lines.length).toBeGreaterThanOrEqual(sent - left); // some clients disconnected before they had sent anything
  expect(await gate.metric('tidegate_replay_buffer_bytes')).toBe(0);
  expect(gate.view().limits).toMatchObject([{ inFlight: 0, queued: 0 }]);
  expect(gate.log().filter(({ level }) => level === 'error')).toEqual([]);
});
